"""What a query comes back as, and what is said about it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from metaforge.core.counts import counted

_NAMED_COUNT = 12


@dataclass(frozen=True)
class QueryAnswer:
    """Rows of a query.

    Attributes:
        rows: one object a row, by column. A node is `{labels, properties}`, a relationship `{type, properties}`, a
            path `{nodes, relationships}`.
        total_count: rows there were; more than `rows` holds where the answer was cut.
        warnings: what makes the rows mean less than they seem to.
    """

    columns: list[str]
    rows: list[dict[str, Any]]
    total_count: int
    warnings: tuple[str, ...] = ()


def answer_of(told: Mapping[str, Any], damaged: Sequence[str]) -> QueryAnswer:
    """Return the answer that a graph's process gave, with what a reader of it must know.

    Args:
        told: the answer to `query`.
        damaged: nodes whose bodies could not be read.
    """
    rows, total = told["rows"], told["total_count"]
    warnings = []
    if len(rows) < total:
        warnings.append(
            f"Only the first {len(rows):,} of {total:,} rows are here: aggregate, or add ORDER BY with SKIP and LIMIT"
        )
    if damaged:
        nodes = counted(len(damaged), "node")
        warnings.append(f"The content of {nodes} cannot be read and is left out: {damaged[0]}")
    warnings += _unknown_names(told["unknown"])
    return QueryAnswer(told["columns"], rows, total, tuple(warnings))


def _unknown_names(unknown: Mapping[str, Any]) -> list[str]:
    """Say which names match nothing: a query that names them finds nothing, and looks as if there were nothing."""
    told = []
    known = [*unknown["known_labels"], *unknown["known_types"]]
    if unknown["labels"]:
        near = _near(unknown["labels"][0], known)
        there = (
            f"labels are {_listed(unknown['known_labels'])}; relationship types are {_listed(unknown['known_types'])}"
        )
        told.append(f"Nothing here is a {_listed(unknown['labels'])}{near}: {there}")
    if unknown["properties"]:
        told.append(f"No node or relationship here has a property {_listed(unknown['properties'])}: keys(n) lists them")
    return told


def _near(name: str, known: list[str]) -> str:
    by_case = {each.lower(): each for each in known}
    close = get_close_matches(name.lower(), by_case, 1, 0.6)
    return f" (did you mean {by_case[close[0]]}?)" if close else ""


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED_COUNT} more" if len(names) > _NAMED_COUNT else ""
    return (", ".join(names[:_NAMED_COUNT]) or "(none yet)") + more
