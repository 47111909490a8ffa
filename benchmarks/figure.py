"""One measured figure, its bound, and the verdict."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any


@dataclass(frozen=True)
class Figure:
    """A number that was measured and what it must not exceed."""

    name: str
    what: str
    value: float
    unit: str
    bound: float | None
    """The largest value that passes; None for figures that are only told."""
    detail: dict[str, Any] = field(default_factory=dict)

    @property
    def passed(self) -> bool | None:
        return None if self.bound is None else self.value <= self.bound

    @property
    def verdict(self) -> str:
        return {True: "pass", False: "MISSED", None: "told"}[self.passed]

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"passed": self.passed}

    def line(self) -> str:
        bound = "" if self.bound is None else f"<= {self.bound:g}"
        return f"{self.what:<62} {self.value:>10.3g} {self.unit:<6} {bound:>9}  {self.verdict}"


@dataclass(frozen=True)
class Effort:
    """How long to measure."""

    rounds_count: int
    phase_seconds: float

    @classmethod
    def choose(cls, *, quick: bool) -> "Effort":
        return cls(rounds_count=3, phase_seconds=1.0) if quick else cls(rounds_count=5, phase_seconds=3.0)


Benchmark = Callable[[Effort], list[Figure]]


def ratio(ours: Sequence[float], floors: Sequence[float]) -> float:
    """Return the median of the round-by-round ratios of an interleaved run."""
    return median(our / floor for our, floor in zip(ours, floors, strict=True))


def spread(values: Sequence[float], digits: int = 1) -> list[float]:
    """Return the values in the order they were measured, rounded, so that a reader sees how steady they are."""
    return [round(value, digits) for value in values]


def percentile(values: Sequence[float], fraction: float) -> float:
    """Return the value below which `fraction` of the sample lies."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * fraction))]
