"""Find nodes by a property's value, on either database."""

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import orjson

from metaforge.twin import rows
from metaforge.twin.model import Node

if TYPE_CHECKING:
    from metaforge.twin.view import View

COLUMNS = frozenset({"name", "status", "author", "run_id", "item_key", "revision", "project_id", "phase"})


def find(view: "View", node_type: str, property: str, value: Any, limit: int) -> Iterator[Node]:
    """Yield nodes in which a property has a value; see `View.find`."""
    # What SQL cannot tell apart (1 and true) or look into (lists, long bodies) is judged once more here.
    condition, values = _condition(view, property, value)
    reader = view.reader
    query = (
        f"select {rows.prefixed(rows.NODE_COLUMNS, 'nodes')} from nodes left join items "
        "on items.item_id = nodes.item_id left join drafts on drafts.item_id = nodes.item_id and drafts.run_id = ? "
        "where nodes.kind = ? and (? = '' or nodes.project_id = ?) and (nodes.item_id is null "
        f"or nodes.node_id = coalesce(drafts.node_id, items.head_node_id)) and ({condition}) "
        "order by nodes.node_id desc"
    )
    project_id = reader.project_id
    count = 0
    for row in view.transaction.each(query, reader.run_id, node_type, project_id, project_id, *values):
        node = view.node_of(row)
        if same(_value_of(node, property), value):
            yield node
            count += 1
            if count >= limit:
                return


def _condition(view: "View", property: str, value: Any) -> tuple[str, list[Any]]:
    if property in COLUMNS:
        if property == "revision":
            return ("nodes.revision = ?", [value]) if type(value) is int else ("1 = 0", [])
        return (f"nodes.{property} = ?", [value]) if isinstance(value, str) else ("1 = 0", [])
    steps = property.split(".")
    if view.transaction.postgres:
        if "\\u0000" in (wanted := orjson.dumps(value).decode()):
            return "1 = 0", []  # no content holds it, and jsonb refuses it
        # A case keeps the cast away from the empty text that stands where a body is a content of its own.
        return "case when nodes.body_sha256 <> '' then true else nodes.body::jsonb #> ?::text[] = ?::jsonb end", [
            steps,
            wanted,
        ]
    if _SAFE_PATH.fullmatch(property) and (
        isinstance(value, str | float) or (type(value) is int and abs(value) < 2**63)
    ):
        path = "$" + "".join(f'."{step}"' for step in steps)
        return "nodes.body_sha256 <> '' or json_extract(nodes.body, ?) = ?", [path, value]
    return "1 = 1", []


def _value_of(node: Node, property: str) -> Any:
    if property in COLUMNS:
        return getattr(node, property)
    value: Any = node.body
    for step in property.split("."):
        if not isinstance(value, Mapping) or step not in value:
            return _ABSENT
        value = value[step]
    return value


def same(left: Any, right: Any) -> bool:
    """Whether two JSON values are equal: 1 and 1.0 are, 1 and true are not."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(same(left[name], right[name]) for name in left)
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(same(a, b) for a, b in zip(left, right, strict=True))
    return bool(left == right)


_ABSENT = object()
_SAFE_PATH = re.compile(r'[^"\\\x00-\x1f]+')
"""SQLite's paths have no way to write the other characters."""
