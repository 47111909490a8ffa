"""Bodies of nodes and links, texts in JSON, as columns of properties. No I/O."""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import orjson

from metaforge.twin.query.graph_engine import Column

LONG_BYTES = 32 * 1024
"""A longer value of a body stays out of the graph; the property `left_out` names it."""
SELDOM_RATIO = 1 / 16
"""A property that fewer of the rows have makes no column."""
_INT64 = 1 << 63
_LARGE = re.compile(r"[0-9]{19}")
"""Digits that a number needs to have to be beyond 64 signed bits."""


@dataclass(frozen=True)
class Bodies:
    """What some bodies hold.

    Attributes:
        columns: values by property, one a body.
        seldom: properties that few bodies have, by id.
        inner_names: names within values.
    """

    ids: Sequence[str]
    columns: Mapping[str, Column]
    seldom: Mapping[str, Mapping[str, Any]]
    inner_names: set[str]

    @staticmethod
    def read(
        ids: Sequence[str], texts: Sequence[str], taken: Collection[str], *, seldom_ratio: float = SELDOM_RATIO
    ) -> "Bodies":
        """Return bodies by columns.

        Args:
            ids: whose bodies they are.
            texts: JSON objects.
            taken: names that belong to no body: a field of that name becomes `body_<name>`.
            seldom_ratio: see `seldom`.
        """
        whole = f"[{','.join(texts)}]"
        bodies = orjson.loads(whole)
        has_large = _LARGE.search(whole) is not None
        counts = Counter(chain.from_iterable(bodies))
        if "" in counts or not counts.keys().isdisjoint(taken) or max(map(len, texts)) > LONG_BYTES:
            bodies = [_own(body, text, taken) for body, text in zip(bodies, texts, strict=True)]
            counts = Counter(chain.from_iterable(bodies))
        columns: dict[str, Column] = {}
        seldom: dict[str, dict[str, Any]] = {}
        inner: set[str] = set()
        for name, count in counts.items():
            if count >= seldom_ratio * len(ids):
                columns[name] = _fitting_all([body.get(name) for body in bodies], inner, has_large)
                continue
            for node_id, body in zip(ids, bodies, strict=True):
                if (value := body.get(name)) is not None:
                    seldom.setdefault(node_id, {})[name] = _fitting_all([value], inner, has_large)[0]
        return Bodies(ids, columns, seldom, inner)

    def ids_with(self, name: str) -> Iterator[str]:
        """Yield the ids of those that have a property."""
        column = self.columns.get(name, ())
        yield from (node_id for node_id, value in zip(self.ids, column, strict=False) if value is not None)
        yield from (node_id for node_id, some in self.seldom.items() if name in some)


def _own(body: Mapping[str, Any], text: str, taken: Collection[str]) -> dict[str, Any]:
    """Return a body's fields by the names they get, without values that are too long."""
    own: dict[str, Any] = {}
    left_out = []
    is_long = len(text) > LONG_BYTES
    for name, value in body.items():
        if is_long and len(orjson.dumps(value)) > LONG_BYTES:
            left_out.append(name)
        elif value is not None and name:
            own[f"body_{name}" if name in taken else name] = value
    if left_out:
        own["left_out"] = left_out
    return own


def _fitting_all(column: list[Any], inner_names: set[str], has_large: bool) -> list[Any]:
    kinds = set(map(type, column))
    if dict in kinds or list in kinds:
        _note_names(column, inner_names)
    return [_fitting(value) for value in column] if has_large else column


def _note_names(values: Any, names: set[str]) -> None:
    for value in values:
        kind = type(value)
        if kind is dict:
            names.update(value)
            _note_names(value.values(), names)
        elif kind is list:
            _note_names(value, names)


def _fitting(value: Any) -> Any:
    """Return a JSON value with whole numbers beyond 64 signed bits as floating ones: the graph knows no others."""
    if isinstance(value, int) and not isinstance(value, bool) and not -_INT64 <= value < _INT64:
        return float(value)
    if isinstance(value, list):
        return [_fitting(each) for each in value]
    if isinstance(value, dict):
        return {name: _fitting(each) for name, each in value.items()}
    return value
