"""What links mean, and which of them are suspect: pinned to a revision that the design has left behind.

A link's source rests on its target: when the target is revised, whoever made the source has to look again.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from metaforge.twin import rows
from metaforge.twin.model import Link, Node, Status

if TYPE_CHECKING:
    from metaforge.twin.view import View


class LinkType(StrEnum):
    """The types that have a meaning here; others may be used, and are followed like these.

    Where an end is one requirement of a constraint set, the link goes to the set's revision and its body names the
    requirement: `{"requirement": "max_mass"}`.
    """

    DEPENDS_ON = "depends_on"
    """A decision, or a part, rests on exactly this revision."""
    DERIVES_FROM = "derives_from"
    """A need, objective, requirement ... comes from what it is derived from."""
    IMPLEMENTS = "implements"
    """A requirement of a constraint set answers a need or an objective."""
    SATISFIES = "satisfies"
    """A claim, or a part, says that it meets a requirement."""
    CLAIMS = "claims"
    """A claim is about this artefact."""
    CITES = "cites"
    """A claim or a decision rests on this evidence."""
    SUPPORTS = "supports"
    CONTRADICTS = "contradicts"
    """Evidence speaks for or against a requirement, a claim or an entity."""
    VALID_AGAINST = "valid_against"
    """Evidence was made with exactly this revision; it says nothing about others."""
    VERIFIES = "verifies"
    """A verification case is how a requirement will be checked."""
    SUPERSEDES = "supersedes"
    """A record replaces an earlier one, which counts no more."""
    WAIVES = "waives"
    """A waiver accepts that this stands as it does; it expires by itself, and is never suspect."""
    DECIDES_ON = "decides_on"
    """An approval is of this, exactly as it is."""


REQUIREMENT = "requirement"
"""The field of a link's body that names one requirement of a constraint set."""

NEVER_SUSPECT = (LinkType.SUPERSEDES, LinkType.WAIVES)
"""Types whose source is not to be looked at again when the target is revised."""

_REPLACED = (
    "exists (select 1 from links newer where newer.target_node_id = links.source_node_id "
    "and newer.type = 'supersedes' and newer.change_set in ('', ?))"
)
_HEAD = "(select head_revision from items where items.item_id = links.source_subject)"
_DRAFT = "(select revision from drafts where drafts.item_id = links.source_subject and drafts.run_id = ?)"


def live(run_id: str) -> tuple[str, tuple[str, ...]]:
    """Return the condition that a link's source counts, and its values.

    It counts when it is what the reader reads as current, or a record that no other has replaced.

    Args:
        run_id: the reader's.
    """
    current, values = (f"coalesce({_DRAFT}, {_HEAD})", (run_id, run_id)) if run_id else (_HEAD, ("",))
    return (
        f"(case when links.source_revision is null then not {_REPLACED} else links.source_revision = {current} end)",
        values,
    )


_SUSPECT = (
    f"select {rows.prefixed(rows.LINK_COLUMNS, 'links')}, target.key, target_node.status, "
    "coalesce(target_draft.node_id, target.head_node_id) "
    "from links join items target on target.item_id = links.target_subject "
    "join nodes target_node on target_node.node_id = links.target_node_id "
    "left join drafts target_draft on target_draft.item_id = target.item_id and target_draft.run_id = ? "
    "where {scope} and links.change_set in ('', ?) and links.type not in ('supersedes', 'waives') "
    "and links.source_subject <> links.target_subject "
    "and coalesce(links.reviewed_revision, 0) < coalesce(target_draft.revision, target.head_revision, 1) "
    "and (links.target_revision < coalesce(target_draft.revision, target.head_revision) "
    "or target_node.status in ('rejected', 'abandoned')) and {live} "
    "order by target.key, links.created_at, links.link_id"
)


@dataclass(frozen=True)
class Suspect:
    """A link whose target was revised after it was made, or last reviewed.

    Attributes:
        link: the link.
        source: what rests on the target.
        pinned_ref: the revision it was made against, or was last reviewed against.
        current: the target as the reader reads it now; None where the item has no approved revision.
        why: one sentence.
    """

    link: Link
    source: Node
    pinned_ref: str
    current: Node | None
    why: str

    @property
    def target_key(self) -> str:
        return self.pinned_ref.partition("@")[0]


def suspects(view: "View", subject: str = "") -> list[Suspect]:
    """Return the suspect links that the reader sees, by target.

    A link that names one requirement of a constraint set is suspect only once that requirement itself has changed.

    Args:
        view: the reader's view.
        subject: only links to this item (its id); by default all of the project.
    """
    run_id, project_id = view.reader.run_id, view.reader.project_id
    scope, value = ("links.target_subject = ?", subject) if subject else ("links.project_id = ?", project_id)
    condition, values = live(run_id)
    found = view.transaction.rows(_SUSPECT.format(scope=scope, live=condition), run_id, value, run_id, *values)
    width = rows.LINK_COLUMNS.count(",") + 1
    links = [(rows.link_of(row[:width]), *row[width:]) for row in found]
    wanted = {link.source_node_id for link, *_ in links} | {node_id for *_, node_id in links if node_id}
    wanted |= {link.target_node_id for link, *_ in links if REQUIREMENT in link.body}
    nodes = view.nodes(sorted(wanted))
    made = []
    for link, key, status, node_id in links:
        source, current = nodes.get(link.source_node_id), nodes.get(node_id or "")
        if source is None or _same_requirement(link, nodes.get(link.target_node_id), current):
            continue
        pinned = f"{key}@{max(link.target_revision or 0, link.reviewed_revision or 0)}"
        made.append(Suspect(link, source, pinned, current, _why(pinned, Status(status), current, link)))
    return made


def _same_requirement(link: Link, pinned: Node | None, current: Node | None) -> bool:
    name = link.body.get(REQUIREMENT)
    if not name or pinned is None or current is None or pinned.status in (Status.REJECTED, Status.ABANDONED):
        return False
    before = requirement_entry(pinned, name)
    return before is not None and before == requirement_entry(current, name)


def requirement_entry(constraint_set: Node, name: str) -> Mapping[str, Any] | None:
    """Return one requirement of a constraint set as it stands there, or None."""
    entries = constraint_set.body.get("constraints") or ()
    return next((entry for entry in entries if isinstance(entry, Mapping) and entry.get("name") == name), None)


def _why(pinned_ref: str, pinned_status: Status, current: Node | None, link: Link) -> str:
    if pinned_status in (Status.REJECTED, Status.ABANDONED):
        now = f"; {current.ref} is current" if current else ""
        return f"{pinned_ref} was {pinned_status} and never became part of the design{now}"
    assert current is not None, "a revision above the pinned one is current"
    # Of a set that implements a need, the requirement named is the set's own and the need has none.
    name = link.body.get(REQUIREMENT) if current.kind == "constraint_set" else None
    if name and requirement_entry(current, name) is None:
        return f"{current.ref} has no requirement {name} any more"
    what = f"requirement {name} changed in {current.ref}" if name else f"revised to {current.ref}"
    return f"{what}: {current.change_reason}" if current.change_reason else what


@dataclass(frozen=True)
class Doubt:
    """Why a node cannot be relied on now: a suspect link of its own, or something doubtful that it rests on."""

    node_id: str
    why: str
    link_id: str
    through: tuple[str, ...] = ()
    """The node ids from this one to the source of the suspect link; empty where the link is its own."""


def doubts(view: "View", found: Iterable[Suspect] | None = None) -> dict[str, Doubt]:
    """Return every node of the project that is in doubt: sources of suspect links, and claims and decisions on them.

    Args:
        view: the reader's view.
        found: the suspect links to start from; all of the project by default.
    """
    made: dict[str, Doubt] = {}
    for each in suspects(view) if found is None else found:
        made.setdefault(each.source.node_id, Doubt(each.source.node_id, each.why, each.link.link_id))
    waiting = deque(made)
    while waiting:
        doubt = made[waiting.popleft()]
        for dependent in _resting_on(view, doubt.node_id):
            if dependent not in made:
                made[dependent] = Doubt(dependent, doubt.why, doubt.link_id, (doubt.node_id, *doubt.through))
                waiting.append(dependent)
    return made


def _resting_on(view: "View", node_id: str) -> list[str]:
    """Return the records that rest on evidence or a claim: they cite it, or it supports them."""
    resting = [link.source_node_id for link in view.links(node_id, direction="incoming", type=LinkType.CITES)]
    outgoing = view.links(node_id, direction="outgoing", type=LinkType.SUPPORTS)
    return resting + [link.target_node_id for link in outgoing if link.target_revision is None]
