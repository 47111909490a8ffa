"""Stage 4: who decides is known from the connection: a caller who names the approver is refused."""

from typing import Protocol

from metaforge.calls.call import Call, Proceed, replace
from metaforge.core.errors import ToolError
from metaforge.protocol.idempotency import ARGUMENT
from metaforge.tools.context import Outcome
from metaforge.tools.effect import Effect, HoldRule

APPROVER_NAMES = ("decided_by", "approver", "approved_by", "__approved_by__")


class ServiceRules(Protocol):
    """What a caller with the service key may do: `access.service.ServiceJudge`."""

    async def admit(self, call: Call) -> Call: ...


class Authorise:
    """Raises ToolError `approver_not_caller_supplied` on tools whose decision is a person's alone.

    Args:
        service: judges calls that show the service key; without it they are calls like any other.
    """

    def __init__(self, service: ServiceRules | None = None) -> None:
        self.service = service

    async def __call__(self, call: Call, proceed: Proceed) -> Outcome:
        if call.resolved().hold is HoldRule.ALWAYS:
            for name in APPROVER_NAMES:
                if name in call.arguments:
                    raise ToolError(
                        f"{call.tool_id} was not run: {name} is not the caller's to say; the approver is whoever "
                        "approves the call",
                        kind="approver_not_caller_supplied", where=name, fix=f"Leave {name} out",
                        code="approver_not_caller_supplied", field=name,
                    )  # fmt: skip
        if ARGUMENT in call.arguments:
            call = _keyed(call)
        if call.caller.service is not None and self.service is not None:
            call = await self.service.admit(call)
        return await proceed(call)


def _keyed(call: Call) -> Call:
    """Take the key of a write out of its arguments, where it is none of the tool's own."""
    tool, key = call.resolved(), call.arguments[ARGUMENT]
    if call.effect is Effect.READ or ARGUMENT in tool.input_schema.get("properties", {}) or not isinstance(key, str):
        return call
    arguments = {name: value for name, value in call.arguments.items() if name != ARGUMENT}
    return replace(call, arguments=arguments, idempotency_key=key)
