"""Write revisions: which item a definition belongs to is settled in `resolution`, the writing is here."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from metaforge.core.errors import ToolError
from metaforge.twin.bodies import check_text
from metaforge.twin.ids import new_id
from metaforge.twin.kinds import definition_of
from metaforge.twin.model import ChangeKind, Item, Node, Run, Status
from metaforge.twin.records import insert_node
from metaforge.twin.refs import match_key
from metaforge.twin.resolution import Resolved, resolve

if TYPE_CHECKING:
    from metaforge.twin.change import Change

_MOVE_HEAD = (
    "update items set head_revision = ?, head_node_id = ?, last_revision = ?, name = ?, match_key = ?, kind = ?, "
    "updated_at = ? where item_id = ? and last_revision = ?"
)
_RESERVE = "update items set last_revision = ?, updated_at = ? where item_id = ? and last_revision = ?"
_DRAFT = (
    "insert into drafts (run_id, item_id, node_id, revision, base_revision, base_node_id, phase) "
    "values (?, ?, ?, ?, ?, ?, ?) on conflict (run_id, item_id) do update set node_id = excluded.node_id, "
    "revision = excluded.revision, base_revision = excluded.base_revision, base_node_id = excluded.base_node_id, "
    "phase = excluded.phase"
)


def define(
    change: "Change",
    kind: str,
    name: str,
    body: Mapping[str, Any],
    item_key: str,
    supersedes: str,
    change_reason: str,
) -> Node:
    """Write the next revision of an item; see `Change.define`."""
    definition = definition_of(kind)
    name = check_text(name.strip(), "The name")
    if not name:
        raise ToolError(f"The {kind} needs a name, and this one is empty", kind="empty_name")
    reason = check_text(change_reason or change.reason, "The reason")
    run = change.running_run()
    found = resolve(change, definition, name, item_key, supersedes)
    item = found.item
    if item is None:
        node = _node(change, kind, name, body, reason, found, Status.COMMITTED)
        insert_node(change, node)
        change.log(ChangeKind.RECORD, node_id=node.node_id, body={"kind": kind})
    elif run is None:
        node = _node(change, kind, name, body, reason, found, Status.COMMITTED)
        _commit(change, item, node)
    else:
        node = _node(change, kind, name, body, reason, found, Status.DRAFT)
        _draft(change, run, item, node, found.rebase)
    return node


def _node(
    change: "Change",
    kind: str,
    name: str,
    body: Mapping[str, Any],
    reason: str,
    found: Resolved,
    status: Status,
) -> Node:
    item, run = found.item, change.run
    return Node(
        new_id("n"), kind, name, body, item.project_id if item else change.project_id,
        item.item_id if item else "", item.key if item else "", item.last_revision + 1 if item else None,
        status, change.run_id if status is Status.DRAFT else "", run.phase if run else "", run.gate if run else "",
        reason, change.author, change.run_id, (item and item.current_node_id) or found.prior_node_id,
        created_at=change.now,
    )  # fmt: skip


def _commit(change: "Change", item: Item, node: Node) -> None:
    moved = change.transaction.run(
        _MOVE_HEAD,
        node.revision, node.node_id, node.revision, node.name, match_key(node.name), node.kind, change.now,
        item.item_id, item.last_revision,
    )  # fmt: skip
    _must_have_moved(item, moved)
    insert_node(change, node)
    change.log(
        ChangeKind.DEFINE, ref=node.ref, node_id=node.node_id, project_id=node.project_id,
        body={"kind": node.kind, "replaced": item.head_node_id or ""},
    )  # fmt: skip


def _draft(change: "Change", run: Run, item: Item, node: Node, rebase: bool) -> None:
    moved = change.transaction.run(_RESERVE, node.revision, change.now, item.item_id, item.last_revision)
    _must_have_moved(item, moved)
    insert_node(change, node)
    before = item.draft
    if before is None or rebase:
        base_revision, base_node_id = item.head_revision, item.head_node_id
    else:
        base_revision, base_node_id = before.base_revision, before.base_node_id
    change.transaction.run(
        _DRAFT, run.run_id, item.item_id, node.node_id, node.revision, base_revision, base_node_id, run.phase
    )
    change.log(
        ChangeKind.DRAFT, ref=node.ref, node_id=node.node_id, project_id=node.project_id,
        body={"kind": node.kind, "replaced": before.node_id if before else ""},
    )  # fmt: skip


def _must_have_moved(item: Item, moved: int) -> None:
    if moved != 1:
        raise ToolError(
            f"Another writer revised {item.key} at the same moment", kind="stale_revision", retryable=True,
            fix="Repeat the call",
        )  # fmt: skip
