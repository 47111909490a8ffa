"""Stage 8: who may not run a call alone waits for a person. Without a gate to ask one it is refused, never run."""

from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from metaforge.approvals.policy import Policy
from metaforge.calls.call import Call, Proceed, replace
from metaforge.core.errors import InvalidArguments
from metaforge.tools.context import Outcome
from metaforge.tools.effect import Effect

Judge = Callable[[Call], Awaitable[Call]]
"""Return a call with its arguments judged; raises InvalidArguments."""


class Approver(Protocol):
    """Who approved: `approvals.model.Approver`."""

    @property
    def name(self) -> str: ...
    @property
    def verified(self) -> bool: ...


class Gate(Protocol):
    """Asks a person: `approvals.gate.Gate`."""

    async def hold(self, call: Call, proceed: Proceed, revise: Any) -> Outcome: ...


class Keyed(Protocol):
    """Runs keyed writes once: `approvals.keyed.Keyed`."""

    async def run(self, call: Call, key: str, act: Any) -> Outcome: ...


class Approve:
    """Raises NotApproved: it was not approved, or nobody can be asked (`not_configured`).

    Calls that are not held pass through without so much as a coroutine of its own.

    Args:
        policy: what is held.
        gate: returns what asks a person; made at the first call that is held.
        judge: judges arguments that a person edited.
        keyed: returns what runs keyed writes once.
    """

    def __init__(
        self,
        policy: Policy,
        gate: Callable[[], Gate] | None = None,
        judge: Judge | None = None,
        keyed: Callable[[], Keyed] | None = None,
    ) -> None:
        self.policy = policy
        self._gate = gate
        self._judge = judge
        self._keyed = keyed

    def __call__(self, call: Call, proceed: Proceed) -> Awaitable[Outcome]:
        if call.idempotency_key and self._keyed is not None and call.effect is not Effect.READ:
            return self._run_once(call, proceed, self._keyed())
        if not self.policy.holds(call.resolved(), call.effect, call.caller.trust):
            return proceed(call)
        return self._hold(call, proceed)

    async def _hold(self, call: Call, proceed: Proceed) -> Outcome:
        if self._gate is None:
            from metaforge.approvals.outcomes import not_configured

            tool = call.resolved()
            raise not_configured(tool.id, self.policy.reason(tool, call.effect))
        return await self._gate().hold(call, proceed, self._revise)

    async def _run_once(self, call: Call, proceed: Proceed, keyed: Keyed) -> Outcome:
        """Run a keyed write, asked for where it must be; one that ran already is not asked about again."""

        async def act(start: Callable[[], Awaitable[None]]) -> Outcome:
            async def begin(approved: Call) -> Outcome:
                await start()
                return await proceed(approved)

            if self.policy.holds(call.resolved(), call.effect, call.caller.trust):
                return await self._hold(call, begin)
            return await begin(call)

        return await keyed.run(call, call.idempotency_key, act)

    async def _revise(self, call: Call, arguments: dict[str, Any] | None, approver: Approver) -> Call:
        """Return the call as it was approved: what a person edited is judged as if the client had sent it."""
        call = replace(call, approver=approver.name, approver_verified=approver.verified)
        if arguments is None:
            return call
        if arguments.get("project_id") != call.arguments.get("project_id"):
            raise InvalidArguments(
                f"{call.resolved().id} was not run: an approval is for one project, and the edited arguments name "
                "another"
            )
        effect = Effect.DESTROY if arguments.get("overwrite") is True else call.resolved().effect
        edited = replace(call, arguments=arguments, effect=effect, inputs=())
        if self._judge is not None:
            edited = await self._judge(edited)
        if edited.arguments != arguments:
            written = {name: value for name, value in edited.arguments.items() if arguments.get(name) != value}
            raise InvalidArguments(
                f"{call.resolved().id} was not run: the edited arguments mean the same as others, which were not "
                f"approved. Write {written or 'them without nulls'}"
            )
        call.notes["arguments"] = arguments
        return edited
