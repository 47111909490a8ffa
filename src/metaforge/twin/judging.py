"""Judge values by one requirement: a typed limit, an expression, or a text that only people can judge."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from metaforge.twin import expressions
from metaforge.twin.expressions import Undetermined
from metaforge.twin.metrics import Metric, Metrics, normalised, value_in
from metaforge.twin.quantities import Quantity, Unit, dimension_words, read_unit, split_name

Known = dict[tuple[str, ...], tuple[Metric, Metrics] | None]
"""What was found for a metric, by the names it was looked for."""


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


class Judge:
    """One requirement, read once and asked as often as there are values.

    Args:
        entry: as recorded.
    """

    def __init__(self, entry: Mapping[str, Any]) -> None:
        self.metrics: frozenset[str] = frozenset(metrics_of(entry))
        """Names of the metrics that it speaks of."""
        self.wanted = frozenset(name for metric in self.metrics for name in _looked_up(metric))
        """Those under which it may look for them."""
        self._tree = expressions.parse(entry["expression"]) if "expression" in entry else None
        self._limit = _Limit(entry) if self._tree is None and "metric" in entry else None

    def __call__(self, sources: Sequence[Metrics]) -> Judgement:
        """Judge values.

        Args:
            sources: where values are looked for, the first that has one counts.
        """
        try:
            if self._tree is not None:
                return _judge_expression(self._tree, sources)
            if self._limit is not None:
                return self._limit.judge(sources)
        except Undetermined as fault:
            return Judgement("no_data", str(fault))
        return Judgement("no_data", "it is a text, to be judged by inspection")

    def status(self, sources: Sequence[Metrics], known: Known) -> str | None:
        """Return how values stand, where that can be told without saying why: a tenth of the work.

        Args:
            sources: as above.
            known: what was found in these sources before; others that look for the same need not look again.
        """
        return self._limit.status(sources, known) if self._limit is not None else None


def judge(entry: Mapping[str, Any], sources: Sequence[Metrics]) -> Judgement:
    """Judge one requirement by values; see `Judge`."""
    return Judge(entry)(sources)


def metrics_of(entry: Mapping[str, Any]) -> set[str]:
    """Return the names of the metrics that a requirement speaks of."""
    if "expression" in entry:
        return set(expressions.names(expressions.parse(entry["expression"])))
    return {entry["metric"]} if "metric" in entry else set()


def _looked_up(metric: str) -> tuple[str, ...]:
    plain = normalised(metric)
    base = split_name(plain)[0]
    return (plain, normalised(split_name(metric)[0]), base)


class _Limit:
    """A metric, an operator and a limit in a unit."""

    def __init__(self, entry: Mapping[str, Any]) -> None:
        self._metric = entry["metric"]
        self._name, self._told = split_name(self._metric)
        self._unit_text = entry.get("unit") or self._told or ""
        self._unit = read_unit(self._unit_text)
        self._limit = Quantity.of(entry["limit"], self._unit_text)
        self._bound = float(entry["limit"])
        self._operator = entry["operator"]
        self._candidates = (self._metric, self._name) if self._told is not None else (self._metric,)
        self._units: dict[str | None, Unit] = {}

    def judge(self, sources: Sequence[Metrics]) -> Judgement:
        metric, source = self._measured(sources)
        given = self._units.get(metric.unit)
        if given is None:
            # A limit has its unit beside it, so a unit at the end of the metric's name only helps to find it.
            given = self._units[metric.unit] = read_unit((self._told if metric.unit is None else metric.unit) or "")
        if given.dimension != self._unit.dimension:
            raise Undetermined(
                f"{metric.path} of {source.source} is {dimension_words(given.dimension)}, "
                f"the limit {dimension_words(self._unit.dimension)}"
            )
        value = metric.number * given.factor + given.offset
        met = expressions.compare(self._operator, value, self._limit.value)
        shown = (value - self._unit.offset) / self._unit.factor
        return Judgement(
            "pass" if met else "fail", source=source.source, actual=shown, limit=self._bound, unit=self._unit_text,
            margin_ratio=_margin(self._operator, shown, self._bound), reason=f"{metric.path} of {source.source}",
        )  # fmt: skip

    def status(self, sources: Sequence[Metrics], known: Known) -> str | None:
        try:
            found = known[self._candidates]
        except KeyError:
            try:
                found = self._find(sources)
            except Undetermined:
                return None
            known[self._candidates] = found
        if found is None:
            return "no_data"
        metric = found[0]
        given = self._units.get(metric.unit)
        if given is None or given.dimension != self._unit.dimension:
            return None
        value = metric.number * given.factor + given.offset
        return "pass" if expressions.compare(self._operator, value, self._limit.value) else "fail"

    def _measured(self, sources: Sequence[Metrics]) -> tuple[Metric, Metrics]:
        found = self._find(sources)
        if found is None:
            raise Undetermined(f"no value of {self._metric}")
        return found

    def _find(self, sources: Sequence[Metrics]) -> tuple[Metric, Metrics] | None:
        for candidate in self._candidates:
            for source in sources:
                if found := source.find(candidate):
                    return found, source
        return None


def _judge_expression(tree: expressions.Tree, sources: Sequence[Metrics]) -> Judgement:
    used: dict[str, Metrics] = {}

    def look_up(name: str) -> Quantity:
        found, _, source = value_in(sources, name)
        used[name] = source
        return found

    met = expressions.holds(tree, look_up)
    where = sorted({source.source for source in used.values()})
    reason = ", ".join(f"{name} of {source.source}" for name, source in used.items())
    return Judgement("pass" if met else "fail", reason=reason, source=", ".join(where))


def _margin(operator: str, actual: float, limit: float) -> float | None:
    if operator not in ("<=", "<", ">=", ">"):
        return None
    distance = limit - actual if operator in ("<=", "<") else actual - limit
    return distance / abs(limit) if limit else None
