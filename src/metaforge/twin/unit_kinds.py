"""Which requirements compare a metric with a limit of another kind: no value will ever pass them."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from metaforge.twin import expressions
from metaforge.twin.evaluation import sources_of
from metaforge.twin.expressions import DifferentKinds, Undetermined
from metaforge.twin.metrics import Metrics, value_in
from metaforge.twin.pinning import WORK_PRODUCTS
from metaforge.twin.quantities import Quantity, dimension_words, read_unit, split_name

if TYPE_CHECKING:
    from metaforge.twin.model import Node
    from metaforge.twin.view import View

LATEST_COUNT = 10
"""Parts and assemblies, of each kind, whose values tell what a metric is measured in."""

_UNITS_OF = {
    "mass": ("kg",), "weight": ("kg", "N"), "volume": ("mm^3",), "area": ("mm^2",), "density": ("kg/m^3",),
    "von_mises": ("MPa",), "stress": ("MPa",), "pressure": ("MPa",), "modulus": ("MPa",), "yield_strength": ("MPa",),
    "tensile_strength": ("MPa",), "displacement": ("mm",), "deflection": ("mm",), "length": ("mm",), "width": ("mm",),
    "height": ("mm",), "thickness": ("mm",), "depth": ("mm",), "diameter": ("mm",), "radius": ("mm",),
    "clearance": ("mm",), "size_x": ("mm",), "size_y": ("mm",), "size_z": ("mm",), "frequency": ("Hz", "rpm"),
    "temperature": ("degC",), "force": ("N",), "torque": ("N*m",), "voltage": ("V",), "current": ("A",),
    "power": ("W", "dBm"), "energy": ("J",), "angle": ("deg",), "cost": ("USD", "EUR", "GBP"),
    "price": ("USD", "EUR", "GBP"), "velocity": ("m/s",), "acceleration": ("m/s^2",), "safety_factor": ("",),
}  # fmt: skip
"""What a metric of this name, or whose name ends so, is measured in; what it may also mean stands beside."""
_AXIS = re.compile(r"(?<!size)_[xyz]$")


def wrong_kinds(entries: Sequence[Mapping[str, Any]], sources: Sequence[Metrics] = ()) -> list[str]:
    """Say of each requirement whose limit is of another kind than its metric what both are, and what to write.

    Args:
        entries: as `checked` returns them.
        sources: values there are, which tell what a metric is measured in; its name does where there are none.
    """
    return [f"{entry['name']}: {fault}" for entry in entries for fault in _faults(entry, sources)]


def latest_sources(view: "View", entries: Sequence[Mapping[str, Any]]) -> list[Metrics]:
    """Return values of the parts that requirements are about: those they name, and the latest of the project."""
    if not any("metric" in entry or "expression" in entry for entry in entries):
        return []
    named = {str(key).partition("@")[0] for entry in entries for key in entry.get("applies_to") or ()}
    products = {node.node_id: node for node in _named(view, named)}
    for kind in WORK_PRODUCTS:
        products |= {node.node_id: node for node in view.latest_nodes(kind, LATEST_COUNT)}
    return [each for sources in sources_of(view, list(products.values())) for each in sources.all]


def _named(view: "View", keys: set[str]) -> Iterator["Node"]:
    for key in sorted(keys)[:LATEST_COUNT]:
        item = view.find_item(key)
        if item is not None and item.current_node_id is not None:
            yield view.node(item.current_node_id)


def _faults(entry: Mapping[str, Any], sources: Sequence[Metrics]) -> Iterator[str]:
    if "expression" in entry:
        yield from _in_expression(str(entry["expression"]), sources)
    elif "metric" in entry:
        unit_text = entry.get("unit") or split_name(entry["metric"])[1] or ""
        limit = read_unit(unit_text).dimension
        kinds = list(_kinds_of(entry["metric"], sources))
        if kinds and not any(read_unit(unit).dimension == limit for units, _ in kinds for unit in units):
            units, where = kinds[0]
            shown = f"in {unit_text} ({dimension_words(limit)})" if unit_text else "without a unit"
            yield (
                f"{entry['metric']} is {_measured_in(units)}{where}, its limit {entry['limit']:g} is {shown}: no value "
                f"can pass it. Give the limit in {_or(units)}"
            )


def _in_expression(text: str, sources: Sequence[Metrics]) -> Iterator[str]:
    told: dict[str, str] = {}

    def look_up(name: str) -> Quantity:
        try:
            quantity, metric, source = value_in(sources, name)
        except Undetermined:
            units, _ = next(_kinds_of(name, ()), ((), ""))
            if len(units) != 1:
                raise
            told[name] = f"{name} is {_measured_in(units)}"
            return Quantity(1.0, read_unit(units[0]).dimension)
        if metric.unit is not None and split_name(name)[1] is None:
            told[name] = f"{name} is {_measured_in((metric.unit,))} of {source.source}"
        return Quantity(quantity.value or 1.0, quantity.dimension)

    for comparison in expressions.comparisons(expressions.parse(text)):
        told.clear()
        try:
            expressions.check_kinds(comparison, look_up)
        except DifferentKinds as fault:
            known = f" ({', '.join(told.values())})" if told else ""
            yield f"in {text!r}, {fault}{known}: no value can pass it. Give both in units of one kind"
        except Undetermined:
            continue


def _kinds_of(metric: str, sources: Sequence[Metrics]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield what a metric is measured in: in values there are, else as its name says."""
    base, told = split_name(metric.strip().casefold().replace(" ", "_"))
    for source in sources:
        for name in dict.fromkeys((metric, base)):
            try:
                found = source.find(name)
            except Undetermined:
                continue
            if found is not None and found.unit is not None:
                yield (found.unit,), f" in {source.source}"
    if told is not None:
        return
    plain = _AXIS.sub("", base.rpartition(".")[2])
    for name, units in _UNITS_OF.items():
        if plain == name or plain.endswith(f"_{name}"):
            yield units, ""


def _measured_in(units: Sequence[str]) -> str:
    kinds = list(dict.fromkeys(dimension_words(read_unit(each).dimension) for each in units))
    return f"measured in {_or(units)} ({' or '.join(kinds)})" if units != ("",) else "a number without a unit"


def _or(units: Sequence[str]) -> str:
    return " or ".join(units) if units != ("",) else "no unit"
