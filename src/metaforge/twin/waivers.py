"""Waivers: a person accepts that something stands in the way of a release, for the design exactly as it is.

Anybody records one, with its reason; it changes nothing until an identified person has approved it. It covers what it
named as that stood: once the requirement says something else, a part it is open on is revised, another part joins it
or the violation grows, it covers that no more.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from metaforge.core.errors import ToolError
from metaforge.twin.links import LinkType, Suspect, requirement_entry, suspects
from metaforge.twin.matrix import Matrix, Row, matrix
from metaforge.twin.model import Node
from metaforge.twin.pinning import CONSTRAINT_SET, Pinned
from metaforge.twin.requirements import check_named
from metaforge.twin.trace import replaced
from metaforge.twin.verification import Status

if TYPE_CHECKING:
    from metaforge.twin.view import View

KIND = "waiver"
_GREW = 1e-6
"""A margin that changed by less is the same margin."""


@dataclass(frozen=True)
class Waiver:
    """A recorded waiver.

    Attributes:
        node_id: of its record.
        reason: why, in the words of whoever recorded it.
        author: who recorded it.
        approver: the person who approved it; empty while nobody has.
        covers: what it named, and how that stood.
    """

    node_id: str
    reason: str
    author: str
    approver: str
    approver_verified: bool
    approved_at: str
    covers: tuple[Mapping[str, Any], ...]

    def as_json(self) -> dict[str, Any]:
        """Return the wire form."""
        return {
            "waiver": self.node_id, "reason": self.reason, "recorded_by": self.author, "approved_by": self.approver,
            "approver_verified": self.approver_verified, "approved_at": self.approved_at,
        }  # fmt: skip


@dataclass(frozen=True)
class Coverage:
    """The waiver that covers something, or else why the latest one that names it does not."""

    waiver: Waiver | None = None
    note: str = ""


NOT_COVERED = Coverage()


class Waivers:
    """The waivers of the reader's project."""

    def __init__(self, view: "View") -> None:
        self._view = view
        self._named: dict[tuple[str, str], list[tuple[Waiver, Mapping[str, Any]]]] = defaultdict(list)
        nodes = {node.node_id: node for node in view.current_nodes(KIND)}
        in_force = sorted(nodes.keys() - replaced(view, list(nodes)), reverse=True)
        for node_id in in_force:
            waiver = _waiver(nodes[node_id], _approval(view, node_id))
            for each in waiver.covers:
                self._named[_key(str(each["ref"]))].append((waiver, each))

    def of_requirement(self, row: Row) -> Coverage:
        """Tell whether a requirement may stay open as it is."""
        return self._find(row.ref, lambda told: self._changed(told, row))

    def of_ref(self, ref: str) -> Coverage:
        """Tell whether a need or an objective may stay unanswered."""
        return self._find(ref, lambda told: _other_revision(told, ref))

    def of_suspect(self, suspect: Suspect) -> Coverage:
        """Tell whether a link may stay suspect."""
        ref, now = suspect.source.ref, _pinned(suspect)

        def changed(told: Mapping[str, Any]) -> str:
            known = told.get("suspect_links") or ()
            return _other_revision(told, ref) or ("" if now in known else f"it does not know {now.partition(' ')[2]}")

        return self._find(ref, changed)

    def _find(self, ref: str, changed: Callable[[Mapping[str, Any]], str]) -> Coverage:
        notes = []
        for waiver, told in self._named.get(_key(ref), ()):
            reason = changed(told)
            if not reason and waiver.approver:
                return Coverage(waiver)
            why = f"covers it no more: {reason}" if reason else "waits for a person's approval and changes nothing yet"
            notes.append(f"Waiver {waiver.node_id} {why}")
        return Coverage(note=notes[0]) if notes else NOT_COVERED

    def _changed(self, told: Mapping[str, Any], row: Row) -> str:
        if told["ref"] != row.ref and not self._same_demand(told, row):
            return f"the requirement changed since {told['ref']}"
        if row.open_count > len(row.open_on):
            return f"it is open on {row.open_count} work products"
        if new := [each for each in row.open_on if each not in told["open_on"]]:
            was = ", ".join(told["open_on"]) or "nothing"
            return f"it is open on {', '.join(new[:5])}, the waiver was given for {was}"
        if row.status is Status.FAIL and told["status"] != Status.FAIL:
            return f"it fails, and had {told['status'].replace('_', ' ')} when the waiver was given"
        before, now = told.get("margin_ratio"), row.worst_margin_ratio
        if now is not None and before is not None and now < before - _GREW:
            return f"its margin is {100 * now:.3g} %, the waiver was given at {100 * before:.3g} %"
        return ""

    def _same_demand(self, told: Mapping[str, Any], row: Row) -> bool:
        name = row.name
        before = requirement_entry(self._view.node(str(told["set_node_id"])), name)
        return before is not None and before == requirement_entry(self._view[row.set_ref], name)


def waived(view: "View", named: Sequence[Pinned]) -> tuple[list[dict[str, Any]], list[str]]:
    """Return what a waiver covers: how each thing that it names stands now, and which of them need none.

    Args:
        view: the view of whoever records it.
        named: requirements (KEY#name), needs, objectives, or what has suspect links.

    Raises:
        ToolError: `unknown_requirement` for a whole constraint set, `too_many_to_waive`.
    """
    whole = matrix(view)
    found = suspects(view)
    entries, idle = [], []
    for each in named:
        check_named(each.node, each.requirement, "parent_refs")
        entry = _of_requirement(whole, each) if each.node.kind == CONSTRAINT_SET else _of_node(found, each)
        entries.append(entry)
        if not _is_open(entry, whole):
            idle.append(each.ref)
    return entries, idle


def unmoved(entries: list[dict[str, Any]], named: Sequence[Pinned]) -> list[dict[str, Any]]:
    """Return the entries, if what they name is still what it was; raises ToolError `stale_revision`."""
    moved = [each.ref for entry, each in zip(entries, named, strict=True) if entry["ref"] != each.ref]
    if moved:
        raise ToolError(
            f"{', '.join(moved)} was revised while the waiver was recorded", kind="stale_revision", retryable=True,
            fix="Look at how it stands now, and record the waiver again",
        )  # fmt: skip
    return entries


def _of_requirement(whole: Matrix, named: Pinned) -> dict[str, Any]:
    row = next((row for row in whole.rows if row.ref == named.ref), None)
    if row is None:
        raise ToolError(
            f"{named.ref} is not in force", kind="not_in_force", where=named.ref,
            fix=f"Name {named.node.item_key}#{named.requirement}, the requirement as it is now",
        )  # fmt: skip
    if row.open_count > len(row.open_on):
        raise ToolError(
            f"{row.ref} is open on {row.open_count} work products: nobody has looked at each of them",
            kind="too_many_to_waive", where=row.ref, fix="Change the requirement, or what it applies to",
        )  # fmt: skip
    entry: dict[str, Any] = {
        "ref": row.ref, "set_node_id": named.node.node_id, "status": str(row.status), "open_on": list(row.open_on),
    }  # fmt: skip
    return entry if row.worst_margin_ratio is None else entry | {"margin_ratio": row.worst_margin_ratio}


def _of_node(found: Iterable[Suspect], named: Pinned) -> dict[str, Any]:
    links = [_pinned(each) for each in found if each.source.node_id == named.node.node_id]
    return {"ref": named.ref, **({"suspect_links": links} if links else {})}


def _is_open(entry: Mapping[str, Any], whole: Matrix) -> bool:
    if "status" in entry and entry["status"] != Status.PASS:
        return True
    return "suspect_links" in entry or any(gap.ref == entry["ref"] for gap in whole.uncovered)


def _waiver(node: Node, approval: Node | None) -> Waiver:
    body = approval.body if approval else {}
    return Waiver(
        node.node_id, str(node.body.get("statement") or node.name), node.author, str(body.get("decided_by") or ""),
        bool(body.get("approver_verified")), approval.created_at if approval else "",
        tuple(each for each in node.body.get("waives") or () if isinstance(each, Mapping)),
    )  # fmt: skip


def _approval(view: "View", node_id: str) -> Node | None:
    """Return the first record by which a person approved exactly this waiver."""
    links = view.links(node_id, type=LinkType.DECIDES_ON, direction="incoming")
    for node in view.nodes([link.source_node_id for link in links]).values():
        if node.kind == "approval" and node.body.get("decision") == "review" and node.body.get("state") == "approved":
            return node
    return None


def _key(ref: str) -> tuple[str, str]:
    """Return what a reference names whatever its revision: an item's key or a record, and a requirement."""
    whole, _, requirement = ref.partition("#")
    return whole.partition("@")[0], requirement


def _other_revision(told: Mapping[str, Any], ref: str) -> str:
    return "" if told["ref"] == ref else f"it was given for {told['ref']}, and {ref} is current"


def _pinned(suspect: Suspect) -> str:
    return f"{suspect.link.link_id} {suspect.current.ref if suspect.current else suspect.target_key}"
