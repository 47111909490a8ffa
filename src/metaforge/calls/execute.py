"""Stage 9: hand the call to the engine."""

from metaforge.calls.call import Call, Proceed
from metaforge.core.build import build
from metaforge.engine.engine import ExecutionEngine
from metaforge.tools.context import Invocation, Outcome


def execute_with(engine: ExecutionEngine) -> Proceed:
    """Return the innermost step of the pipeline."""

    async def execute(call: Call) -> Outcome:
        tool = call.resolved()
        asked = call.timeout_seconds or call.arguments.get("timeout_seconds") or tool.timeout_seconds
        invocation = build(
            Invocation,
            call_id=call.id,
            caller=call.caller,
            timeout_seconds=float(asked),  # the engine holds it to the tool's own limit
            progress=call.progress,
            project_id=call.project_id,
            run_id=call.run_id,
            trace_id=call.trace_id,
            overwrite=call.arguments.get("overwrite") is True,
            ask=call.ask,
        )
        if call.approver:
            approved_by = {"approver": call.approver, "approver_verified": call.approver_verified}
            invocation = build(Invocation, **invocation.__dict__, **approved_by)
        return await engine.run(tool, call.arguments, invocation)

    return execute
