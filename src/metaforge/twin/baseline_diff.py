"""What differs between two baselines, or a baseline and the present: items, links, and what was recorded between."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from metaforge.twin.baselines import Entry, State, state
from metaforge.twin.difference import FieldChange, differences
from metaforge.twin.links import REQUIREMENT
from metaforge.twin.model import ChangeKind, Link, Node
from metaforge.twin.trace import node_row

if TYPE_CHECKING:
    from metaforge.twin.view import View

MAX_RECORDS = 1000


@dataclass(frozen=True)
class Step:
    """One revision between two states: who made it, when and why."""

    ref: str
    author: str
    created_at: str
    change_reason: str


@dataclass(frozen=True)
class ItemChange:
    """An item that is not the same in both states. `before` or `after` is None where it was added or removed."""

    item_key: str
    before: Entry | None
    after: Entry | None
    steps: tuple[Step, ...] = ()
    fields: tuple[FieldChange, ...] = ()

    @property
    def what(self) -> str:
        """added, removed or revised."""
        return "added" if self.before is None else "removed" if self.after is None else "revised"

    @property
    def name(self) -> str:
        entry = self.after or self.before
        return entry.name if entry else ""

    def as_json(self) -> dict[str, Any]:
        """Return the wire form."""
        row: dict[str, Any] = {
            "item_key": self.item_key, "what": self.what, "name": self.name,
            "before": self.before.ref if self.before else None, "after": self.after.ref if self.after else None,
        }  # fmt: skip
        if self.before and self.after and self.before.name != self.after.name:
            row["renamed_from"] = self.before.name
        row["revisions"] = [
            {"ref": step.ref, "author": step.author, "created_at": step.created_at, "change_reason": step.change_reason}
            for step in self.steps
        ]
        return row | {"fields": [field.as_json() for field in self.fields]}


@dataclass(frozen=True)
class LinkChange:
    """A link that one state has and the other has not."""

    what: str
    type: str
    source_ref: str
    target_ref: str

    def as_json(self) -> dict[str, str]:
        """Return the wire form."""
        return {"what": self.what, "type": self.type, "source_ref": self.source_ref, "target_ref": self.target_ref}


@dataclass(frozen=True)
class BaselineDiff:
    """From one state to another. `records` are decisions, evidence and claims recorded between the two."""

    before: State
    after: State
    items: tuple[ItemChange, ...]
    links: tuple[LinkChange, ...]
    records: tuple[Node, ...]
    unchanged_count: int

    def counts(self) -> dict[str, int]:
        """Return how many items were added, removed and revised."""
        return {what: sum(each.what == what for each in self.items) for what in ("added", "removed", "revised")}

    def as_json(self) -> dict[str, Any]:
        """Return the wire form."""
        return {
            "before": _state_row(self.before), "after": _state_row(self.after), "counts": self.counts(),
            "unchanged_count": self.unchanged_count, "items": [each.as_json() for each in self.items],
            "links": [each.as_json() for each in self.links],
            "records": [node_row(node) | {"author": node.author, "created_at": node.created_at}
                        for node in self.records],
        }  # fmt: skip


def _state_row(of: State) -> dict[str, Any]:
    return of.baseline.as_json() if of.baseline else {"name": of.name, "seq": of.seq, "item_count": len(of.entries)}


def diff_baselines(view: "View", before: str, after: str = "now") -> BaselineDiff:
    """Compare two baselines of the reader's project.

    Args:
        view: the reader's view.
        before: a baseline's name.
        after: another's, or `now`.

    Raises:
        ToolError: `unknown_baseline`, `baseline_damaged`.
    """
    left, right = state(view, before), state(view, after)
    keys = sorted(left.entries.keys() | right.entries.keys())
    changed = [key for key in keys if left.entries.get(key) != right.entries.get(key)]
    nodes = view.nodes([each.node_id for of in (left, right) for key in changed if (each := of.entries.get(key))])
    items = tuple(_item_change(view, left.entries.get(key), right.entries.get(key), nodes) for key in changed)
    links = tuple(link for item in items for link in _link_changes(view, item))
    records = tuple(_records(view, *sorted((left.seq, right.seq))))
    return BaselineDiff(left, right, items, links, records, len(keys) - len(changed))


def diff_nodes(before: Node, after: Node) -> tuple[FieldChange, ...]:
    """Return what differs between two nodes: name and body."""
    return (*differences({"name": before.name}, {"name": after.name}), *differences(before.body, after.body))


def _item_change(view: "View", before: Entry | None, after: Entry | None, nodes: Mapping[str, Node]) -> ItemChange:
    entry = after or before
    assert entry is not None, "a key is of one state at least"
    if before is None or after is None:
        steps = tuple(_steps(view, entry, 0, entry.revision)) if before is None else ()
        return ItemChange(entry.item_key, before, after, steps)
    low, high = sorted((before.revision, after.revision))
    fields: tuple[FieldChange, ...] = ()
    if before.node_id in nodes and after.node_id in nodes:
        fields = diff_nodes(nodes[before.node_id], nodes[after.node_id])
    return ItemChange(entry.item_key, before, after, tuple(_steps(view, entry, low, high)), fields)


def _steps(view: "View", entry: Entry, low: int, high: int) -> Iterator[Step]:
    query = (
        "select item_key, revision, author, created_at, change_reason from nodes "
        "where item_id = (select item_id from nodes where node_id = ?) and revision > ? and revision <= ? "
        "and status in ('committed', 'approved') order by revision"
    )
    for key, revision, author, created_at, reason in view.transaction.rows(query, entry.node_id, low, high):
        yield Step(f"{key}@{revision}", author, created_at, reason)


def _link_changes(view: "View", item: ItemChange) -> Iterator[LinkChange]:
    """Compare the outgoing links of an item's two revisions, by type, target and requirement."""
    sides = [_outgoing(view, item.before), _outgoing(view, item.after)]
    targets = view.nodes([link.target_node_id for side in sides for link in side.values()])
    for what, here, there in (("removed", sides[0], sides[1]), ("added", sides[1], sides[0])):
        entry = item.before if what == "removed" else item.after
        for identity, link in here.items():
            target = targets.get(link.target_node_id)
            if identity not in there and target is not None and entry is not None:
                yield LinkChange(what, link.type, entry.ref, target.ref)


def _outgoing(view: "View", entry: Entry | None) -> dict[tuple[str, str, str], Link]:
    if entry is None:
        return {}
    links = view.links(entry.node_id, direction="outgoing")
    return {(link.type, link.target_subject, str(link.body.get(REQUIREMENT, ""))): link for link in links}


def _records(view: "View", low: int, high: int) -> Iterator[Node]:
    query = (
        "select node_id from changelog where project_id = ? and seq > ? and seq <= ? and kind = ? order by seq limit ?"
    )
    found = view.transaction.rows(query, view.reader.project_id, low, high, str(ChangeKind.RECORD), MAX_RECORDS)
    nodes = view.nodes([row[0] for row in found])
    return (nodes[row[0]] for row in found if row[0] in nodes)
