"""Stage 8: a write from a remote caller needs a person. Without a gate to ask one, it is refused, never run."""

from metaforge.calls.call import Call, Proceed
from metaforge.core.errors import NotApproved
from metaforge.tools.context import Outcome, Trust
from metaforge.tools.effect import Effect, HoldRule
from metaforge.twin.authority import require_approver

HELD_EFFECTS = frozenset({Effect.WRITE, Effect.DESTROY})


class Approve:
    """Raises NotApproved with outcome `not_configured`: this server holds writes and has no approval gate.

    Bookkeeping is never held. A decision that is a person's alone never runs without one, whoever calls.
    """

    async def __call__(self, call: Call, proceed: Proceed) -> Outcome:
        rule = call.resolved().hold
        local = call.caller.trust is Trust.LOCAL
        if rule is HoldRule.ALWAYS:
            if local:
                require_approver(call.tool_id, approver="")
        elif local or rule is HoldRule.NEVER or call.effect not in HELD_EFFECTS:
            return await proceed(call)
        raise NotApproved(
            f"{call.tool_id} was not run (not_configured): it would {_what(call)}, a remote caller's writes wait for "
            "a person, and this server has no approval gate to ask one. Ask over stdio on the same machine, or "
            "choose an output path that does not exist yet. Nothing was changed.",
            tool_id=call.tool_id, code="approval_required", outcome="not_configured", retryable=False,
        )  # fmt: skip


def _what(call: Call) -> str:
    return "replace existing content" if call.effect is Effect.DESTROY else "add to the design record"
