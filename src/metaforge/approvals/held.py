"""What the gate needs of a call and of the client behind it. No I/O."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from metaforge.approvals.model import Approver, Kind, Route
from metaforge.settings import Settings
from metaforge.tools.context import Artefact, Caller, Progress
from metaforge.tools.effect import Effect, HoldRule
from metaforge.tools.manifest import Tool


class Client(Protocol):
    """The client of a call: `mcp.peer.Peer`."""

    carried: dict[str, Any] | None
    """What a call that was sent away brings back."""

    @property
    def can_ask(self) -> bool: ...
    @property
    def has_progress(self) -> bool: ...
    @property
    def comes_back(self) -> bool: ...
    def report_waiting(self, elapsed_seconds: float, total_seconds: float, message: str) -> None: ...
    async def ask(self, message: str, schema: dict[str, Any]) -> dict[str, Any]: ...
    def withdraw(self, reason: str) -> None: ...
    def brought(self, key: str) -> dict[str, Any] | None: ...
    def send_away(
        self, key: str, message: str, schema: dict[str, Any], carried: dict[str, Any], until: float
    ) -> Exception: ...


class HeldCall(Protocol):
    """A call that is resolved, scoped and validated: `calls.call.Call`."""

    @property
    def id(self) -> str: ...
    @property
    def arguments(self) -> dict[str, Any]: ...
    @property
    def caller(self) -> Caller: ...
    @property
    def project_id(self) -> str: ...
    @property
    def run_id(self) -> str: ...
    @property
    def inputs(self) -> tuple[Artefact, ...]: ...
    @property
    def effect(self) -> Effect: ...
    @property
    def progress(self) -> Progress: ...
    @property
    def ask(self) -> Any: ...
    def resolved(self) -> Tool: ...


C = TypeVar("C", bound=HeldCall)
Revise = Callable[[C, "dict[str, Any] | None", Approver], Awaitable[C]]
"""Return the approved call: with who approved it, and with other arguments, judged anew, where they were edited.

Raises InvalidArguments for edited ones that the tool does not take."""


@dataclass(frozen=True)
class Asking:
    """How a call is asked about.

    Attributes:
        inline: whether the client is asked.
        dashboard: whether the dashboard shows it from the beginning.
        progress: whether the client is told that the call waits.
        window_seconds: how long it waits.
    """

    inline: bool
    dashboard: bool
    progress: bool
    window_seconds: float

    @property
    def route(self) -> Route:
        if not self.inline:
            return Route.DASHBOARD
        return Route.BOTH if self.dashboard else Route.ELICITATION


def asking_about(call: HeldCall, settings: Settings) -> Asking:
    """Return how a call is to be asked about.

    A decision that is a person's alone is asked in a client only if a person has signed in there: an answer out of any
    other may be the agent's own.
    """
    client: Client | None = call.ask
    inline = client is not None and settings.approval_route != "dashboard" and client.can_ask
    if inline and kind_of(call) is Kind.HUMAN_AUTHORITY and not call.caller.verified:
        inline = False
    comes_back = inline and client is not None and client.comes_back
    progress = client is not None and client.has_progress and not comes_back
    window = settings.approval_hold_progress_seconds if progress else settings.approval_hold_seconds
    return Asking(inline, not inline or settings.approval_route == "both", progress, window)


def kind_of(call: HeldCall) -> Kind:
    """Return whether any approval lets a call run, or only a person's own."""
    return Kind.HUMAN_AUTHORITY if call.resolved().hold is HoldRule.ALWAYS else Kind.TOOL_CALL


def inline_approver(caller: Caller) -> Approver:
    """Return who answers in a client: the person who signed in to its session, or nobody who could be named."""
    if caller.verified:
        return Approver(caller.actor_id, True, "elicitation")
    name = "local" if caller.actor_id in ("local", "anonymous", "") else caller.actor_id
    return Approver(f"{name}:elicitation", False, "elicitation")
