"""Requirements of a constraint set: how one is written, and whether it says enough to be judged."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from metaforge.core.errors import ToolError
from metaforge.twin import expressions
from metaforge.twin.pinning import CONSTRAINT_SET
from metaforge.twin.quantities import Quantity, read_unit, split_name
from metaforge.twin.quantity_text import find_quantities

if TYPE_CHECKING:
    from metaforge.twin.model import Node
    from metaforge.twin.view import View

OPERATORS = {"<=": "<=", "<": "<", ">=": ">=", ">": ">", "==": "==", "!=": "!=", "≤": "<=", "≥": ">=", "=": "=="}
_TYPED = ("metric", "operator", "limit")
_EXPECTED = ("acceptance_criteria", "verification_method", "expected_evidence")
_TEXTS = ("name", "message", *_EXPECTED)
MAX_NAME_CHARS = 200


def checked(entries: Sequence[Mapping[str, Any]]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Check requirements before they are recorded.

    Args:
        entries: name, then an expression, or metric, operator, limit and unit; or a text to be judged by people.

    Returns:
        The entries to record, and `incomplete`: name and what is missing of each that says too little.

    Raises:
        ToolError: `bad_constraint`, `bad_expression`, `unknown_unit`, `duplicate_constraint`; it names the entry.
    """
    kept: list[dict[str, Any]] = []
    incomplete: list[dict[str, Any]] = []
    seen: set[str] = set()
    for number, entry in enumerate(entries):
        clean = {name: value for name, value in entry.items() if value not in (None, "", [])}
        clean["name"] = _named(str(clean.get("name", "")), number, seen)
        try:
            missing = _check(clean)
        except ToolError as fault:
            fault.where = f"constraints[{number}] {clean['name']!r}" + (f": {fault.where}" if fault.where else "")
            raise
        missing += [name for name in _EXPECTED if name not in clean]
        if missing:
            incomplete.append({"name": clean["name"], "missing": missing})
        kept.append(clean)
    return kept, incomplete


def _named(name: str, number: int, seen: set[str]) -> str:
    name = name.strip()
    if not name or len(name) > MAX_NAME_CHARS or "#" in name or "\n" in name:
        raise ToolError(
            f"constraints[{number}] has the name {name[:60]!r}",
            kind="bad_constraint", fix=f"Name it in one line of 1 to {MAX_NAME_CHARS} characters, without '#'",
        )  # fmt: skip
    if name in seen:
        raise ToolError(
            f"constraints[{number}]: a second requirement is named {name!r}", kind="duplicate_constraint",
            fix="Give every requirement of a set its own name: links and evidence use it",
        )  # fmt: skip
    seen.add(name)
    return name


def _check(entry: dict[str, Any]) -> list[str]:
    given = [name for name in _TYPED if name in entry]
    if "expression" in entry:
        if given:
            raise ToolError(
                "it has an expression and " + ", ".join(given), kind="bad_constraint",
                fix="Give an expression, or metric, operator, limit and unit",
            )  # fmt: skip
        expressions.parse(entry["expression"])
        return []
    if not given:
        return ["metric, operator, limit or expression"]
    if len(given) < len(_TYPED):
        lacking = [name for name in _TYPED if name not in given]
        raise ToolError(
            f"it has {', '.join(given)} and no {', '.join(lacking)}",
            kind="bad_constraint",
            fix=f"Add {', '.join(lacking)}",
        )
    entry["operator"] = OPERATORS[entry["operator"]]
    told = split_name(entry["metric"])[1]
    unit = read_unit(entry.get("unit", ""))
    if told is not None and "unit" in entry and read_unit(told).dimension != unit.dimension:
        raise ToolError(
            f"the metric {entry['metric']} {f'is in {told}' if told else 'has no unit'}, its limit is in "
            f"{entry['unit']}", kind="bad_constraint",
            fix=f"Give the limit in a unit of the same kind as {told}" if told else "Give the limit without a unit",
        )  # fmt: skip
    return [] if told is not None or "unit" in entry else ["unit"]


def stated_quantities(sets: Iterable["Node"]) -> list[Quantity]:
    """Return every value that requirements state: limits, numbers in expressions and in their texts."""
    found: list[Quantity] = []
    for node in sets:
        for entry in node.body.get("constraints") or ():
            if "expression" in entry:
                found += expressions.literals(expressions.parse(entry["expression"]))
            elif "limit" in entry and "metric" in entry:
                found.append(Quantity.of(entry["limit"], entry.get("unit") or split_name(entry["metric"])[1] or ""))
            for name in _TEXTS:
                found += (written.quantity for written in find_quantities(str(entry.get(name, ""))))
    return found


def current_sets(view: "View") -> list["Node"]:
    """Return the constraint sets of the reader's project, as it reads them now."""
    return sorted(view.current_nodes(CONSTRAINT_SET), key=lambda node: node.item_key)


def sets_of(view: "View", project_id: str) -> list["Node"]:
    """Return the constraint sets of any project, as the reader reads them now."""
    return current_sets(view.of_project(project_id))


def check_named(node: "Node", requirement: str, where: str) -> None:
    """Refuse a whole constraint set where one requirement is asked for; raises ToolError `unknown_requirement`."""
    if node.kind == CONSTRAINT_SET and not requirement:
        names = ", ".join(f"{node.item_key}#{each['name']}" for each in node.body.get("constraints") or ())
        raise ToolError(
            f"{node.ref} is a whole constraint set", kind="unknown_requirement", where=where,
            fix=f"Name one requirement: {names[:500]}",
        )  # fmt: skip


def words(entry: Mapping[str, Any]) -> str:
    """Say what a requirement demands: `mass <= 15 g`."""
    if "expression" in entry:
        return str(entry["expression"])
    if "metric" in entry:
        unit = entry.get("unit") or split_name(entry["metric"])[1] or ""
        return f"{entry['metric']} {entry['operator']} {entry['limit']:g} {unit}".rstrip()
    return str(entry.get("acceptance_criteria") or entry.get("message") or entry["name"])
