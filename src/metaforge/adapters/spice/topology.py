"""How a circuit hangs together: what has no path to ground for a direct current, and loops of voltage sources."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from metaforge.adapters.spice.circuit import GROUND, Circuit, Element
from metaforge.adapters.spice.values import read_value

_STIFF = frozenset("veh")
"""Elements that fix the voltage between their nodes."""
_NO_DIRECT_CURRENT = frozenset("cik")


class Groups:
    """Sets of nodes that grow together."""

    def __init__(self) -> None:
        self._parent: dict[str, str] = {}

    def find(self, node: str) -> str:
        """Return the node that stands for the whole group."""
        root = node
        while (up := self._parent.get(root, root)) != root:
            root = up
        while (up := self._parent.get(node, node)) != root:
            self._parent[node] = root
            node = up
        return root

    def join(self, first: str, second: str) -> bool:
        """Join two groups; False when they were one already."""
        one, other = self.find(first), self.find(second)
        if one == other:
            return False
        self._parent[one] = other
        return True


@dataclass(frozen=True)
class Island:
    """Nodes without a path to ground for a direct current.

    Attributes:
        nodes: in their alphabetical order.
        drivers: current sources that push a current in or out that can go nowhere.
        touches_ground: whether a capacitor or a current source leads to ground.
    """

    nodes: tuple[str, ...]
    drivers: tuple[Element, ...] = ()
    touches_ground: bool = False


@dataclass(frozen=True)
class Loop:
    """A closed path of elements that fix voltages.

    Attributes:
        elements: around the loop.
        has_inductor: whether one of them is an inductor, which is a short for a direct current.
        gap_v: the sum of the voltages around it, which must be zero, or None when it cannot be told.
    """

    elements: tuple[Element, ...]
    has_inductor: bool
    gap_v: float | None


def has_ground(circuit: Circuit) -> bool:
    """Whether anything is connected to node 0."""
    return any(GROUND in element.nodes for element in circuit.elements)


def islands(circuit: Circuit, swept: str = "") -> list[Island]:
    """Return the groups of nodes without a direct-current path to ground.

    Args:
        swept: name of a current source that a sweep drives, whatever its own value.
    """
    conducting, touching = Groups(), Groups()
    for element in circuit.elements:
        for group in _conducting(element):
            for node in group[1:]:
                conducting.join(group[0], node)
        for node in element.nodes[1:]:
            touching.join(element.nodes[0], node)
    members: defaultdict[str, list[str]] = defaultdict(list)
    for node in circuit.nodes:
        if node != GROUND and conducting.find(node) != conducting.find(GROUND):
            members[conducting.find(node)].append(node)
    drivers = _drivers(circuit, conducting, swept)
    return [
        Island(tuple(sorted(nodes)), tuple(drivers[root]), touching.find(nodes[0]) == touching.find(GROUND))
        for root, nodes in sorted(members.items(), key=lambda item: sorted(item[1]))
    ]


def _drivers(circuit: Circuit, conducting: Groups, swept: str) -> defaultdict[str, list[Element]]:
    """Return the current sources that lead into each group from another one."""
    found: defaultdict[str, list[Element]] = defaultdict(list)
    for element in circuit.elements:
        if element.letter != "i" or len(element.nodes) != 2:
            continue
        ends = [conducting.find(node) for node in element.nodes]
        if ends[0] != ends[1] and (element.name == swept or start_value(element) != 0):
            for end in ends:
                found[end].append(element)
    return found


def _conducting(element: Element) -> Iterable[tuple[str, ...]]:
    """Return the groups of an element's nodes between which a direct current can flow."""
    if element.letter in _NO_DIRECT_CURRENT:
        return ()
    if element.letter == "m":
        # Drain, source and bulk, through channel and junctions; the gate draws nothing.
        return ((element.nodes[0], *element.nodes[2:]),)
    if element.letter in ("t", "o") and len(element.nodes) == 4:
        return (element.nodes[0::2], element.nodes[1::2])
    if element.letter in ("a", "n", "y", "p", "x", "u"):
        return ((*element.nodes, GROUND),)
    return (element.nodes,)


def voltage_loops(circuit: Circuit) -> list[Loop]:
    """Return loops of voltage sources and inductors, each found by the element that closes it."""
    tree: defaultdict[str, list[tuple[str, Element]]] = defaultdict(list)
    groups = Groups()
    loops: list[Loop] = []
    for element in sorted(circuit.elements, key=lambda element: element.letter == "l"):
        if len(element.nodes) != 2 or not (element.letter in _STIFF or element.letter == "l" or _is_voltage(element)):
            continue
        first, second = element.nodes
        if first == second:
            if element.letter != "l" and start_value(element) != 0:
                loops.append(Loop((element,), False, start_value(element)))
        elif groups.join(first, second):
            tree[first].append((second, element))
            tree[second].append((first, element))
        else:
            loops.append(_loop(tree, element))
    return loops


def _is_voltage(element: Element) -> bool:
    return element.letter == "b" and " ".join(element.words[3:]).replace(" ", "").lower().startswith("v=")


def _loop(tree: dict[str, list[tuple[str, Element]]], closing: Element) -> Loop:
    start, goal = closing.nodes
    came: dict[str, tuple[str, Element] | None] = {start: None}
    pending = [start]
    while pending and goal not in came:
        here = pending.pop()
        for there, element in tree[here]:
            if there not in came:
                came[there] = (here, element)
                pending.append(there)
    around = [closing]
    gap = _rise(closing, closing.nodes[0])
    node = goal
    while (step := came.get(node)) is not None:
        before, element = step
        around.append(element)
        rise = _rise(element, before)
        gap = None if gap is None or rise is None else gap - rise
        node = before
    return Loop(tuple(around), any(element.letter == "l" for element in around), gap)


def _rise(element: Element, start: str) -> float | None:
    """Return the voltage of `start` over the other node, where it is a plain number."""
    value = 0.0 if element.letter == "l" else start_value(element) if element.letter == "v" else None
    return None if value is None else value if element.nodes[0] == start else -value


def start_value(source: Element) -> float | None:
    """Return an independent source's direct value, or its value at time zero; None when it is an expression."""
    words = [word.lower() for word in source.card.text.replace("(", " ( ").replace(",", " ").split()[3:]]
    if "=" in words:
        words = [word for word in words if word != "="]
    if "dc" in words:
        after = words[words.index("dc") + 1 :]
        return read_value(after[0]) if after else 0.0
    if words and words[0] not in ("ac", "distof1", "distof2", "portnum") and read_value(words[0]) is not None:
        return read_value(words[0])
    for shape, place in (("pulse", 0), ("sin", 0), ("exp", 0), ("pwl", 1), ("sffm", 0), ("am", 0)):
        if shape in words:
            numbers = [word.strip("()") for word in words[words.index(shape) + 1 :] if word.strip("()")]
            return read_value(numbers[place]) if len(numbers) > place else None
    if not words or words[0] in ("ac", "distof1", "distof2", "portnum"):
        return 0.0
    return None
