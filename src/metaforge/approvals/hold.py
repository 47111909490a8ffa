"""A held call as a state machine: where it is asked, what an answer means, when it ends. No I/O and no clock.

    INLINE ──unanswered, failed or cancelled at once──> BOTH / DASHBOARD
      │ answer, dismissal, window                          │ decision, window
      └──────────────> SETTLING ──the ledger's word──> ENDED <┘

What the ledger says is what counts: an answer or an end is sent to it, and of several at one instant it takes one.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from math import inf
from typing import Any

from metaforge.approvals.model import State, Verdict
from metaforge.approvals.port import EndState

DISMISSED_AT_ONCE_SECONDS = 0.3
"""A question cancelled sooner than a person can read it was not shown to one."""
WINDOW_ENDED = "approval window ended"
DISMISSED = "the question was dismissed in the client"
ANSWERED_ELSEWHERE = "answered elsewhere"
CLOSED = "the hold was closed"


class Phase(StrEnum):
    """Where a held call is."""

    INLINE = "inline"
    """The client alone is asked."""
    BOTH = "both"
    """The client is asked, and the dashboard shows it too."""
    DASHBOARD = "dashboard"
    """Nobody is asked in the client, or no longer."""
    SETTLING = "settling"
    """An answer or an end is on its way to the ledger."""
    ENDED = "ended"


# -- what happens ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Answered:
    """The client's answer to the question.

    Attributes:
        action: accept, decline or cancel, as the client says it.
        approve: what the form says, where it was filled in with a truth value.
        note: the person's words.
    """

    action: str
    approve: bool | None = None
    note: str = ""


@dataclass(frozen=True)
class AskFailed:
    """The question could not be put to the client, or it answered with an error."""


@dataclass(frozen=True)
class Ticked:
    """Time has passed."""


@dataclass(frozen=True)
class Learned:
    """What the ledger says of the entry."""

    state: State


@dataclass(frozen=True)
class Gone:
    """Nobody waits for the call any more."""

    reason: str


Event = Answered | AskFailed | Ticked | Learned | Gone


# -- what is to be done ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ask:
    """Put the question to the client."""


@dataclass(frozen=True)
class ShowOnDashboard:
    """Let the entry be decided on the dashboard too."""


@dataclass(frozen=True)
class Withdraw:
    """Take the question in the client down."""

    reason: str


@dataclass(frozen=True)
class Report:
    """Tell the client that its call still waits."""

    elapsed_seconds: float
    total_seconds: float


@dataclass(frozen=True)
class Decide:
    """Write the answer down."""

    verdict: Verdict
    reason: str


@dataclass(frozen=True)
class Close:
    """End the entry without an answer."""

    state: EndState
    reason: str


Effect = Ask | ShowOnDashboard | Withdraw | Report | Decide | Close
Step = tuple["Hold", list[Effect]]


@dataclass(frozen=True)
class Hold:
    """One held call. Times are seconds of one monotonic clock.

    Attributes:
        asked_at: when the question reached the client.
        rescue_at: when a question that nobody answers opens on the dashboard too.
        report_at: when the client is told next; never where it cannot be told.
        is_asked: whether the question is open in the client.
    """

    phase: Phase
    began_at: float
    ends_at: float
    asked_at: float
    rescue_at: float
    report_at: float
    report_every: float
    is_asked: bool

    @classmethod
    def begin(
        cls,
        now: float,
        *,
        window_seconds: float,
        inline: bool,
        dashboard: bool,
        rescue_seconds: float = inf,
        report_seconds: float | None = None,
        began_at: float | None = None,
    ) -> Step:
        """Begin to hold a call whose entry is in the ledger.

        Args:
            now: the time.
            window_seconds: how long it waits for a person, from `began_at`.
            inline: whether the client is asked.
            dashboard: whether the dashboard shows it; without `inline` it does in any case.
            rescue_seconds: how long the client alone is asked.
            report_seconds: how often the client is told that the call waits; None where it cannot be told.
            began_at: when it was first asked, for a call that comes back with its answer.
        """
        began = now if began_at is None else began_at
        phase = (Phase.BOTH if dashboard else Phase.INLINE) if inline else Phase.DASHBOARD
        made = cls(
            phase=phase,
            began_at=began,
            ends_at=began + window_seconds,
            asked_at=began,
            rescue_at=began + rescue_seconds,
            report_at=inf,
            report_every=report_seconds or inf,
            is_asked=inline,
        )
        effects: list[Effect] = [Ask()] if inline and began_at is None else []
        if report_seconds is not None:
            made = replace(made, report_at=now + report_seconds)
            effects.insert(0, made._report(now))
        return made, effects

    @property
    def next_wake(self) -> float:
        """When `Ticked` is due."""
        if self.phase in (Phase.SETTLING, Phase.ENDED):
            return inf
        return min(self.ends_at, self.report_at, self.rescue_at if self.phase is Phase.INLINE else inf)

    @property
    def has_ended(self) -> bool:
        return self.phase is Phase.ENDED

    def handle(self, event: Event, now: float) -> Step:
        """Return the hold after an event, and what is to be done."""
        return _TABLE.get((self.phase, type(event)), _ignore)(self, event, now)

    def _report(self, now: float) -> Report:
        return Report(round(now - self.began_at, 3), round(self.ends_at - self.began_at, 3))

    def _settle(self, effect: Effect, *before: Effect) -> Step:
        return replace(self, phase=Phase.SETTLING), [*before, effect]

    def _withdrawal(self, reason: str) -> list[Effect]:
        return [Withdraw(reason)] if self.is_asked else []


def _ignore(hold: Hold, event: Event, now: float) -> Step:
    return hold, []


def _answer(hold: Hold, event: Answered, now: float) -> Step:
    closed = replace(hold, is_asked=False)
    if event.action == "accept":
        return closed._settle(Decide("approve" if event.approve is True else "reject", event.note))
    if event.action == "decline":
        return closed._settle(Decide("reject", event.note))
    if now - hold.asked_at < DISMISSED_AT_ONCE_SECONDS:
        return _lose_question(hold, event, now)
    return closed._settle(Close(State.TIMED_OUT, DISMISSED))


def _lose_question(hold: Hold, event: Event, now: float) -> Step:
    moved = replace(hold, phase=Phase.DASHBOARD, is_asked=False)
    return moved, [ShowOnDashboard()] if hold.phase is Phase.INLINE else []


def _tick(hold: Hold, event: Event, now: float) -> Step:
    if now >= hold.ends_at:
        closed = replace(hold, is_asked=False)
        return closed._settle(Close(State.TIMED_OUT, WINDOW_ENDED), *hold._withdrawal(WINDOW_ENDED))
    effects: list[Effect] = []
    if hold.phase is Phase.INLINE and now >= hold.rescue_at:
        hold = replace(hold, phase=Phase.BOTH)
        effects.append(ShowOnDashboard())
    if now >= hold.report_at:
        hold = replace(hold, report_at=now + hold.report_every)
        effects.append(hold._report(now))
    return hold, effects


def _learn(hold: Hold, event: Learned, now: float) -> Step:
    if event.state is State.AWAITING:
        # An answer that the ledger did not take while nothing else ended the entry came after its window.
        return hold._settle(Close(State.TIMED_OUT, WINDOW_ENDED)) if hold.phase is Phase.SETTLING else (hold, [])
    decided = event.state in (State.APPROVED, State.REJECTED, State.RUNNING)
    ended = replace(hold, phase=Phase.ENDED, is_asked=False)
    return ended, hold._withdrawal(ANSWERED_ELSEWHERE if decided else CLOSED)


def _leave(hold: Hold, event: Gone, now: float) -> Step:
    closed = replace(hold, is_asked=False)
    return closed._settle(Close(State.CANCELED, event.reason), *hold._withdrawal(event.reason))


_TABLE: dict[tuple[Phase, type[Event]], Callable[[Hold, Any, float], Step]] = {
    **{(phase, Answered): _answer for phase in (Phase.INLINE, Phase.BOTH)},
    **{(phase, AskFailed): _lose_question for phase in (Phase.INLINE, Phase.BOTH)},
    **{(phase, Ticked): _tick for phase in (Phase.INLINE, Phase.BOTH, Phase.DASHBOARD)},
    **{(phase, Learned): _learn for phase in (Phase.INLINE, Phase.BOTH, Phase.DASHBOARD, Phase.SETTLING)},
    **{(phase, Gone): _leave for phase in (Phase.INLINE, Phase.BOTH, Phase.DASHBOARD, Phase.SETTLING)},
}
"""What is not here is ignored: an answer to a question that was withdrawn, a tick after the end."""
