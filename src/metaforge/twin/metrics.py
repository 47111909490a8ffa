"""The numbers of a node by name: what a requirement on `mass` finds in `measured.mass_kg`."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from metaforge.twin.expressions import Undetermined
from metaforge.twin.quantities import Quantity, split_name

_AXES = ("x", "y", "z")
MAX_COUNT = 5000


@dataclass(frozen=True)
class Metric:
    """A number as it was stored, under its whole path."""

    path: str
    number: float
    unit: str | None

    @property
    def quantity(self) -> Quantity:
        return Quantity.of(self.number, self.unit or "")


class Metrics:
    """The numbers of one source, found by path (`measured.mass_kg`), name (`mass_kg`) or what they measure (`mass`)."""

    def __init__(self, body: Mapping[str, Any], source: str) -> None:
        """Index the numbers of a body.

        Args:
            body: JSON; lists of three numbers are x, y and z.
            source: where the numbers come from, for those who are told of them.
        """
        self.source = source
        self._by_name: dict[str, list[Metric]] = {}
        for count, metric in enumerate(_walk(body, ())):
            if count >= MAX_COUNT:
                break
            for name in _names_of(metric):
                self._by_name.setdefault(name, []).append(metric)

    def find(self, name: str) -> Metric | None:
        """Return the number of that name, or None.

        Raises:
            Undetermined: several different numbers have it.
        """
        found = self._by_name.get(name.strip().casefold().replace(" ", "_"), [])
        if len({(metric.number, metric.unit) for metric in found}) > 1:
            paths = ", ".join(metric.path for metric in found[:5])
            raise Undetermined(f"{name} is ambiguous in {self.source}: {paths}; name the whole path")
        return found[0] if found else None


def value_in(sources: list[Metrics], name: str) -> tuple[Quantity, Metric, Metrics]:
    """Return a metric from the first source that has it.

    A name that ends in a unit is the plain number in that unit.

    Raises:
        Undetermined: none has it, or one has it twice.
    """
    base, unit = split_name(name.strip().casefold().replace(" ", "_"))
    for source in sources:
        found = source.find(name) or (source.find(base) if unit is not None else None)
        if found is None:
            continue
        if unit is None:
            return found.quantity, found, source
        wanted, given = Quantity.of(1.0, unit), found.quantity
        if found.unit is not None and not given.same_kind(wanted):
            raise Undetermined(f"{found.path} of {source.source} is not in {unit}")
        return Quantity(_in(found, unit)), found, source
    raise Undetermined(f"no value of {name}")


def _in(metric: Metric, unit: str) -> float:
    from metaforge.twin.quantities import read_unit

    return metric.number if metric.unit in (None, unit) else metric.quantity.in_unit(read_unit(unit))


def _names_of(metric: Metric) -> set[str]:
    parts = metric.path.split(".")
    tails = {".".join(parts[start:]) for start in range(len(parts))}
    plain = [_without_unit(part) for part in parts]
    bare = {".".join(plain[start:]) for start in range(len(plain))}
    return tails | bare | {_without_unit(tail) for tail in tails}


def _without_unit(tail: str) -> str:
    head, _, last = tail.rpartition(".")
    axis = next((f"_{each}" for each in _AXES if last.endswith(f"_{each}")), "")
    name, unit = split_name(last.removesuffix(axis)) if axis else split_name(last)
    name = name + axis if unit is not None else last
    return f"{head}.{name}" if head else name


def _walk(value: Any, path: tuple[str, ...]) -> Iterator[Metric]:
    if isinstance(value, bool):
        return
    if isinstance(value, int | float):
        yield Metric(".".join(path), float(value), _unit_of(path))
    elif isinstance(value, Mapping):
        written = value.get("value")
        if isinstance(written, int | float) and not isinstance(written, bool) and isinstance(value.get("unit"), str):
            yield Metric(".".join(path), float(written), value["unit"])
            return
        yield from _of_regions(value, path)
        for name, each in value.items():
            yield from _walk(each, (*path, str(name).casefold().replace(" ", "_").replace(".", "_")))
    elif isinstance(value, list | tuple) and len(value) == len(_AXES) and path:
        for axis, each in zip(_AXES, value, strict=True):
            if isinstance(each, int | float) and not isinstance(each, bool):
                yield Metric(".".join((*path[:-1], f"{path[-1]}_{axis}")), float(each), _unit_of(path))


def _of_regions(value: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[Metric]:
    """Of a number for each region (max_von_mises_mpa: {rib: 80, base: 120}) yield the one for the whole."""
    unit = split_name(path[-1])[1] if path else None
    numbers = [each for each in value.values() if isinstance(each, int | float) and not isinstance(each, bool)]
    if unit is None or not numbers or len(numbers) != len(value):
        return
    kind = path[-1].partition("_")[0]
    if len(numbers) == 1 or kind in ("max", "peak", "largest", "highest"):
        yield Metric(".".join(path), float(max(numbers)), unit)
    elif kind in ("min", "smallest", "lowest"):
        yield Metric(".".join(path), float(min(numbers)), unit)


def _unit_of(path: tuple[str, ...]) -> str | None:
    """The unit that a name tells, else the one that the name of its group tells."""
    for name in reversed(path[-2:]):
        if (unit := split_name(name)[1]) is not None:
            return unit
    return None
