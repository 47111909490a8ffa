"""Fillet and chamfer under guard: a radius the kernel cannot do is refused with the largest one it can."""

import time
from collections.abc import Callable, Sequence
from typing import Any

from OCP.BRepCheck import BRepCheck_Analyzer
from OCP.BRepFilletAPI import BRepFilletAPI_MakeChamfer, BRepFilletAPI_MakeFillet
from OCP.BRepGProp import BRepGProp
from OCP.GProp import GProp_GProps

from metaforge.adapters.cadquery.kernel_errors import KERNEL_OR_GUARD
from metaforge.adapters.cadquery.measure import facts
from metaforge.core.errors import FailureMode, ToolError
from metaforge.engineering.solid_guard import Change, SolidFacts, check_change, check_solid, largest_that_works

SEARCH_SECONDS = 10.0
"""How long to look for the largest radius before giving the best one found."""

_SIZES = {"fillet": "radius", "chamfer": "length"}


def fillet(shape: Any, edges: Sequence[Any], radius_mm: float) -> Any:
    """Round edges.

    Args:
        shape: a `TopoDS_Shape` with solids.
        edges: `TopoDS_Edge`s of it.
        radius_mm: of the rounding.

    Raises:
        ToolError: `fillet_too_large`, with the largest radius that works.
    """
    return _blend(shape, edges, radius_mm, "fillet", _make_fillet)


def chamfer(shape: Any, edges: Sequence[Any], length_mm: float) -> Any:
    """Cut edges at 45 degrees; raises `chamfer_too_large` with the largest length that works."""
    return _blend(shape, edges, length_mm, "chamfer", _make_chamfer)


def judge(before: SolidFacts, after: Any, operation: str) -> None:
    """Raise ToolError when a blend's result cannot be right."""
    measured = facts(after)
    check_solid(measured, operation, expected_solids_count=None)
    check_change(before, measured, Change.BLEND, operation)


def too_large(shape: Any, edges: Sequence[Any], size_mm: float, operation: str, why: str = "") -> ToolError:
    """Return the error for a blend that failed, with the largest size that works on these edges."""
    make = _make_fillet if operation == "fillet" else _make_chamfer
    before, until = facts(shape), time.monotonic() + SEARCH_SECONDS
    size = _SIZES[operation]
    shortest = min((_length(edge) for edge in edges), default=0.0)

    def works(value: float) -> bool:
        if time.monotonic() > until:
            return False
        try:
            made = make(shape, edges, value)
            # The cheap half of the guard first: a broken blend takes long to measure.
            if not BRepCheck_Analyzer(made).IsValid():
                return False
            judge(before, made, operation)
        except KERNEL_OR_GUARD:
            return False
        return True

    limit = largest_that_works(works, size_mm, likely=shortest / 2)
    on = f"{len(edges)} edges" if len(edges) != 1 else "the edge"
    about = f"{operation}: {size} {size_mm:g} mm exceeds the limit on {on} (shortest {shortest:.4g} mm)"
    if limit > 0:
        return ToolError(
            f"{about}; the largest {size} that works is {limit:.6g} mm",
            kind=f"{operation}_too_large", where=f"{operation} of {on}", failure_mode=FailureMode.DESIGN,
            fix=f"use a {size} of at most {limit:.6g} mm", limit_mm=limit,
        )  # fmt: skip
    return ToolError(
        f"{operation}: the kernel cannot blend {on} with any {size} up to {size_mm:g} mm{why and ': ' + why}",
        kind=f"{operation}_failed", where=f"{operation} of {on}", failure_mode=FailureMode.DESIGN,
        fix="choose fewer edges, or leave out those that meet tangent faces",
    )  # fmt: skip


def _blend(
    shape: Any, edges: Sequence[Any], size_mm: float, operation: str, make: Callable[[Any, Sequence[Any], float], Any]
) -> Any:
    before = facts(shape)
    try:
        made = make(shape, edges, size_mm)
        judge(before, made, operation)
    except KERNEL_OR_GUARD as fault:
        raise too_large(shape, edges, size_mm, operation, str(fault).split("\n")[0]) from None
    return made


def _make_fillet(shape: Any, edges: Sequence[Any], radius_mm: float) -> Any:
    builder = BRepFilletAPI_MakeFillet(shape)
    for edge in edges:
        builder.Add(radius_mm, edge)
    return builder.Shape()


def _make_chamfer(shape: Any, edges: Sequence[Any], length_mm: float) -> Any:
    builder = BRepFilletAPI_MakeChamfer(shape)
    for edge in edges:
        builder.Add(length_mm, edge)
    return builder.Shape()


def _length(edge: Any) -> float:
    found = GProp_GProps()
    BRepGProp.LinearProperties_s(edge, found)
    return float(found.Mass())
