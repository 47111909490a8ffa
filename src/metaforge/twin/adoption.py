"""Take in nodes that were written before they had an item: a chain of them becomes its first revisions."""

from dataclasses import replace
from typing import TYPE_CHECKING

from metaforge.core.errors import ToolError
from metaforge.twin.kinds import DefinitionKind, kinds_of_family
from metaforge.twin.model import ChangeKind, Item, Node
from metaforge.twin.refs import match_key

if TYPE_CHECKING:
    from metaforge.twin.change import Change

MAX_CHAIN_COUNT = 200


def legacy_tip(change: "Change", definition: DefinitionKind, name: str) -> Node | None:
    """Return the latest node of the project, without an item, that a definition of this name revises."""
    kinds = kinds_of_family(definition.family)
    marks = ", ".join("?" * len(kinds))
    query = (
        f"select node_id, name from nodes where project_id = ? and kind in ({marks}) and item_id is null "
        "order by created_at desc, node_id desc"
    )
    wanted = match_key(name)
    for node_id, other in change.transaction.rows(query, change.project_id, *kinds):
        if definition.single or match_key(other) == wanted:
            return change.view.node(node_id)
    return None


def adopt(change: "Change", item: Item, tip: Node) -> Item:
    """Make a node and all it superseded, at most 200, the first revisions of an item, and return the item so.

    Raises:
        ToolError: `long_chain`.
    """
    chain = _chain(change, _latest(change, tip))
    for number, node in enumerate(reversed(chain), start=1):
        _adopt_one(change, item, node, number)
    head = chain[0]
    change.transaction.run(
        "update items set head_revision = ?, head_node_id = ?, last_revision = ? where item_id = ?",
        len(chain), head.node_id, len(chain), item.item_id,
    )  # fmt: skip
    return replace(item, head_revision=len(chain), head_node_id=head.node_id, last_revision=len(chain))


def _latest(change: "Change", node: Node) -> Node:
    """Follow a chain to its newest node."""
    query = (
        "select node_id from nodes where prior_node_id = ? and item_id is null and kind in ({marks}) "
        "order by created_at desc, node_id desc"
    )
    kinds = [node.kind, *_family_of(node.kind)]
    for _ in range(MAX_CHAIN_COUNT):
        row = change.transaction.row(query.format(marks=", ".join("?" * len(kinds))), node.node_id, *kinds)
        if row is None:
            return node
        node = change.view.node(row[0])
    raise _too_long(node)


def _chain(change: "Change", tip: Node) -> list[Node]:
    """Return a node and those it superseded, newest first."""
    chain = [tip]
    while chain[-1].prior_node_id:
        before = change.view.nodes([chain[-1].prior_node_id]).get(chain[-1].prior_node_id)
        if before is None or before.item_id:
            break
        chain.append(before)
        if len(chain) > MAX_CHAIN_COUNT:
            raise _too_long(tip)
    return chain


def _adopt_one(change: "Change", item: Item, node: Node, number: int) -> None:
    change.transaction.run(
        "update nodes set item_id = ?, item_key = ?, revision = ?, project_id = ?, adopted = 1 where node_id = ?",
        item.item_id, item.key, number, item.project_id, node.node_id,
    )  # fmt: skip
    for end in ("source", "target"):
        change.transaction.run(
            f"update links set {end}_subject = ?, {end}_revision = ? where {end}_node_id = ?",
            item.item_id, number, node.node_id,
        )  # fmt: skip
    change.log(
        ChangeKind.ADOPT, ref=f"{item.key}@{number}", node_id=node.node_id, body={"kind": node.kind},
        project_id=item.project_id,
    )  # fmt: skip


def _family_of(kind: str) -> tuple[str, ...]:
    from metaforge.twin.kinds import DEFINITIONS

    known = DEFINITIONS.get(kind)
    return kinds_of_family(known.family) if known else ()


def _too_long(node: Node) -> ToolError:
    return ToolError(
        f"{node.node_id} stands in a chain of more than {MAX_CHAIN_COUNT} nodes: it cannot be taken in as one item",
        kind="long_chain", fix="Start a new item with item_key",
    )  # fmt: skip
