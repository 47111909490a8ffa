"""What the twin's tools return."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from metaforge.core.counts import counted
from metaforge.core.ids import sha256_bytes
from metaforge.twin.change import Change
from metaforge.twin.links import Suspect, doubts, suspects
from metaforge.twin.model import Item, Node, Status
from metaforge.twin.trace import node_row

MAX_SUSPECT_COUNT = 50
Row = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Written:
    """A node that was written; the item fields are there when it is a revision."""

    node_id: str
    content_hash: str
    project_linked: bool
    item_key: str | None = None
    revision: int | None = None
    item_ref: str | None = None
    revision_status: str | None = None
    draft_note: str | None = None
    suspect: list[Row] | None = None
    """What rests on the revision before, and has to be looked at again."""


def written(node: Node) -> dict[str, Any]:
    """Return the fields every write answers with."""
    fields: dict[str, Any] = {
        "node_id": node.node_id,
        "content_hash": node.body.get("content_hash") or content_hash(node.body),
        "project_linked": bool(node.project_id),
    }
    if node.revision is not None:
        fields |= {"item_key": node.item_key, "revision": node.revision, "item_ref": node.ref}
    if node.status is Status.DRAFT:
        fields |= {
            "revision_status": "draft",
            "draft_note": f"A draft in run {node.change_set}: the head of {node.item_key} moves when its gate approves",
        }
    return fields


def content_hash(body: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a body's canonical JSON."""
    return sha256_bytes(orjson.dumps(body, option=orjson.OPT_SORT_KEYS))


def left_behind(change: Change, node: Node) -> list[Row]:
    """Return what this new revision has made suspect: evidence, claims, decisions pinned to an earlier one."""
    if node.revision in (None, 1):
        return []
    found = suspects(change.view, node.item_id)
    doubtful = doubts(change.view, found)
    nodes = change.view.nodes(list(doubtful))
    return [_suspect_row(nodes[node_id], doubt.why) for node_id, doubt in doubtful.items() if node_id in nodes]


def suspect_warning(node: Node, rows: list[Row]) -> tuple[str, ...]:
    """Say that a revision has left something behind."""
    if not rows:
        return ()
    shown = ", ".join(f"{row['kind']} {row['ref']}" for row in rows[:5]) + (" ..." if len(rows) > 5 else "")
    return (
        f"{counted(len(rows), 'record rests', 'records rest')} on an earlier revision of {node.item_key} and "
        f"{'is' if len(rows) == 1 else 'are'} now suspect: {shown}",
    )


def homeless(project_linked: bool) -> tuple[str, ...]:
    """Say that a record belongs to no project, where it does not."""
    if project_linked:
        return ()
    return ("It belongs to no project: give project_id, or project.open one first, and record it there",)


def suspect_rows(found: list[Suspect]) -> list[Row]:
    """Return suspect links as rows."""
    return [_suspect_row(each.source, each.why) | {"link_id": each.link.link_id} for each in found[:MAX_SUSPECT_COUNT]]


def _suspect_row(node: Node, why: str) -> Row:
    return node_row(node) | {"why": why}


def node_json(node: Node) -> Row:
    """Return a node as a client reads it, with its content."""
    row: Row = {
        "node_id": node.node_id, "node_type": node.kind, "name": node.name, "ref": node.ref, "status": str(node.status),
        "project_id": node.project_id, "author": node.author, "created_at": node.created_at,
    }  # fmt: skip
    optional = {
        "item_key": node.item_key, "revision": node.revision, "change_set": node.change_set, "run_id": node.run_id,
        "phase": node.phase, "gate": node.gate, "change_reason": node.change_reason, "decided_by": node.decided_by,
        "approved_at": node.approved_at, "status_reason": node.status_reason, "prior_node_id": node.prior_node_id,
    }  # fmt: skip
    return row | {name: value for name, value in optional.items() if value} | {"properties": dict(node.body)}


def item_json(item: Item) -> Row:
    """Return an item as a client reads it."""
    row: Row = {
        "key": item.key, "item_type": item.kind, "name": item.name, "project_id": item.project_id,
        "head_revision": item.head_revision, "head_node_id": item.head_node_id, "head_ref": item.head_ref,
        "created_at": item.created_at, "updated_at": item.updated_at,
    }  # fmt: skip
    if item.draft is not None:
        row |= {
            "draft_revision": item.draft.revision, "draft_node_id": item.draft.node_id,
            "draft_ref": f"{item.key}@{item.draft.revision}",
        }  # fmt: skip
    return row


def revision_json(node: Node, item: Item) -> Row:
    """Return one line of an item's history."""
    return {
        "revision": node.revision, "node_id": node.node_id, "name": node.name, "status": str(node.status),
        "change_reason": node.change_reason or None, "run_id": node.run_id or None, "author": node.author or None,
        "change_set": node.change_set or None, "phase": node.phase or None, "gate": node.gate or None,
        "status_reason": node.status_reason or None, "decided_by": node.decided_by or None,
        "approved_at": node.approved_at or None, "created_at": node.created_at,
        "is_head": node.node_id == item.head_node_id, "adopted": node.adopted,
    }  # fmt: skip


@dataclass(frozen=True)
class NodeAnswer:
    node: Row
    neighbours: list[Row]
    edges: list[Row]


@dataclass(frozen=True)
class HistoryAnswer:
    item: Row
    revisions: list[Row]
    current: Row | None = None


@dataclass(frozen=True)
class FoundAnswer:
    nodes: list[Row]
    count: int


@dataclass(frozen=True, kw_only=True)
class DecisionAnswer(Written):
    parent_refs: list[str] = field(default_factory=list)
    evidence_refs: list[str] = field(default_factory=list)
    depends_on: list[str] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class DocumentAnswer(Written):
    size_bytes: int
    requirements_home: str | None = None
    requirement_refs: list[str] | None = None
    stray_requirement_values: list[str] | None = None
    requirement_warning: str | None = None


@dataclass(frozen=True, kw_only=True)
class EntityAnswer(Written):
    entity_type: str
    parent_ids: list[str]


@dataclass(frozen=True, kw_only=True)
class ComponentAnswer(Written):
    mpn: str
    category: str
    bom_work_product_id: str | None = None
    bom_ref: str | None = None


@dataclass(frozen=True, kw_only=True)
class ConstraintSetAnswer(Written):
    constraint_ids: list[str]
    constraint_parents: dict[str, list[str]]
    incomplete: list[Row]


@dataclass(frozen=True)
class ViolationsAnswer:
    passed: bool
    verdict: str
    evaluated_count: int
    skipped_count: int
    violations: list[Row]
    failed_warnings: list[Row]
    not_evaluated: list[Row]


@dataclass(frozen=True, kw_only=True)
class EvidenceAnswer(Written):
    result_hash: str
    execution_timestamp: str
    supports: list[str]
    contradicts: list[str]
    valid_against: list[str]
    valid_against_count: int
    superseded: str | None = None
    files_waiting: list[Row] | None = None
    """Files of the cited calls that are not in the store of contents yet, and why."""


@dataclass(frozen=True)
class ClaimAnswer:
    node_id: str
    artefact_id: str
    requirement_id: str
    claim_type: str
    evidence: list[str]
    status: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class GeometryAnswer(Written):
    content_uri: str
    model_url: str
    format: str
    size_bytes: int
    measured: Row
    measured_properties_missing: list[str] | None = None
    unchanged_since: str | None = None


@dataclass(frozen=True)
class StagedAnswer:
    node_id: str
    ref: str
    file_path: str
    filename: str
    size_bytes: int
    content_hash: str
    format: str


@dataclass(frozen=True)
class PromotionAnswer:
    gate_id: str
    level: str
    promoted: bool
    decided_by: str
    comment: str
    results: list[Row]
    blocked_reason: str | None = None
    waived: list[Row] | None = None
    """What would have blocked it, had a person not waived it."""


@dataclass(frozen=True)
class EngineeringChangeAnswer:
    ect_id: str
    decision: str
    refs: list[str]
    decided_by: str


@dataclass(frozen=True)
class ReviewAnswer:
    node_id: str
    target_ref: str
    state: str
    decided_by: str
