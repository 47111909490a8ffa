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
        tool: Tool | None = call.notes.get("tool")
        adapter_id = tool.adapter_id if tool else ""
        caller: Caller = call.notes.get("caller", call.caller)
        return build(
            CallRecord,
            call_id=call.id,
            tool_id=tool.id if tool else call.tool_id,
            started_at=started_at,
            duration_ms=duration_ms,
            status=ending.status,
            adapter_id=adapter_id,
            adapter_version=self.versions.adapter_version(adapter_id),
            error_kind=ending.kind,
            error_message=ending.message,
            arguments=call.notes.get("arguments", call.arguments),
            inputs=call.notes.get("inputs", ()),
            artefacts=outcome.files if outcome else (),
            programs={each.name: each.version for each in outcome.programs} if outcome else {},
            warnings=outcome.warnings if outcome else (),
            summary=outcome.summary if outcome else "",
            caller=caller,
            project_id=call.notes.get("project_id", call.project_id),
            run_id=call.notes.get("run_id", call.run_id),
            trace_id=call.trace_id,
            work_session_id=self.sessions.session_for(caller, before).session_id,
        )
