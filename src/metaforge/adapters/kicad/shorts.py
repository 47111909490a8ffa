"""Find copper of two nets that touches where KiCad is silent.

When it loads a board it gives loose tracks the net of what they touch, so a short between them is gone before any rule
is checked. This looks at the nets as the file has them.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import cos, hypot, radians, sin

from metaforge.formats.kicad_board import Board, Pad, Point, Track, Via
from metaforge.formats.kicad_report import Item, Violation

CELL_MM = 5.0
OVERLAP_MM = 1e-3
"""Copper that only grazes is the clearance rule's affair."""
MOST_ITEMS = 100_000
_TELLS = ("shorting_items", "tracks_crossing", "clearance", "hole_clearance")


@dataclass(frozen=True)
class _Copper:
    """A capsule or a rounded rectangle on some layers."""

    net: str
    layers: tuple[str, ...]
    what: str
    at: Point
    start: Point
    end: Point
    radius_mm: float
    pad: Pad | None = None

    def cells(self) -> Iterator[tuple[int, int]]:
        reach = self.radius_mm + (hypot(*self.pad.core_mm) if self.pad else 0.0)
        left, right = sorted((self.start[0], self.end[0]))
        top, bottom = sorted((self.start[1], self.end[1]))
        for column in range(int((left - reach) // CELL_MM), int((right + reach) // CELL_MM) + 1):
            for row in range(int((top - reach) // CELL_MM), int((bottom + reach) // CELL_MM) + 1):
                yield column, row


def find_shorts(board: Board) -> list[Violation]:
    """Return where tracks and vias touch copper of another net, each pair of items once."""
    loose = [*map(_track, board.tracks), *map(_via, board.vias)]
    if not loose or len(loose) + len(board.pads) > MOST_ITEMS:
        return []
    grid: dict[tuple[int, int], list[_Copper]] = defaultdict(list)
    for pad in map(_pad, board.pads):
        for cell in pad.cells():
            grid[cell].append(pad)
    found: dict[tuple[Point, Point], Violation] = {}
    for one in loose:
        for cell in one.cells():
            for other in grid[cell]:
                if one.net != other.net and one.net and other.net and (one.at, other.at) not in found:
                    touching = _touch(one, other)
                    if touching:
                        found[one.at, other.at] = _violation(one, other, touching)
            grid[cell].append(one)
    return list(found.values())


def missed_by(report: Sequence[Violation], found: Sequence[Violation]) -> list[Violation]:
    """Return those of `found` that the report does not tell in its own way."""
    known = {
        frozenset((round(item.x_mm, 3), round(item.y_mm, 3)) for item in each.items)
        for each in report
        if each.kind in _TELLS
    }
    # The first item of ours is where they touch; the others are the two items at KiCad's own positions.
    return [
        each
        for each in found
        if frozenset((round(item.x_mm, 3), round(item.y_mm, 3)) for item in each.items[1:]) not in known
    ]


def _track(track: Track) -> _Copper:
    what = f"Track [{track.net}] on {track.layer}"
    return _Copper(track.net, (track.layer,), what, track.at, track.start, track.end, track.width_mm / 2)


def _via(via: Via) -> _Copper:
    return _Copper(via.net, via.layers, f"Via [{via.net}]", via.at, via.at, via.at, via.diameter_mm / 2)


def _pad(pad: Pad) -> _Copper:
    return _Copper(pad.net, pad.layers, f"{pad.name} [{pad.net}]", pad.at, pad.centre, pad.centre, pad.rounding_mm, pad)


def _touch(one: _Copper, other: _Copper) -> Point | None:
    """Return a point where both are copper, or None."""
    if not set(one.layers) & set(other.layers):
        return None
    if other.pad is not None:
        gap, point = _to_pad(one, other.pad)
    else:
        gap, point = _between(one.start, one.end, other.start, other.end)
    return point if gap < one.radius_mm + other.radius_mm - OVERLAP_MM else None


def _to_pad(one: _Copper, pad: Pad) -> tuple[float, Point]:
    """Return the distance from a capsule's axis to the core of a pad, and the nearest point of the axis."""
    start, end = (_into(point, pad) for point in (one.start, one.end))
    width, height = pad.core_mm
    if abs(start[0]) <= width and abs(start[1]) <= height:
        return 0.0, one.start
    corners = [(-width, -height), (width, -height), (width, height), (-width, height)]
    sides = [_between(start, end, corners[n], corners[(n + 1) % 4]) for n in range(4)]
    if abs(end[0]) <= width and abs(end[1]) <= height:
        return 0.0, one.end
    gap, _ = min(sides)
    return gap, pad.centre


def _into(point: Point, pad: Pad) -> Point:
    """Return a point in the pad's own frame."""
    x, y, angle = point[0] - pad.centre[0], point[1] - pad.centre[1], radians(pad.angle_deg)
    return x * cos(angle) - y * sin(angle), x * sin(angle) + y * cos(angle)


def _between(a: Point, b: Point, c: Point, d: Point) -> tuple[float, Point]:
    """Return the distance between two segments, and the point where they cross or are nearest."""
    abx, aby, cdx, cdy = b[0] - a[0], b[1] - a[1], d[0] - c[0], d[1] - c[1]
    cross = abx * cdy - aby * cdx
    if abs(cross) > 1e-12:
        s = ((c[0] - a[0]) * cdy - (c[1] - a[1]) * cdx) / cross
        t = ((c[0] - a[0]) * aby - (c[1] - a[1]) * abx) / cross
        if 0 <= s <= 1 and 0 <= t <= 1:
            return 0.0, (a[0] + s * abx, a[1] + s * aby)
    return min(_nearest(c, a, b), _nearest(d, a, b), _nearest(a, c, d), _nearest(b, c, d))


def _nearest(point: Point, start: Point, end: Point) -> tuple[float, Point]:
    x, y = end[0] - start[0], end[1] - start[1]
    length2 = x * x + y * y
    share = ((point[0] - start[0]) * x + (point[1] - start[1]) * y) / length2 if length2 else 0.0
    share = min(max(share, 0.0), 1.0)
    foot = (start[0] + share * x, start[1] + share * y)
    return hypot(point[0] - foot[0], point[1] - foot[1]), foot


def _violation(one: _Copper, other: _Copper, at: Point) -> Violation:
    x, y = round(at[0], 4), round(at[1], 4)
    return Violation(
        "shorting_items",
        "error",
        f"{one.net} and {other.net} touch; KiCad itself gives one the other's net and is silent",
        (Item("where they touch", x, y), Item(one.what, *one.at), Item(other.what, *other.at)),
    )
