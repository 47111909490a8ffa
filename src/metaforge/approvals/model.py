"""What a held call is, who decides it and what may happen to it. No I/O.

Times are ISO 8601 in UTC with milliseconds (`core.clock.utc_now`), so that they compare as texts.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import cached_property
from typing import Any, Literal

from metaforge.approvals.showing import shown_arguments
from metaforge.core.ids import new_call_id
from metaforge.tools.context import Caller
from metaforge.tools.effect import Effect

ORPHAN_SECONDS = 30.0
"""How long after its window an entry whose holder says nothing is ended by somebody else."""


class State(StrEnum):
    """Where an entry is. Everything but the first three is an end."""

    AWAITING = "awaiting_approval"
    APPROVED = "approved"
    RUNNING = "running"
    COMPLETED = "completed"
    REJECTED = "rejected"
    TIMED_OUT = "timed_out"
    CANCELED = "canceled"
    FAILED = "failed"

    @property
    def ended(self) -> bool:
        """Whether nothing can happen to the entry any more."""
        return self not in OPEN_STATES


OPEN_STATES = frozenset({State.AWAITING, State.APPROVED, State.RUNNING})


class Route(StrEnum):
    """Where the question is put."""

    ELICITATION = "elicitation"
    DASHBOARD = "dashboard"
    BOTH = "both"


class Kind(StrEnum):
    """Whether any person may answer, or it is a decision that is a person's alone."""

    TOOL_CALL = "tool_call"
    HUMAN_AUTHORITY = "human_authority"


Surface = Literal["elicitation", "dashboard", "cli", "agent"]
Verdict = Literal["approve", "reject"]
Status = Literal["pending", "decided", "all"]


@dataclass(frozen=True)
class Approver:
    """Who decided, as the surface knows them; never taken from a form or from arguments."""

    name: str
    verified: bool
    surface: Surface
    on_behalf_of: str = ""
    agent: str = ""


@dataclass(frozen=True)
class Request:
    """One call that waits for a person: everything they are asked about."""

    approval_id: str
    call_id: str
    tool_id: str
    kind: Kind
    effect: Effect
    arguments: Mapping[str, Any]
    """Complete, as the call would run with them; what people see is `showing.shown_arguments`."""
    digest: str
    """`digest.call_digest` of tool, arguments, project, caller and adapter version."""
    adapter_version: str
    project_id: str
    run_id: str
    caller: Caller
    title: str
    summary: str
    reason_held: str
    route: Route
    created_at: str
    expires_at: str
    window_seconds: float
    change: Mapping[str, Any] = field(default_factory=dict)
    """What it would do to the design: `{"now": ..., "after": ..., "pictures": [sha256 of an artefact]}`."""

    @cached_property
    def shown(self) -> Mapping[str, Any]:
        """The arguments as people see them."""
        return shown_arguments(self.arguments)


@dataclass(frozen=True)
class Decision:
    """A person's answer."""

    decision: Verdict
    approver: Approver
    reason: str
    decided_at: str
    arguments: Mapping[str, Any] | None = None
    """The arguments to run instead, where the person changed them."""
    digest: str = ""
    """The digest of the call that was decided: the request's own, or that of the changed arguments."""

    @cached_property
    def shown(self) -> Mapping[str, Any] | None:
        """The changed arguments as people see them."""
        return None if self.arguments is None else shown_arguments(self.arguments)


@dataclass(frozen=True)
class Entry:
    """A request and what became of it."""

    request: Request
    state: State
    on_dashboard: bool
    """Whether it may be decided outside the client that asked."""
    decision: Decision | None = None
    ended_reason: str = ""
    updated_at: str = ""
    holder: str = ""
    """Which process waits for it or runs it."""
    seq: int = 0
    """The ledger's last event about it."""
    hash: str = ""
    """The hash of that event."""

    @property
    def approval_id(self) -> str:
        return self.request.approval_id

    @property
    def arguments(self) -> Mapping[str, Any]:
        """What runs: the approved arguments, which the person may have changed."""
        if self.decision is not None and self.decision.arguments is not None:
            return self.decision.arguments
        return self.request.arguments

    @property
    def digest(self) -> str:
        """The digest that `Ledger.claim` takes."""
        return self.decision.digest if self.decision is not None else self.request.digest

    @property
    def edited(self) -> bool:
        """Whether the person changed the arguments."""
        return self.decision is not None and self.decision.arguments is not None


@dataclass(frozen=True)
class Verification:
    """What became of checking the whole chain."""

    entries: int
    """Events that were checked."""
    head: str
    """The hash of the last one: keep it elsewhere, and no later rewriting goes unnoticed."""
    broken_at: int | None = None
    """The first event that does not fit, by its number."""
    reason: str = ""

    @property
    def sound(self) -> bool:
        return self.broken_at is None and not self.reason


def new_approval_id() -> str:
    """Return `run_` and 16 hex digits."""
    return "run_" + new_call_id()


def later(moment: str, seconds: float) -> str:
    """Return the time so many seconds after another, in the same form."""
    then = datetime.fromisoformat(moment) + timedelta(seconds=seconds)
    return then.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def seconds_between(earlier: str, moment: str) -> float:
    """Return the seconds from one time to another; negative when it is before."""
    return (datetime.fromisoformat(moment) - datetime.fromisoformat(earlier)).total_seconds()
