"""Requirements of a constraint set: how one is written, whether it can be judged, and the judgement of one value."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from metaforge.core.errors import ToolError
from metaforge.twin import expressions
from metaforge.twin.expressions import Undetermined
from metaforge.twin.metrics import Metric, Metrics, value_in
from metaforge.twin.pinning import CONSTRAINT_SET
from metaforge.twin.quantities import Quantity, dimension_words, read_unit, split_name
from metaforge.twin.quantity_text import find_quantities

if TYPE_CHECKING:
    from metaforge.twin.model import Node
    from metaforge.twin.view import View

OPERATORS = {"<=": "<=", "<": "<", ">=": ">=", ">": ">", "==": "==", "!=": "!=", "≤": "<=", "≥": ">=", "=": "=="}
_TYPED = ("metric", "operator", "limit")
_EXPECTED = ("acceptance_criteria", "verification_method", "expected_evidence")
_TEXTS = ("name", "message", *_EXPECTED)
MAX_NAME_CHARS = 200


@dataclass(frozen=True)
class Judgement:
    """What one requirement says of one set of values.

    `status` is pass, fail or no_data. `actual` and `limit` are in `unit`; `margin_ratio` is the distance to the limit
    as a share of the limit, negative where it is violated.
    """

    status: str
    reason: str = ""
    source: str = ""
    actual: float | None = None
    limit: float | None = None
    unit: str = ""
    margin_ratio: float | None = None


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


def judge(entry: Mapping[str, Any], sources: list[Metrics]) -> Judgement:
    """Judge one requirement by values.

    Args:
        entry: as recorded.
        sources: where values are looked for, the first that has one counts.
    """
    try:
        if "expression" in entry:
            return _judge_expression(entry["expression"], sources)
        if "metric" in entry:
            return _judge_limit(entry, sources)
    except Undetermined as fault:
        return Judgement("no_data", str(fault))
    return Judgement("no_data", "it is a text, to be judged by inspection")


def _judge_limit(entry: Mapping[str, Any], sources: list[Metrics]) -> Judgement:
    name, told = split_name(entry["metric"])
    unit_text = entry.get("unit") or told or ""
    unit = read_unit(unit_text)
    limit = Quantity.of(entry["limit"], unit_text)
    actual, metric, source = _measured(entry["metric"], name, told, sources)
    if not actual.same_kind(limit):
        raise Undetermined(
            f"{metric.path} of {source.source} is {dimension_words(actual.dimension)}, "
            f"the limit {dimension_words(limit.dimension)}"
        )
    operator = entry["operator"]
    met = expressions.holds(
        expressions.Comparison(expressions.Number(actual), ((operator, expressions.Number(limit)),)), _no_names
    )
    shown, bound = actual.in_unit(unit), float(entry["limit"])
    return Judgement(
        "pass" if met else "fail", source=source.source, actual=shown, limit=bound, unit=unit_text,
        margin_ratio=_margin(operator, shown, bound), reason=f"{metric.path} of {source.source}",
    )  # fmt: skip


def _measured(metric: str, name: str, told: str | None, sources: list[Metrics]) -> tuple[Quantity, Metric, Metrics]:
    """A limit has its unit beside it, so a unit at the end of the metric's name only helps to find it."""
    for candidate in (metric, name) if told is not None else (metric,):
        for source in sources:
            if found := source.find(candidate):
                given = Quantity.of(found.number, told) if found.unit is None and told else found.quantity
                return given, found, source
    raise Undetermined(f"no value of {metric}")


def _judge_expression(text: str, sources: list[Metrics]) -> Judgement:
    used: dict[str, Metrics] = {}

    def look_up(name: str) -> Quantity:
        found, _, source = value_in(sources, name)
        used[name] = source
        return found

    met = expressions.holds(expressions.parse(text), look_up)
    where = sorted({source.source for source in used.values()})
    reason = ", ".join(f"{name} of {source.source}" for name, source in used.items())
    return Judgement("pass" if met else "fail", reason=reason, source=", ".join(where))


def _no_names(name: str) -> Quantity:
    raise Undetermined(f"no value of {name}")


def _margin(operator: str, actual: float, limit: float) -> float | None:
    if operator not in ("<=", "<", ">=", ">"):
        return None
    distance = limit - actual if operator in ("<=", "<") else actual - limit
    return distance / abs(limit) if limit else None


def metrics_of(entry: Mapping[str, Any]) -> set[str]:
    """Return the names of the metrics that a requirement speaks of."""
    if "expression" in entry:
        return set(expressions.names(expressions.parse(entry["expression"])))
    return {entry["metric"]} if "metric" in entry else set()


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


def words(entry: Mapping[str, Any]) -> str:
    """Say what a requirement demands: `mass <= 15 g`."""
    if "expression" in entry:
        return str(entry["expression"])
    if "metric" in entry:
        unit = entry.get("unit") or split_name(entry["metric"])[1] or ""
        return f"{entry['metric']} {entry['operator']} {entry['limit']:g} {unit}".rstrip()
    return str(entry.get("acceptance_criteria") or entry.get("message") or entry["name"])
