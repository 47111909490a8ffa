"""The numbers of a node by name: what a requirement on `mass` finds in `measured.mass_kg`."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from metaforge.twin.expressions import Undetermined
from metaforge.twin.quantities import Quantity, split_name

_AXES = ("x", "y", "z")
MAX_COUNT = 5000
_MAX_PLACES = 20_000


class Metric(NamedTuple):
    """A number as it was stored, under its whole path."""

    path: str
    number: float
    unit: str | None

    @property
    def quantity(self) -> Quantity:
        return Quantity.of(self.number, self.unit or "")


class Plan:
    """Where numbers are found, learnt while bodies are read, so that the next of the same shape is read quickly.

    Args:
        wanted: the only names that will be asked for, as `normalised` returns them; all by default.
    """

    def __init__(self, wanted: Iterable[str] | None = None) -> None:
        self.wanted = None if wanted is None else frozenset(wanted)
        self.root = _Place((), self)
        self.places_count = 0


class _Place:
    """A path in bodies: what a number there is called and measured in, and the paths below it."""

    __slots__ = ("_plan", "axes", "axes_wanted", "below", "group_unit", "names", "path", "steps", "unit")

    def __init__(self, steps: tuple[str, ...], plan: Plan) -> None:
        self.steps = steps
        self.path = ".".join(steps)
        self.unit = _unit_of(steps)
        self.group_unit = split_name(steps[-1])[1] if steps else None
        names = _names_of(self.path)
        self.names: frozenset[str] = names if plan.wanted is None else names & plan.wanted
        self.below: dict[str, _Place] = {}
        self.axes: tuple[_Place, ...] | None = None
        self.axes_wanted = True
        self._plan = plan

    def step(self, name: str) -> "_Place":
        """Return the place of a field."""
        made = _Place((*self.steps, name.casefold().replace(" ", "_").replace(".", "_")), self._plan)
        if self._plan.places_count < _MAX_PLACES:
            self._plan.places_count += 1
            self.below[name] = made
        return made

    def of_axes(self) -> "tuple[_Place, ...]":
        """Return the places of the three numbers of a list."""
        if self.axes is None:
            made = [_Place((*self.steps[:-1], f"{self.steps[-1]}_{axis}"), self._plan) for axis in _AXES]
            for each in made:
                each.unit = self.unit
            self.axes = tuple(made)
            self.axes_wanted = any(each.names for each in made)
        return self.axes


class Metrics:
    """The numbers of one source, found by path (`measured.mass_kg`), name (`mass_kg`) or what they measure (`mass`)."""

    def __init__(self, body: Mapping[str, Any], source: str, plan: Plan | None = None) -> None:
        """Index the numbers of a body.

        Args:
            body: JSON; lists of three numbers are x, y and z.
            source: where the numbers come from, for those who are told of them.
            plan: for several bodies that will be asked for the same names.
        """
        self.source = source
        self._by_name: dict[str, list[Metric]] = {}
        self._left = MAX_COUNT
        if body:
            self._read(body, (plan or Plan()).root)

    def _read(self, value: Mapping[str, Any], place: _Place) -> None:
        if "value" in value and self._read_with_unit(value, place):
            return
        if place.group_unit is not None:
            self._read_regions(value, place)
        below = place.below
        for name, each in value.items():
            kind = type(each)
            if kind is str or kind is bool or each is None:
                continue
            inner = below.get(name) or place.step(name)
            if kind is float or kind is int:
                self._add(inner, each, inner.unit)
            elif kind is dict:
                self._read(each, inner)
            elif kind is list:
                self._read_axes(each, inner)
            if self._left <= 0:
                return

    def _read_with_unit(self, value: Mapping[str, Any], place: _Place) -> bool:
        number, unit = value["value"], value.get("unit")
        if not _is_number(number) or not isinstance(unit, str):
            return False
        self._add(place, number, unit)
        return True

    def _read_axes(self, value: Sequence[Any], place: _Place) -> None:
        if len(value) != len(_AXES):
            return
        axes = place.of_axes()
        if place.axes_wanted:
            for number, axis in zip(value, axes, strict=True):
                if _is_number(number):
                    self._add(axis, number, axis.unit)
        else:
            self._left -= len(_AXES)

    def _add(self, place: _Place, number: float, unit: str | None) -> None:
        self._left -= 1
        if self._left >= 0 and place.names:
            metric = Metric(place.path, float(number), unit)
            for name in place.names:
                self._by_name.setdefault(name, []).append(metric)

    def _read_regions(self, value: Mapping[str, Any], place: _Place) -> None:
        """Of a number for each region (max_von_mises_mpa: {rib: 80, base: 120}) take the one for the whole."""
        numbers = [each for each in value.values() if _is_number(each)]
        if not numbers or len(numbers) != len(value):
            return
        kind = place.steps[-1].partition("_")[0]
        if len(numbers) == 1 or kind in ("max", "peak", "largest", "highest"):
            self._add(place, max(numbers), place.group_unit)
        elif kind in ("min", "smallest", "lowest"):
            self._add(place, min(numbers), place.group_unit)

    def find(self, name: str) -> Metric | None:
        """Return the number of that name, or None.

        Raises:
            Undetermined: several different numbers have it.
        """
        found = self._by_name.get(name) or self._by_name.get(normalised(name), [])
        if len(found) > 1 and len({(metric.number, metric.unit) for metric in found}) > 1:
            paths = ", ".join(metric.path for metric in found[:5])
            raise Undetermined(f"{name} is ambiguous in {self.source}: {paths}; name the whole path")
        return found[0] if found else None


def normalised(name: str) -> str:
    """Return a metric's name as it is looked up."""
    return name.strip().casefold().replace(" ", "_")


def value_in(sources: Sequence[Metrics], name: str) -> tuple[Quantity, Metric, Metrics]:
    """Return a metric from the first source that has it.

    A name that ends in a unit is the plain number in that unit.

    Raises:
        Undetermined: none has it, or one has it twice.
    """
    plain = normalised(name)
    base, unit = split_name(plain)
    for source in sources:
        found = source.find(plain) or (source.find(base) if unit is not None else None)
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


def _names_of(path: str) -> frozenset[str]:
    parts = path.split(".")
    tails = {".".join(parts[start:]) for start in range(len(parts))}
    plain = [_without_unit(part) for part in parts]
    bare = {".".join(plain[start:]) for start in range(len(plain))}
    return frozenset(tails | bare | {_without_unit(tail) for tail in tails})


def _without_unit(tail: str) -> str:
    head, _, last = tail.rpartition(".")
    axis = next((f"_{each}" for each in _AXES if last.endswith(f"_{each}")), "")
    name, unit = split_name(last.removesuffix(axis)) if axis else split_name(last)
    name = name + axis if unit is not None else last
    return f"{head}.{name}" if head else name


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _unit_of(steps: tuple[str, ...]) -> str | None:
    """The unit that a name tells, else the one that the name of its group tells."""
    for name in reversed(steps[-2:]):
        if (unit := split_name(name)[1]) is not None:
            return unit
    return None
