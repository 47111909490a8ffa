"""Write revisions: which item a definition belongs to is settled in `resolution`, the writing is here."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from metaforge.core.errors import ToolError
from metaforge.twin.bodies import check_text
from metaforge.twin.ids import new_id
from metaforge.twin.kinds import definition_of
from metaforge.twin.model import ChangeKind, Item, Node, Run, Status
from metaforge.twin.records import insert_node
from metaforge.twin.refs import match_key
from metaforge.twin.resolution import resolve

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
    run = change.running_run()
    found = resolve(change, definition, name, item_key, supersedes)
    node = Node(
        new_id("n"), kind, name, body, change.project_id,
        change_reason=check_text(change_reason or change.reason, "The reason"), author=change.author,
        run_id=change.run_id, phase=run.phase if run else "", gate=run.gate if run else "", created_at=change.now,
        prior_node_id=found.prior_node_id,
    )  # fmt: skip
    if found.item is None:
        insert_node(change, node)
        change.log(ChangeKind.RECORD, node_id=node.node_id, body={"kind": kind})
        return node
    numbered = replace(
        node, project_id=found.item.project_id, item_id=found.item.item_id, item_key=found.item.key,
        revision=found.item.last_revision + 1,
    )  # fmt: skip
    return (
        _commit(change, found.item, numbered)
        if run is None
        else _draft(change, run, found.item, numbered, found.rebase)
    )


def _commit(change: "Change", item: Item, node: Node) -> Node:
    moved = change.transaction.run(
        _MOVE_HEAD,
        node.revision, node.node_id, node.revision, node.name, match_key(node.name), node.kind, change.now,
        item.item_id, item.last_revision,
    )  # fmt: skip
    _must_have_moved(item, moved)
    node = replace(node, status=Status.COMMITTED, prior_node_id=item.head_node_id or node.prior_node_id)
    insert_node(change, node)
    change.log(
        ChangeKind.DEFINE, ref=node.ref, node_id=node.node_id, project_id=node.project_id,
        body={"kind": node.kind, "replaced": item.head_node_id or ""},
    )  # fmt: skip
    return node


def _draft(change: "Change", run: Run, item: Item, node: Node, rebase: bool) -> Node:
    moved = change.transaction.run(_RESERVE, node.revision, change.now, item.item_id, item.last_revision)
    _must_have_moved(item, moved)
    before = item.draft
    node = replace(
        node, status=Status.DRAFT, change_set=run.run_id,
        prior_node_id=(before.node_id if before else item.head_node_id) or node.prior_node_id,
    )  # fmt: skip
    insert_node(change, node)
    keeps_base = before is not None and not rebase
    base = (before.base_revision, before.base_node_id) if before and keeps_base else (
        item.head_revision, item.head_node_id,
    )  # fmt: skip
    change.transaction.run(_DRAFT, run.run_id, item.item_id, node.node_id, node.revision, *base, run.phase)
    change.log(
        ChangeKind.DRAFT, ref=node.ref, node_id=node.node_id, project_id=node.project_id,
        body={"kind": node.kind, "replaced": before.node_id if before else ""},
    )  # fmt: skip
    return node


def _must_have_moved(item: Item, moved: int) -> None:
    if moved != 1:
        raise ToolError(
            f"Another writer revised {item.key} at the same moment", kind="stale_revision", retryable=True,
            fix="Repeat the call",
        )  # fmt: skip
