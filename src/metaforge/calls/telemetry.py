"""Stage 1: time every call, count every outcome, trace it when somebody collects traces."""

import time

from metaforge.calls.call import Call, Proceed, replace
from metaforge.calls.ending import OK, ending_of
from metaforge.telemetry import metrics, spans
from metaforge.tools.context import Outcome
from metaforge.tools.manifest import Tool


class Telemetry:
    """Outermost, so that nothing escapes it."""

    async def __call__(self, call: Call, proceed: Proceed) -> Outcome:
        started = time.perf_counter()
        ending = OK
        try:
            if not spans.enabled():
                return await proceed(call)
            with spans.span("tools/call", {"tool_id": call.tool_id, "call_id": call.id}, call.trace_id) as span:
                if span.traceparent:
                    call = replace(call, trace_id=span.traceparent)
                return await proceed(call)
        except BaseException as fault:
            ending = ending_of(fault)
            raise
        finally:
            tool: Tool | None = call.notes.get("tool")
            tool_id, adapter_id = (tool.id, tool.adapter_id) if tool else (call.tool_id, "")
            metrics.call_finished(tool_id, adapter_id, ending.status, time.perf_counter() - started)
