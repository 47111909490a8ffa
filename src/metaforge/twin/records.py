"""Write nodes: records here, revisions through `definitions`."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from metaforge.core.errors import ToolError
from metaforge.twin import rows
from metaforge.twin.bodies import INLINE_BYTES, check_text, dump
from metaforge.twin.ids import new_id
from metaforge.twin.kinds import DEFINITIONS, checked_record_kind
from metaforge.twin.model import ChangeKind, Node
from metaforge.twin.search import handle_of

if TYPE_CHECKING:
    from metaforge.twin.change import Change

_INSERT = (
    f"insert into nodes ({rows.NODE_COLUMNS}, handle) values ({', '.join('?' * (rows.NODE_COLUMNS.count(',') + 2))})"
)


def record(change: "Change", kind: str, body: Mapping[str, Any], name: str, supersedes: str) -> Node:
    """Write a record; see `Change.record`."""
    checked_record_kind(kind)
    prior = change.view[supersedes] if supersedes else None
    if prior is not None and prior.kind in DEFINITIONS:
        raise ToolError(
            f"{supersedes} is a {prior.kind}: a {kind} cannot replace it", kind="other_kind",
            fix="Name the record that this one replaces",
        )  # fmt: skip
    node = Node(
        new_id("n"), kind, check_text(name, "The name"), body, change.project_id,
        change_reason=check_text(change.reason, "The reason"), author=change.author, run_id=change.run_id,
        phase=change.run.phase if change.run else "", gate=change.run.gate if change.run else "",
        prior_node_id=prior.node_id if prior else "", created_at=change.now,
    )  # fmt: skip
    insert_node(change, node)
    change.log(ChangeKind.RECORD, node_id=node.node_id, body={"kind": kind})
    if prior is not None:
        change.link("supersedes", node, prior)
    return node


def insert_node(change: "Change", node: Node) -> None:
    """Write a node as it is; a long body becomes a content of its own first, so that the row never names nothing.

    Raises:
        ToolError: `not_recordable`.
    """
    content = dump(node.body, f"The {node.kind} {node.name[:80]!r}")
    body, body_sha256 = (content.decode(), "") if len(content) <= INLINE_BYTES else ("", change.keep(content))
    change.transaction.run(
        _INSERT,
        node.node_id, node.kind, node.name, body, body_sha256, node.project_id, node.item_id or None, node.item_key,
        node.revision, node.status, node.change_set, node.phase, node.gate, node.change_reason, node.author,
        node.run_id, node.prior_node_id, node.decided_by, node.approved_at, node.status_reason, node.closed_at,
        int(node.adopted), node.created_at, handle_of(node.kind, node.body),
    )  # fmt: skip
