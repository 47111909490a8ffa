"""Watch a script's CadQuery calls: guard each blend, remember empty selections and what emptied the part.

CadQuery returns broken solids from fillets without a word, and the error of an empty selection names neither the
selector nor what was there. The watch is on while the script runs.
"""

import collections
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

import cadquery as cq
from cadquery.occ_impl import shapes as cq_shapes

from metaforge.adapters.cadquery import blend
from metaforge.adapters.cadquery.kernel_errors import KERNEL_OR_GUARD
from metaforge.adapters.cadquery.measure import facts
from metaforge.core.errors import ToolError

NAME = "<script>"
"""The file name that a script is compiled under."""


def script_line(frame: FrameType | None) -> int:
    """Return the line of the script that a frame was called from; 0 when there is none."""
    while frame is not None:
        if frame.f_code.co_filename == NAME:
            return frame.f_lineno
        frame = frame.f_back
    return 0


@dataclass
class Selection:
    """The last selector that matched nothing."""

    selector: str
    what: str
    candidates_count: int
    kinds: str

    def sentence(self) -> str:
        return f"selector {self.selector!r} matched 0 of {self.candidates_count} {self.what}; present: {self.kinds}"


@dataclass
class Watch:
    """What was seen."""

    empty_selection: Selection | None = None
    emptied_by: str = ""
    emptied_line: int = 0


@contextmanager
def watched() -> Iterator[Watch]:
    """Put guards on CadQuery while the block runs."""
    watch = Watch()
    replaced = [
        (cq_shapes.Mixin3D, "fillet", _guarded_fillet),
        (cq_shapes.Mixin3D, "chamfer", _guarded_chamfer),
        (cq.Workplane, "_selectObjects", _noting_selection(watch)),
        (cq_shapes.Shape, "cut", _noting_emptied(watch, "cut")),
        (cq_shapes.Compound, "cut", _noting_emptied(watch, "cut")),
        (cq_shapes.Shape, "intersect", _noting_emptied(watch, "intersect")),
        (cq_shapes.Compound, "intersect", _noting_emptied(watch, "intersect")),
    ]
    originals = [(owner, name, owner.__dict__[name]) for owner, name, _ in replaced]
    try:
        for (owner, name, original), (_, _, make) in zip(originals, replaced, strict=True):
            setattr(owner, name, make(original))
        yield watch
    finally:
        for owner, name, original in originals:
            setattr(owner, name, original)


def _guarded_fillet(original: Callable[..., Any]) -> Callable[..., Any]:
    def fillet(self: Any, radius: float, edgeList: Any) -> Any:
        edges = list(edgeList)
        return _guarded(self, edges, float(radius), "fillet", lambda: original(self, radius, edges))

    return fillet


def _guarded_chamfer(original: Callable[..., Any]) -> Callable[..., Any]:
    def chamfer(self: Any, length: float, length2: float | None, edgeList: Any) -> Any:
        edges = list(edgeList)
        return _guarded(self, edges, float(length), "chamfer", lambda: original(self, length, length2, edges))

    return chamfer


def _guarded(solid: Any, edges: Sequence[Any], size_mm: float, operation: str, run: Callable[[], Any]) -> Any:
    if size_mm <= 0:
        size = "radius" if operation == "fillet" else "length"
        raise ToolError(
            f"{operation}: {size} {size_mm:g} mm is not above 0", kind=f"bad_{operation}", where=operation,
            fix=f"give a {size} above 0 mm",
        )  # fmt: skip
    before = facts(solid.wrapped)
    wrapped = [edge.wrapped for edge in edges]
    try:
        made = run()
        blend.judge(before, made.wrapped, operation)
    except KERNEL_OR_GUARD as fault:
        raise blend.too_large(solid.wrapped, wrapped, size_mm, operation, str(fault).split("\n")[0]) from None
    return made


def _noting_selection(watch: Watch) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def guard(original: Callable[..., Any]) -> Callable[..., Any]:
        def select(self: Any, objType: str, selector: Any = None, tag: Any = None) -> Any:
            found = original(self, objType, selector, tag)
            if selector is not None and not found.objects:
                source = self._getTagged(tag) if tag else self
                candidates = source._collectProperty(objType)
                kinds = collections.Counter(each.geomType() for each in candidates)
                listed = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common()) or "none"
                watch.empty_selection = Selection(str(selector), objType.lower(), len(candidates), listed)
            return found

        return select

    return guard


def _noting_emptied(watch: Watch, operation: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def guard(original: Callable[..., Any]) -> Callable[..., Any]:
        def combine(self: Any, *others: Any, **options: Any) -> Any:
            made = original(self, *others, **options)
            if not made.Faces():
                watch.emptied_by, watch.emptied_line = operation, script_line(sys._getframe())
            return made

        return combine

    return guard
