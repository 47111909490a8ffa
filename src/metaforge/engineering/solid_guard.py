"""Judge whether the result of a CAD operation is plausible. Kernels return wrong solids without saying so.

Works on numbers alone, so any kernel can feed it: measure before, operate, measure after, judge.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from metaforge.core.errors import FailureMode, ToolError

Bounds = tuple[float, float, float, float, float, float]
"""xmin, ymin, zmin, xmax, ymax, zmax in mm."""

RESOLUTION_RATIO = 0.002
"""How finely the largest size that works is looked for."""
GROWTH_TOLERANCE_RATIO = 1e-6
"""How much of its diagonal a part may grow where it must not grow."""


@dataclass(frozen=True)
class SolidFacts:
    """What a kernel measured of a shape.

    Attributes:
        volume_mm3: of its solids alone; shells enclose none.
        area_mm2: of all its faces.
        solids_count, shells_count, faces_count: what it is made of.
        is_valid: what the kernel's own check says.
        bounds_mm: None when there is no geometry at all.
    """

    volume_mm3: float
    area_mm2: float
    solids_count: int
    shells_count: int
    faces_count: int
    is_valid: bool
    bounds_mm: Bounds | None

    @property
    def size_mm(self) -> tuple[float, float, float]:
        """Extent along x, y and z."""
        if self.bounds_mm is None:
            return (0.0, 0.0, 0.0)
        low, high = self.bounds_mm[:3], self.bounds_mm[3:]
        return (high[0] - low[0], high[1] - low[1], high[2] - low[2])

    @property
    def diagonal_mm(self) -> float:
        return math.hypot(*self.size_mm)


class Change(StrEnum):
    """What an operation may do to a solid."""

    NEW = "new"
    """Nothing was there before."""
    ADD = "add"
    """Union: volume does not shrink."""
    REMOVE = "remove"
    """Cut, intersect, hole: volume shrinks, extent does not grow."""
    BLEND = "blend"
    """Fillet or chamfer: extent does not grow."""
    HOLLOW = "hollow"
    """Shell: volume shrinks."""


def check_solid(after: SolidFacts, operation: str, *, expected_solids_count: int | None = 1) -> list[str]:
    """Judge a shape by itself.

    Args:
        after: the result.
        operation: its name, for messages: `union`, `fillet`.
        expected_solids_count: None when any number of solids will do.

    Returns:
        Warnings.

    Raises:
        ToolError: empty, without a solid, invalid, or with a volume that is not positive.
    """
    if after.bounds_mm is None or after.faces_count == 0:
        raise _refused(f"{operation}: result is empty: there is no geometry", "empty_result", operation)
    if after.solids_count == 0:
        raise _refused(
            f"{operation}: result has no solid ({after.shells_count} shells, {after.faces_count} faces), "
            "so it has no volume",
            "no_solid", operation, fix="close the faces to a shell and make a solid of it, or extrude the sketch",
        )  # fmt: skip
    if not after.is_valid:
        raise _refused(
            f"{operation}: result is not a valid solid (volume {after.volume_mm3:.6g} mm3): faces cross or do not meet",
            "invalid_solid", operation, fix="make the last dimension smaller, or do the operation in another order",
        )  # fmt: skip
    if after.volume_mm3 <= 0:
        raise _refused(
            f"{operation}: result has a volume of {after.volume_mm3:.6g} mm3: the solid is inside out or flat",
            "invalid_solid", operation,
        )  # fmt: skip
    if expected_solids_count is not None and after.solids_count != expected_solids_count:
        return [f"{operation}: solids_count={after.solids_count}, expected {expected_solids_count}"]
    return []


def check_change(before: SolidFacts, after: SolidFacts, change: Change, operation: str) -> list[str]:
    """Judge a result against what it was made from.

    Returns:
        Warnings, such as a cut that removed nothing.

    Raises:
        ToolError: nothing is left, or volume or extent moved the wrong way.
    """
    if after.bounds_mm is None or after.faces_count == 0:
        raise _refused(_EMPTY.get(change, f"{operation}: result is empty"), "empty_result", operation)
    tolerance = GROWTH_TOLERANCE_RATIO * max(before.diagonal_mm, 1e-9)
    if change is not Change.ADD and before.bounds_mm is not None:
        grown = _growth_mm(before.bounds_mm, after.bounds_mm)
        # A shell may be made outwards, so only its volume tells.
        if grown > tolerance and change in (Change.REMOVE, Change.BLEND):
            raise _refused(
                f"{operation}: result reaches {grown:.4g} mm outside the part it was made from; the kernel failed",
                "result_grew", operation, fix="make the dimension smaller",
            )  # fmt: skip
    slack = 1e-9 * max(before.volume_mm3, 1e-9)
    gained = after.volume_mm3 - before.volume_mm3
    if change is Change.ADD and gained < -slack:
        raise _refused(f"{operation}: volume shrank by {-gained:.6g} mm3", "wrong_volume_change", operation)
    if change is Change.REMOVE and gained > slack:
        raise _refused(f"{operation}: volume grew by {gained:.6g} mm3", "wrong_volume_change", operation)
    if abs(gained) <= slack and change in (Change.ADD, Change.REMOVE):
        return [f"{operation}: volume did not change ({after.volume_mm3:.6g} mm3): {_UNCHANGED[change]}"]
    return []


def largest_that_works(works: Callable[[float], bool], too_large: float, *, likely: float = 0.0) -> float:
    """Return the largest value below `too_large` that works, within 0.4 % and rounded down to three digits.

    Args:
        works: tries a value with the kernel and the guard.
        too_large: a value known to fail, above 0.
        likely: where geometry says the limit is, such as half the shortest edge; tried first, since failing is slow.

    Returns:
        0 when nothing works.
    """
    low, high = 0.0, too_large
    if 0 < likely * (1 - RESOLUTION_RATIO) < too_large:
        if works(likely * (1 - RESOLUTION_RATIO)):
            low = likely * (1 - RESOLUTION_RATIO)
            if low < likely * (1 + RESOLUTION_RATIO) < high and not works(likely * (1 + RESOLUTION_RATIO)):
                high = likely * (1 + RESOLUTION_RATIO)
        else:
            high = likely * (1 - RESOLUTION_RATIO)
    for _ in range(12):
        if high - low <= 2.1 * RESOLUTION_RATIO * low:
            break
        middle = (low + high) / 2
        if works(middle):
            low = middle
        else:
            high = middle
    rounded = _rounded_down(low, 3)
    return rounded if rounded > 0 and (rounded == low or works(rounded)) else low


_EMPTY = {
    Change.REMOVE: "result is empty: the cut removed all material",
    Change.HOLLOW: "result is empty: the shell removed all material",
}
_UNCHANGED = {
    Change.ADD: "the second part lies inside the first",
    Change.REMOVE: "the tool does not touch the part",
}


def _growth_mm(before: Bounds, after: Bounds) -> float:
    lows = (old - new for old, new in zip(before[:3], after[:3], strict=True))
    highs = (new - old for old, new in zip(before[3:], after[3:], strict=True))
    return max(*lows, *highs)


def _rounded_down(value: float, digits: int) -> float:
    if value <= 0:
        return 0.0
    written = f"{value:.{digits - 1}e}"
    rounded = float(written)
    if rounded <= value:
        return rounded
    exponent = int(written.split("e")[1])
    return float(f"{rounded - 10.0 ** (exponent - digits + 1):.{digits - 1}e}")


def _refused(message: str, kind: str, where: str, fix: str = "") -> ToolError:
    return ToolError(message, kind=kind, where=where, fix=fix, failure_mode=FailureMode.DESIGN)
