"""What the design record is made of. Plain values, no I/O."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Status(StrEnum):
    """The standing of a node. Records are always committed."""

    COMMITTED = "committed"
    DRAFT = "draft"
    APPROVED = "approved"
    REJECTED = "rejected"
    ABANDONED = "abandoned"


class Decision(StrEnum):
    """How a run's change set ends."""

    APPROVE = "approve"
    REJECT = "reject"
    ABANDON = "abandon"


class ChangeKind(StrEnum):
    """What a row of the changelog says was done. `node_id` names the node concerned where there is one."""

    DEFINE = "define"
    """A committed revision; `ref` is KEY@n, now the head. `body`: kind."""
    DRAFT = "draft"
    """A draft revision; only the run in `run_id` sees it. `body`: kind."""
    RECORD = "record"
    """A record. `body`: kind."""
    ADOPT = "adopt"
    """A node from before items became KEY@n. `body`: kind."""
    APPROVE = "approve"
    """A draft became the head. `body`: kind, and `replaced`: the node id of the head before, or empty."""
    REJECT = "reject"
    ABANDON = "abandon"
    """A draft was closed and is no revision to read by key without its number."""
    CLOSE = "close"
    """A run's change set was closed; `ref` is the run, `body`: decision, reason, gate, refs."""
    LINK = "link"
    """A link was made; `ref` is its id, `node_id` its source. `body`: type, target_node_id, change_set."""
    SHOW_LINKS = "show_links"
    """The links of an approved draft became everybody's; `node_id` is their source."""
    REVIEW = "review"
    """A suspect link was reviewed; `ref` is its id. `body`: reviewed_revision."""
    PROJECT = "project"
    """A project was created, changed or deleted. `body`: what."""
    RUN = "run"
    """A run was registered or changed state; `ref` is the run. `body`: state, phase, gate."""
    SESSION = "session"
    BASELINE = "baseline"
    """A baseline was made; `ref` is its name."""


@dataclass(frozen=True)
class Reader:
    """Who reads: sees the drafts of its own run, and reads keys in its project first."""

    run_id: str = ""
    project_id: str = ""


@dataclass(frozen=True)
class Node:
    """One node: a revision of an item, or a record (`item_key` empty, `revision` None).

    `change_set`, `phase` and `gate` are those of the run that drafted it; an absent text is empty.
    """

    node_id: str
    kind: str
    name: str
    body: Mapping[str, Any]
    project_id: str
    item_id: str = ""
    item_key: str = ""
    revision: int | None = None
    status: Status = Status.COMMITTED
    change_set: str = ""
    phase: str = ""
    gate: str = ""
    change_reason: str = ""
    author: str = ""
    run_id: str = ""
    prior_node_id: str = ""
    decided_by: str = ""
    approved_at: str = ""
    status_reason: str = ""
    closed_at: str = ""
    adopted: bool = False
    created_at: str = ""

    @property
    def ref(self) -> str:
        """KEY@n, or the node id of a record."""
        return self.node_id if self.revision is None else f"{self.item_key}@{self.revision}"

    @property
    def subject(self) -> str:
        """What links are followed along: the item's id, or the node's own."""
        return self.item_id or self.node_id


@dataclass(frozen=True)
class Draft:
    """A run's latest draft of an item, and the head it was made from (None where there was none)."""

    run_id: str
    item_id: str
    node_id: str
    revision: int
    base_revision: int | None
    base_node_id: str | None
    phase: str


@dataclass(frozen=True)
class Item:
    """What keeps its identity while it is revised. `head_*` is None while it only has drafts."""

    item_id: str
    key: str
    kind: str
    family: str
    name: str
    project_id: str
    head_revision: int | None
    head_node_id: str | None
    last_revision: int
    created_at: str
    updated_at: str
    draft: Draft | None = None
    """The reader's own."""

    @property
    def head_ref(self) -> str | None:
        return None if self.head_revision is None else f"{self.key}@{self.head_revision}"

    @property
    def current_node_id(self) -> str | None:
        """What this reader reads as current: its run's draft, else the head."""
        return self.draft.node_id if self.draft else self.head_node_id

    @property
    def current_revision(self) -> int | None:
        return self.draft.revision if self.draft else self.head_revision


@dataclass(frozen=True)
class History:
    """An item and the revisions that the reader may see, oldest first."""

    item: Item
    revisions: tuple[Node, ...]

    @property
    def current(self) -> Node | None:
        """What this reader reads as current."""
        return next((node for node in self.revisions if node.node_id == self.item.current_node_id), None)


@dataclass(frozen=True)
class Link:
    """A typed link, pinned to the node it was made against."""

    link_id: str
    project_id: str
    type: str
    source_node_id: str
    source_subject: str
    source_revision: int | None
    target_node_id: str
    target_subject: str
    target_revision: int | None
    change_set: str = ""
    reviewed_revision: int | None = None
    reviewed_by: str = ""
    reviewed_at: str = ""
    body: Mapping[str, Any] = field(default_factory=dict)
    author: str = ""
    run_id: str = ""
    created_at: str = ""


@dataclass(frozen=True)
class Run:
    """A design-flow run as the twin needs it. `state` is "running" while it accepts drafts."""

    run_id: str
    project_id: str
    state: str
    flow_version: str = ""
    flow_approved: bool = False
    phase: str = ""
    gate: str = ""

    @property
    def running(self) -> bool:
        return self.state == "running"


@dataclass(frozen=True)
class Project:
    project_id: str
    name: str
    description: str
    status: str
    author: str
    created_at: str
    updated_at: str


@dataclass(frozen=True)
class ChangeEntry:
    """One row of the changelog."""

    seq: int
    at: str
    project_id: str
    kind: ChangeKind
    ref: str
    node_id: str
    body: Mapping[str, Any]
    author: str
    run_id: str


@dataclass(frozen=True)
class Session:
    session_id: str
    project_id: str
    client_session_id: str
    agent_code: str
    task_type: str
    title: str
    status: str
    """active, completed or failed."""
    summary: str
    implicit: bool
    author: str
    client_name: str
    event_count: int
    started_at: str
    last_event_at: str
    completed_at: str


@dataclass(frozen=True)
class SessionEvent:
    session_id: str
    seq: int
    event_id: str
    type: str
    message: str
    data: Mapping[str, Any]
    call_id: str
    author: str
    at: str
