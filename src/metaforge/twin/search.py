"""Find nodes by a property's value, on either database."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import orjson

from metaforge.twin import rows
from metaforge.twin.model import Node

if TYPE_CHECKING:
    from metaforge.twin.view import View

COLUMNS = frozenset({"name", "status", "author", "run_id", "item_key", "revision", "project_id", "phase"})
_HANDLES = {"component_selection": "mpn"}
_HANDLE = "content_hash"
"""What bodies are looked up by, through an index: bought parts by their number, all else by their file's digest."""
_HANDLE_CHARS = 200
_PART = 400
_UNTOLD = "?"
"""The handle of a long body from before there were handles."""


def handle_of(kind: str, body: Mapping[str, Any]) -> str:
    """Return what a node of this kind is looked up by, or an empty text where it has no such value."""
    value = body.get(_HANDLES.get(kind, _HANDLE))
    return value if isinstance(value, str) and len(value) <= _HANDLE_CHARS else ""


def find(view: "View", node_type: str, property: str, value: Any, limit: int) -> Iterator[Node]:
    """Yield nodes in which a property has a value; see `View.find`."""
    count = 0
    for condition, values in _conditions(view, node_type, property, value):
        # What SQL cannot tell apart (1 and true) or look into (lists, long bodies) is judged once more here.
        for node in _matching(view, node_type, condition, values):
            if same(_value_of(node, property), value):
                yield node
                count += 1
                if count >= limit:
                    return


def _matching(view: "View", node_type: str, condition: str, values: Sequence[Any]) -> Iterator[Node]:
    reader = view.reader
    project, of_project = ("nodes.project_id = ? and ", (reader.project_id,)) if reader.project_id else ("", ())
    query = (
        f"select {rows.prefixed(rows.NODE_COLUMNS, 'nodes')} from nodes left join items "
        "on items.item_id = nodes.item_id left join drafts on drafts.item_id = nodes.item_id and drafts.run_id = ? "
        f"where {project}nodes.kind = ? and (nodes.item_id is null "
        f"or nodes.node_id = coalesce(drafts.node_id, items.head_node_id)) and ({condition}) "
        "order by nodes.node_id desc"
    )
    for row in view.transaction.each(query, reader.run_id, *of_project, node_type, *values):
        yield view.node_of(row)


def _conditions(view: "View", node_type: str, property: str, value: Any) -> Iterator[tuple[str, Sequence[Any]]]:
    """Yield conditions whose matches, one after the other, are in the order of writing, the latest first."""
    indexed = _indexed(node_type, property, value)
    if indexed is None:
        yield _condition(view, property, value)
        return
    # Asked by themselves: without statistics a planner prefers the order that is asked for to an index that finds.
    ids = sorted((row[0] for row in view.transaction.rows(*indexed)), reverse=True)
    for start in range(0, len(ids), _PART):
        part = ids[start : start + _PART]
        yield f"nodes.node_id in ({', '.join('?' * len(part))})", part


def _indexed(node_type: str, property: str, value: Any) -> tuple[str, *tuple[str, ...]] | None:
    """Return a query by which an index finds the nodes, and its values; None where there is no such index."""
    if not isinstance(value, str):
        return None
    if property == "item_key":
        query = "select nodes.node_id from items join nodes on nodes.item_id = items.item_id where items.key = ?"
        return query, value
    if property == _HANDLES.get(node_type, _HANDLE) and 0 < len(value) <= _HANDLE_CHARS:
        return "select node_id from nodes where handle != '' and handle in (?, ?)", value, _UNTOLD
    return None


def _condition(view: "View", property: str, value: Any) -> tuple[str, list[Any]]:
    if property in COLUMNS:
        return _of_column(property, value)
    steps = property.split(".")
    if view.transaction.postgres:
        if "\\u0000" in (wanted := orjson.dumps(value).decode()):
            return "1 = 0", []  # no content holds it, and jsonb refuses it
        # A case keeps the cast away from the empty text that stands where a body is a content of its own.
        return "case when nodes.body_sha256 <> '' then true else nodes.body::jsonb #> ?::text[] = ?::jsonb end", [
            steps,
            wanted,
        ]
    return _in_sqlite(property, steps, value)


def _of_column(property: str, value: Any) -> tuple[str, list[Any]]:
    if property == "revision":
        return ("nodes.revision = ?", [value]) if type(value) is int else ("1 = 0", [])
    if not isinstance(value, str):
        return "1 = 0", []
    return f"nodes.{property} = ?", [value]


def _in_sqlite(property: str, steps: Sequence[str], value: Any) -> tuple[str, list[Any]]:
    if not _SAFE_PATH.fullmatch(property):
        return "1 = 1", []
    path = "$" + "".join(f'."{step}"' for step in steps)
    if isinstance(value, bool) or value is None:
        return "nodes.body_sha256 <> '' or json_type(nodes.body, ?) = ?", [path, orjson.dumps(value).decode()]
    if isinstance(value, str | float) or (isinstance(value, int) and abs(value) < 2**63):
        return "nodes.body_sha256 <> '' or json_extract(nodes.body, ?) = ?", [path, value]
    kind = "array" if isinstance(value, list | tuple) else "object" if isinstance(value, Mapping) else ""
    return ("nodes.body_sha256 <> '' or json_type(nodes.body, ?) = ?", [path, kind]) if kind else ("1 = 1", [])


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
