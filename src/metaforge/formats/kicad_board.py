"""Read the copper of a KiCad board file (`.kicad_pcb`): tracks, vias, pads and zones with the nets they say."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from math import atan2, cos, hypot, pi, radians, sin

from metaforge.formats.kicad_sexpr import Node, child, children, head, numbers, parse, properties, texts, value

NEWEST_VERSION = 20241229
"""The file format of KiCad 9; newer ones it does not read."""
ARC_STEPS = 16
Point = tuple[float, float]


class NotABoard(ValueError):
    """The file holds another kind of list."""


@dataclass(frozen=True)
class Track:
    """A straight piece of track, or a piece of an arc.

    Attributes:
        at: where KiCad says that it is: the start of the whole track.
    """

    net: str
    layer: str
    start: Point
    end: Point
    width_mm: float
    at: Point


@dataclass(frozen=True)
class Via:
    """A via; through the layers named, or from the first to the last of them."""

    net: str
    layers: tuple[str, ...]
    at: Point
    diameter_mm: float


@dataclass(frozen=True)
class Pad:
    """A pad in the board's own coordinates, as a rectangle with rounded corners.

    Attributes:
        name: `R1 pad 2`.
        core_mm: half width and half height of the rectangle inside its rounding.
        rounding_mm: radius of the corners; all of it for a circle.
        angle_deg: by which it is turned, counter-clockwise.
        centre: of the copper; `at` is that of the pad.
    """

    name: str
    net: str
    layers: tuple[str, ...]
    at: Point
    centre: Point
    core_mm: Point
    rounding_mm: float
    angle_deg: float


@dataclass(frozen=True)
class Board:
    """A board's copper.

    Attributes:
        version: of the file format, a date as a number.
        copper_layers: from front to back.
        layers: all of them.
        footprints_count: of the board.
        empty_zones: nets of zones that have no filled copper.
        zones_count: copper zones, without keep-out areas.
        outline_count: drawings on the board's edge.
        size_mm: width and height within the middle of the edge's lines.
    """

    version: int
    copper_layers: tuple[str, ...]
    layers: tuple[str, ...]
    nets: tuple[str, ...]
    tracks: tuple[Track, ...]
    vias: tuple[Via, ...]
    pads: tuple[Pad, ...]
    footprints_count: int
    zones_count: int
    empty_zones: tuple[str, ...]
    outline_count: int
    size_mm: Point = (0.0, 0.0)


def read_board(text: str) -> Board:
    """Read a board file.

    Raises:
        BadExpression: its lists are not closed.
        NotABoard: it is a list of another kind.
    """
    root = parse(text)
    if head(root) != "kicad_pcb":
        raise NotABoard(f"the file holds a {head(root) or 'list without a keyword'}, not a kicad_pcb")
    listed = [texts(["", *row]) for row in child(root, "layers") or [] if not isinstance(row, str)]
    copper = tuple(row[1] for row in listed if len(row) > 1 and row[1].endswith(".Cu"))
    nets = {row[0]: row[1] for node in children(root, "net") if len(row := texts(node)) >= 2}
    zones = [node for node in children(root, "zone") if child(node, "keepout") is None]
    version = value(root, "version", "0")
    footprints = list(children(root, "footprint", "module"))
    outline = [node for node in root if not isinstance(node, str) and _is_outline(node)]
    return Board(
        int(version) if version.isdigit() else 0,
        copper,
        tuple(row[1] for row in listed if len(row) > 1),
        tuple(nets.values()),
        tuple(track for node in children(root, "segment", "arc") for track in _tracks(node, nets)),
        tuple(_via(node, nets, copper) for node in children(root, "via")),
        tuple(pad for node in footprints for pad in _pads(node, nets, copper)),
        len(footprints),
        len(zones),
        tuple(_net(node, nets) for node in zones if child(node, "filled_polygon") is None),
        len(outline),
        _size(outline),
    )


def _is_outline(node: Node) -> bool:
    return head(node).startswith("gr_") and value(node, "layer") == "Edge.Cuts"


def _size(outline: list[Node]) -> Point:
    points = [point for node in outline for point in _edge_points(node)]
    if not points:
        return (0.0, 0.0)
    xs, ys = [x for x, _ in points], [y for _, y in points]
    return round(max(xs) - min(xs), 3), round(max(ys) - min(ys), 3)


def _edge_points(node: Node) -> list[Point]:
    """Return points that an edge's drawing reaches to."""
    start, end = _xy(node, "start"), _xy(node, "end")
    if head(node) == "gr_circle":
        (x, y), radius = _xy(node, "center"), hypot(*(a - b for a, b in zip(_xy(node, "center"), end, strict=True)))
        return [(x - radius, y - radius), (x + radius, y + radius)]
    if head(node) == "gr_arc" and child(node, "mid"):
        return _arc_points(start, _xy(node, "mid"), end)
    corners = [numbers(["", corner], "xy") for corner in children(child(node, "pts") or [], "xy")]
    return [(corner[0], corner[1]) for corner in corners if len(corner) >= 2] or [start, end]


def _net(node: Node, nets: dict[str, str]) -> str:
    """Return a net's name: files say its number, newer ones its name."""
    said = texts(child(node, "net") or [])
    return nets.get(said[0], said[-1]) if said else ""


def _xy(node: Node, name: str) -> Point:
    found = numbers(node, name)
    return (found[0], found[1]) if len(found) >= 2 else (0.0, 0.0)


def _width(node: Node) -> float:
    return next(iter(numbers(node, "width")), 0.0)


def _tracks(node: Node, nets: dict[str, str]) -> Iterator[Track]:
    net, layer, start, end = _net(node, nets), value(node, "layer"), _xy(node, "start"), _xy(node, "end")
    points = [start, end] if head(node) == "segment" else _arc_points(start, _xy(node, "mid"), end)
    for first, second in pairwise(points):
        yield Track(net, layer, first, second, _width(node), start)


def _arc_points(start: Point, mid: Point, end: Point) -> list[Point]:
    """Return points along the arc through three."""
    (ax, ay), (bx, by), (cx, cy) = start, mid, end
    area = 2 * (ax * (by - cy) + bx * (cy - ay) + cx * (ay - by))
    if abs(area) < 1e-9:
        return [start, end]
    a2, b2, c2 = ax * ax + ay * ay, bx * bx + by * by, cx * cx + cy * cy
    x = (a2 * (by - cy) + b2 * (cy - ay) + c2 * (ay - by)) / area
    y = (a2 * (cx - bx) + b2 * (ax - cx) + c2 * (bx - ax)) / area
    radius = hypot(ax - x, ay - y)
    first, middle, last = (atan2(py - y, px - x) for px, py in (start, mid, end))
    sweep = (last - first) % (2 * pi)
    if (middle - first) % (2 * pi) > sweep:
        sweep -= 2 * pi
    angles = [first + sweep * step / ARC_STEPS for step in range(ARC_STEPS + 1)]
    inner = [(x + radius * cos(angle), y + radius * sin(angle)) for angle in angles[1:-1]]
    return [start, *inner, end]


def _via(node: Node, nets: dict[str, str], copper: tuple[str, ...]) -> Via:
    named = texts(child(node, "layers") or [])
    ends = sorted(copper.index(name) for name in named if name in copper)
    layers = copper[ends[0] : ends[-1] + 1] if ends else copper
    return Via(_net(node, nets), layers, _xy(node, "at"), next(iter(numbers(node, "size")), 0.0))


def _pads(footprint: Node, nets: dict[str, str], copper: tuple[str, ...]) -> Iterator[Pad]:
    at = numbers(footprint, "at")
    x, y, turn = (*at, 0.0, 0.0, 0.0)[:3]
    reference = properties(footprint).get("Reference", "") or next(
        (words[1] for node in children(footprint, "fp_text") if (words := texts(node))[:1] == ["reference"]), ""
    )
    for node in children(footprint, "pad"):
        words = texts(node)
        if len(words) < 3 or words[1] == "np_thru_hole":
            continue
        place = (*numbers(node, "at"), 0.0, 0.0, 0.0)[:3]
        px, py = _turned(place[0], place[1], turn)
        centre = (x + px, y + py)
        offset = _xy(child(node, "drill") or [], "offset")
        ox, oy = _turned(offset[0], offset[1], place[2])
        core, rounding = _shape(node, words[2])
        layers = tuple(layer for name in texts(child(node, "layers") or []) for layer in _named(name, copper))
        name = f"{reference} pad {words[0]}".strip()
        yield Pad(name, _net(node, nets), layers, centre, (centre[0] + ox, centre[1] + oy), core, rounding, place[2])


def _turned(x: float, y: float, angle_deg: float) -> Point:
    """Turn counter-clockwise as KiCad does, y downwards."""
    angle = radians(angle_deg)
    return x * cos(angle) + y * sin(angle), -x * sin(angle) + y * cos(angle)


def _named(name: str, copper: tuple[str, ...]) -> tuple[str, ...]:
    if name in ("*.Cu", "F&B.Cu"):
        return copper if name == "*.Cu" else tuple(layer for layer in copper if layer in ("F.Cu", "B.Cu"))
    return (name,) if name in copper else ()


def _shape(node: Node, kind: str) -> tuple[Point, float]:
    """Return a pad's half sizes inside its rounding, and the rounding; never more copper than there is."""
    width, height = (max(side, 0.0) / 2 for side in _xy(node, "size"))
    shortest = min(width, height)
    if kind == "circle":
        return (0.0, 0.0), width
    if kind == "oval":
        return (width - shortest, height - shortest), shortest
    if kind == "roundrect":
        if child(node, "chamfer") is not None:
            shortest *= 2 * max(next(iter(numbers(node, "chamfer_ratio")), 0.0), 0.25)
            return (max(width - shortest, 0.0), max(height - shortest, 0.0)), 0.0
        radius = 2 * shortest * next(iter(numbers(node, "roundrect_rratio")), 0.25)
        return (width - radius, height - radius), radius
    if kind == "rect":
        return (width, height), 0.0
    # Of custom and trapezoid pads the middle is certain.
    return (0.0, 0.0), shortest / 2
