"""Stage 4: who decides is known from the connection. A caller who names the approver is refused."""

from metaforge.calls.call import Call, Proceed
from metaforge.core.errors import ToolError
from metaforge.tools.context import Outcome
from metaforge.tools.effect import HoldRule

APPROVER_NAMES = ("decided_by", "approver", "approved_by", "__approved_by__")


class Authorise:
    """Raises ToolError `approver_not_caller_supplied` on tools whose decision is a person's alone."""

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
        return await proceed(call)
