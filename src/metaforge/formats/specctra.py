"""Read and adapt what boards and routers exchange: Specctra designs (DSN) and sessions (SES)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from statistics import median

from metaforge.formats.kicad_sexpr import BadExpression, Node, child, children, parse

_UNIT_MM = {"um": 1e-3, "mm": 1.0, "mil": 0.0254, "inch": 25.4, "cm": 10.0}
_SIZE = r"(\d+(?:\.\d*)?|\.\d+)"
_PLACE = r"-?(?:\d+(?:\.\d*)?|\.\d+)"
_OVAL = re.compile(rf"\(shape \(path (\S+) {_SIZE}\s+({_PLACE}(?:\s+{_PLACE})+)\s*\)\)")
_WIDTH, _CLEARANCE = re.compile(rf"\(width {_SIZE}\)"), re.compile(rf"\(clearance {_SIZE}\)")
_VIA = re.compile(rf"_{_SIZE}:{_SIZE}_um")


class NotSpecctra(ValueError):
    """The file is no design or session."""


@dataclass(frozen=True)
class Wire:
    """A routed path on one layer.

    Attributes:
        layer: its place in the design's list of layers, front first.
        points_mm: x and y, y downwards as on the board.
    """

    net: str
    layer: int
    width_mm: float
    points_mm: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class RoutedVia:
    """A routed via."""

    net: str
    at_mm: tuple[float, float]
    diameter_mm: float
    drill_mm: float


@dataclass(frozen=True)
class Session:
    """What a router made."""

    wires: tuple[Wire, ...]
    vias: tuple[RoutedVia, ...]


def simplified(design: str) -> str:
    """Return a design for a router that knows one width and one clearance, and no oval pads.

    The largest of each class holds everywhere, and an oval becomes the rectangle around it: what such a router makes
    then keeps every rule, at the price of some room.
    """
    design = _OVAL.sub(_rectangle, design)
    for pattern, name in ((_WIDTH, "width"), (_CLEARANCE, "clearance")):
        values = [float(text) for text in pattern.findall(design)]
        if values:
            design = pattern.sub(f"({name} {max(values):g})", design, count=1)
    return design


def _rectangle(match: re.Match[str]) -> str:
    half, numbers = float(match[2]) / 2, [float(text) for text in match[3].split()]
    xs, ys = numbers[::2], numbers[1::2]
    return f"(shape (rect {match[1]} {min(xs) - half:g} {min(ys) - half:g} {max(xs) + half:g} {max(ys) + half:g}))"


def read_session(session: str, design: str) -> Session:
    """Read a session in the units of its design.

    Routers do not agree on what a session's resolution means, so its scale is measured on the parts, whose places both
    files tell.

    Raises:
        NotSpecctra: one of them is something else, or they have no part in common.
    """
    try:
        # A lone quote is how a design says which character quotes.
        designed, routed = parse(design.replace('(string_quote ")', "")), parse(session)
    except BadExpression as fault:
        raise NotSpecctra(str(fault)) from None
    structure, routes = child(designed, "structure"), child(routed, "routes")
    if structure is None or routes is None:
        raise NotSpecctra("a design without structure, or a session without routes")
    try:
        return _session(designed, routed, structure, routes)
    except (ValueError, IndexError, OverflowError) as fault:
        raise NotSpecctra(str(fault)) from None


def _session(designed: Node, routed: Node, structure: Node, routes: Node) -> Session:
    unit = _UNIT_MM.get(_word(child(designed, "unit") or child(designed, "resolution"), 1), 1e-3)
    scale = unit / _scale(_places(designed), _places(routed))
    layers = [_word(layer, 1) for layer in children(structure, "layer")]
    wires: list[Wire] = []
    vias: list[RoutedVia] = []
    for net in children(child(routes, "network_out") or [], "net"):
        name = _word(net, 1)
        wires += [_wire(name, path, layers, scale) for wire in children(net, "wire") for path in children(wire, "path")]
        vias += [_via(name, via, scale) for via in children(net, "via")]
    return Session(tuple(wires), tuple(vias))


def _word(node: Node | None, index: int) -> str:
    found = node[index] if node and len(node) > index else ""
    return found if isinstance(found, str) else ""


def _places(root: Node) -> dict[str, tuple[float, float]]:
    placement = child(root, "placement") or []
    return {
        _word(place, 1): (float(_word(place, 2)), float(_word(place, 3)))
        for component in children(placement, "component")
        for place in children(component, "place")
        if len(place) > 3
    }


def _scale(designed: dict[str, tuple[float, float]], routed: dict[str, tuple[float, float]]) -> float:
    ratios = [
        theirs / ours
        for name, place in designed.items()
        if name in routed
        for ours, theirs in zip(place, routed[name], strict=True)
        if abs(ours) > 1.0
    ]
    if not ratios or median(ratios) <= 0:
        raise NotSpecctra("session and design have no part in common")
    return median(ratios)


def _wire(net: str, path: Node, layers: list[str], scale: float) -> Wire:
    numbers = [float(text) * scale for text in path[2:] if isinstance(text, str)]
    if _word(path, 1) not in layers or len(numbers) < 5:
        raise NotSpecctra(f"a wire of {net} on layer {_word(path, 1)!r}")
    points = tuple((round(x, 6), round(-y, 6)) for x, y in zip(numbers[1::2], numbers[2::2], strict=True))
    return Wire(net, layers.index(_word(path, 1)), round(numbers[0], 6), points)


def _via(net: str, via: Node, scale: float) -> RoutedVia:
    size = _VIA.search(_word(via, 1))
    if size is None:
        raise NotSpecctra(f"a via of {net} with the unknown padstack {_word(via, 1)!r}")
    at = (round(float(_word(via, 2)) * scale, 6), round(-float(_word(via, 3)) * scale, 6))
    return RoutedVia(net, at, float(size[1]) / 1000, float(size[2]) / 1000)
