"""What the worker of a server-driven run may do without a person: one was asked when the run's flow was approved."""

import time
from collections.abc import Callable
from dataclasses import replace as replaced

from metaforge.access.runs import Runs, RunsUnavailable
from metaforge.calls.call import Call, replace
from metaforge.core.errors import ServiceRefused
from metaforge.telemetry import logs
from metaforge.tools.context import ServiceClaims, Trust
from metaforge.tools.effect import Effect, HoldRule
from metaforge.tools.manifest import Tool
from metaforge.twin.model import Run

GRANT_SECONDS = 5.0
"""How long a run that was found good is not looked up again; a refusal is never kept."""
MAX_GRANTS_COUNT = 256
REFUSED_PREFIXES = ("project.", "flow.", "run.")


class ServiceJudge:
    """Holds calls that show the service key to the run they name.

    The run must be there and running, of the call's project, and of a flow version that a person approved. The caller
    is then a service caller, whose writes are not held; one whose run has no flow version stays as untrusted as any
    other, and its writes are held.

    Args:
        runs: finds runs.
        clock: seconds on a monotonic clock.
    """

    def __init__(self, runs: Runs, clock: Callable[[], float] = time.monotonic) -> None:
        self._runs = runs
        self._clock = clock
        self._grants: dict[str, tuple[float, Run]] = {}

    async def admit(self, call: Call) -> Call:
        """Return the call as its run's, in the run's project.

        Args:
            call: resolved, of a caller with `service` claims.

        Raises:
            ServiceRefused: `service_refused`, `service_other_project` or `service_scope`.
        """
        claims = call.caller.service
        assert claims is not None
        run = await self._run(call, claims)
        _hold_to_project(call, claims, run)
        tool = call.resolved()
        writes = call.effect is not Effect.READ and tool.hold is not HoldRule.NEVER
        if writes and not run.running:
            state = run.state or "unknown"
            raise _refusal(call, "service_refused", f"run {run.run_id} is {state}, not running")
        trust = call.caller.trust
        if run.running and run.flow_version:
            if run.flow_approved:
                trust = Trust.SERVICE
            elif writes:
                raise _refusal(
                    call, "service_refused", f"flow version {run.flow_version} is not approved, or not valid"
                )
        if trust is Trust.SERVICE and writes and (reason := _out_of_scope(tool, call.effect)):
            raise _refusal(call, "service_scope", reason)
        return _admitted(call, run, trust)

    async def _run(self, call: Call, claims: ServiceClaims) -> Run:
        run_id, now = claims.run_id, self._clock()
        ends, run = self._grants.get(run_id, (now, None))
        if run is not None and now < ends:
            return run
        self._grants.pop(run_id, None)
        try:
            run = await self._runs.find(run_id)
        except RunsUnavailable as fault:
            raise _refusal(call, "service_refused", f"run {run_id} cannot be looked up: {fault}") from None
        if run is None:
            raise _refusal(call, "service_refused", f"there is no run {run_id}")
        if run.running and run.flow_approved:
            if len(self._grants) >= MAX_GRANTS_COUNT:
                del self._grants[next(iter(self._grants))]
            self._grants[run_id] = (now + GRANT_SECONDS, run)
        return run


def _hold_to_project(call: Call, claims: ServiceClaims, run: Run) -> None:
    named = call.arguments.get("project_id")
    for what, project_id in (("X-MetaForge-Project", claims.project_id), ("project_id", named)):
        if project_id not in (None, "") and project_id != run.project_id:
            owner, said = run.project_id or "(none)", str(project_id)[:100]
            reason = f"run {run.run_id} belongs to project {owner}; {what} says {said}"
            raise _refusal(call, "service_other_project", reason)


def _out_of_scope(tool: Tool, effect: Effect) -> str:
    """Say why a run may not do this at all; empty when it may. Nobody is there to answer a question about it."""
    if tool.id.startswith(REFUSED_PREFIXES):
        return f"{tool.id.partition('.')[0]}.* is not for server-driven runs"
    if tool.hold is HoldRule.ALWAYS:
        return "it is a decision that only a person may take"
    if effect is Effect.DESTROY:
        return "it would replace or remove existing content"
    return ""


def _admitted(call: Call, run: Run, trust: Trust) -> Call:
    caller = call.caller
    if trust is Trust.SERVICE:
        caller = replaced(caller, actor_id=f"service:design-flow:{run.run_id}", trust=trust, verified=False)
        logs.event("mcp_service_call_authorised", tool_id=call.tool_id, call_id=call.id, **_told(call))
    call.notes["caller"] = caller
    return replace(call, caller=caller, run_id=run.run_id, project_id=run.project_id)


def _refusal(call: Call, code: str, reason: str) -> ServiceRefused:
    logs.event(
        "mcp_service_call_refused", "warning",
        tool_id=call.tool_id, call_id=call.id, code=code, reason=reason, **_told(call),
    )  # fmt: skip
    told = _told(call)
    return ServiceRefused(
        f"{call.tool_id} was not run ({code}): {reason}. Nothing was changed; choose another tool.",
        tool_id=call.tool_id, code=code, reason=reason, run_id=told["run_id"], retryable=False,
    )  # fmt: skip


def _told(call: Call) -> dict[str, str]:
    claims = call.caller.service
    assert claims is not None
    return {"run_id": claims.run_id, "phase": claims.phase, "model": claims.model}
