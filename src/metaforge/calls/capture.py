"""Stage 2: every call is written down before it is answered, refusals too."""

import time
from typing import Protocol

from metaforge.calls.call import Call, Proceed
from metaforge.calls.ending import OK, Ending, ending_of
from metaforge.core.build import build
from metaforge.core.clock import elapsed_ms, utc_now
from metaforge.record.call_record import CallRecord
from metaforge.tools.context import Caller, Outcome
from metaforge.tools.manifest import Tool
from metaforge.twin.scopes import WorkSession

_NO_PROGRAMS: dict[str, str] = {}


class Keeper(Protocol):
    """Where records go: `record.recorder.Recorder`."""

    def append(self, record: CallRecord) -> None: ...


class Versions(Protocol):
    """Which version of an adapter serves: `registry.registry.ToolRegistry`."""

    def adapter_version(self, adapter_id: str) -> str: ...


class Sessions(Protocol):
    """Which work session a client is in: `twin.scopes.ClientScopes`."""

    def current_session(self, caller: Caller) -> WorkSession | None: ...

    def session_for(self, caller: Caller, before: WorkSession | None) -> WorkSession: ...


class Capture:
    """Writes one CallRecord a call, whatever became of it: an event of its client's work session."""

    def __init__(self, keeper: Keeper, versions: Versions, sessions: Sessions) -> None:
        self.keeper = keeper
        self.versions = versions
        self.sessions = sessions

    async def __call__(self, call: Call, proceed: Proceed) -> Outcome:
        started_at, started = utc_now(), time.perf_counter()
        before = self.sessions.current_session(call.caller)
        try:
            outcome = await proceed(call)
        except BaseException as fault:
            self.keeper.append(self._record(call, started_at, elapsed_ms(started), ending_of(fault), None, before))
            raise
        self.keeper.append(self._record(call, started_at, elapsed_ms(started), OK, outcome, before))
        return outcome

    def _record(
        self,
        call: Call,
        started_at: str,
        duration_ms: float,
        ending: Ending,
        outcome: Outcome | None,
        before: WorkSession | None,
    ) -> CallRecord:
        notes = call.notes
        tool: Tool | None = notes.get("tool")
        adapter_id = tool.adapter_id if tool else ""
        caller: Caller = notes.get("caller", call.caller)
        fields = {
            "call_id": call.id,
            "tool_id": tool.id if tool else call.tool_id,
            "started_at": started_at,
            "duration_ms": duration_ms,
            "status": ending.status,
            "adapter_id": adapter_id,
            "adapter_version": self.versions.adapter_version(adapter_id),
            "arguments": notes.get("arguments", call.arguments),
            "programs": _NO_PROGRAMS,
            "caller": caller,
            "project_id": notes.get("project_id", call.project_id),
            "run_id": notes.get("run_id", call.run_id),
            "trace_id": call.trace_id,
            "work_session_id": self.sessions.session_for(caller, before).session_id,
        }
        if "inputs" in notes:
            fields["inputs"] = notes["inputs"]
        if outcome is None:
            fields["error_kind"], fields["error_message"] = ending.kind, ending.message
        else:
            fields["summary"] = outcome.summary
            if outcome.files:
                fields["artefacts"] = outcome.files
            if outcome.programs:
                fields["programs"] = {each.name: each.version for each in outcome.programs}
            if outcome.warnings:
                fields["warnings"] = outcome.warnings
        return build(CallRecord, **fields)
