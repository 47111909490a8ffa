"""What a netlist describes: elements between nodes, with subcircuits unfolded.

Enough of SPICE is read to see how things are connected and what they are worth. Where a line is not understood, its
element counts as connecting everything it touches: a fault is told only where there is no doubt.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from metaforge.adapters.spice.cards import BadNetlist, Card
from metaforge.adapters.spice.source import Netlist

GROUND = "0"
MAX_ELEMENTS = 200_000
MAX_NESTING = 50

_NODE_COUNTS = {
    "r": 2, "c": 2, "l": 2, "v": 2, "i": 2, "d": 2, "q": 3, "j": 3, "z": 3, "m": 4, "e": 2, "g": 2, "f": 2, "h": 2,
    "b": 2, "s": 4, "w": 2, "t": 4, "o": 4, "u": 3,
}  # fmt: skip
_LEAST_WORDS = {
    "r": 4, "c": 4, "l": 4, "v": 3, "i": 3, "d": 4, "q": 5, "j": 5, "z": 5, "m": 5, "e": 4, "g": 4, "f": 5, "h": 5,
    "b": 4, "s": 6, "w": 5, "t": 5, "o": 6, "u": 5, "k": 4, "x": 2, "y": 5,
}  # fmt: skip
"""Words of the shortest line that can be complete, the name included."""
_SHAPES = {
    "r": "R<name> node node value", "c": "C<name> node node value", "l": "L<name> node node value",
    "v": "V<name> node node value", "i": "I<name> node node value", "d": "D<name> anode cathode model",
    "q": "Q<name> collector base emitter model", "m": "M<name> drain gate source bulk model",
    "j": "J<name> drain gate source model", "e": "E<name> out+ out- in+ in- gain", "k": "K<name> L1 L2 coupling",
    "x": "X<name> nodes... subcircuit",
}  # fmt: skip
_POLY = re.compile(r"\b(poly|value|table|laplace|freq|vol|cur)\b", re.IGNORECASE)


@dataclass(frozen=True)
class Element:
    """One element of the unfolded circuit.

    Attributes:
        name: in lower case, with the instances around it: `x1.r3`.
        letter: what kind of element it is: `r`, `v` ...
        nodes: its terminals, in lower case; inner nodes of subcircuits as `x1.n`.
        senses: nodes it looks at without drawing current.
        mentions: nodes that its expression names.
        words: its line.
        card: where it stands.
    """

    name: str
    letter: str
    nodes: tuple[str, ...]
    senses: tuple[str, ...]
    words: tuple[str, ...]
    card: Card
    mentions: tuple[str, ...] = ()

    @property
    def is_inner(self) -> bool:
        return "." in self.name


@dataclass
class Subcircuit:
    """A `.subckt` and what stands in it."""

    name: str
    ports: tuple[str, ...]
    card: Card
    parent: "Subcircuit | None" = None
    elements: list[Card] = field(default_factory=list)
    models: set[str] = field(default_factory=set)
    inner: "dict[str, Subcircuit]" = field(default_factory=dict)

    def find(self, name: str) -> "Subcircuit | None":
        """Return the subcircuit of that name as seen from inside this one."""
        here: Subcircuit | None = self
        while here is not None:
            if name in here.inner:
                return here.inner[name]
            here = here.parent
        return None

    def knows_model(self, name: str) -> bool:
        """Whether a model of that name can be used inside this subcircuit; binned models count by their stem."""
        here: Subcircuit | None = self
        while here is not None:
            if name in here.models or any(each.startswith(f"{name}.") for each in here.models):
                return True
            here = here.parent
        return False


@dataclass(frozen=True)
class Circuit:
    """A netlist's circuit, unfolded.

    Attributes:
        elements: all of them, inner ones included.
        top: the netlist itself, as the outermost subcircuit.
        unsure: why the structure may be read wrongly, or empty; faults of structure are then only doubts.
    """

    elements: tuple[Element, ...]
    top: Subcircuit
    unsure: str = ""

    @cached_property
    def nodes(self) -> frozenset[str]:
        """Every node, ground as `0`."""
        return frozenset(node for element in self.elements for node in (*element.nodes, *element.senses))

    @cached_property
    def _by_name(self) -> dict[str, Element]:
        return {element.name: element for element in self.elements}

    def named(self, name: str) -> Element | None:
        """Return the element of that name."""
        return self._by_name.get(name.lower())

    def sources(self) -> list[Element]:
        """Return the independent sources."""
        return [element for element in self.elements if element.letter in "vi"]

    def models(self) -> set[str]:
        """Return the names of every model, inner ones included."""
        found: set[str] = set()
        pending = [self.top]
        while pending:
            here = pending.pop()
            found |= here.models
            pending += here.inner.values()
        return found

    def subcircuits(self) -> list[str]:
        """Return the names of the subcircuits that can be used at the top."""
        return sorted(self.top.inner)


def read_circuit(netlist: Netlist) -> Circuit:
    """Unfold a netlist.

    Raises:
        BadNetlist: a line is cut short, `.subckt` and `.ends` do not match, or unfolding gives too many elements.
    """
    top, unsure = _outline(netlist.cards)
    global_nodes = {
        node.lower() for card in netlist.cards if card.directive == ".global" for node in card.words[1:]
    } | {GROUND}
    elements = list(_Unfolding(global_nodes).unfold(top, "", {}, 0))
    return Circuit(tuple(elements), top, unsure)


def _outline(cards: Iterable[Card]) -> tuple[Subcircuit, str]:
    top = here = Subcircuit("", (), Card("", 0))
    unsure = ""
    for card in cards:
        word = card.directive
        if word == ".subckt":
            here = _open(card, here)
        elif word == ".ends":
            if here.parent is None:
                raise BadNetlist(".ends stands where no .subckt is open", where=card.where(), fix="remove one of them")
            here = here.parent
        elif word == ".model":
            if len(card.words) < 3:
                raise BadNetlist(".model needs a name and a type", where=card.where(), fix=".model D1N4148 D(IS=...)")
            here.models.add(card.words[1].lower())
        elif word in (".if", ".elseif", ".else"):
            unsure = f"{word} chooses between parts of the circuit"
        elif not word:
            _refuse_short(card)
            here.elements.append(card)
    if here is not top:
        raise BadNetlist(f"Subcircuit {here.name} has no .ends", kind="subcircuit_not_closed", where=here.card.where(),
                         fix="put .ends below its last element")  # fmt: skip
    return top, unsure


def _open(card: Card, here: Subcircuit) -> Subcircuit:
    words = _positional(card.words[1:])
    if not words:
        raise BadNetlist(".subckt has no name", where=card.where(), fix=".subckt NAME node node ...")
    made = Subcircuit(words[0].lower(), tuple(node.lower() for node in words[1:]), card, here)
    here.inner.setdefault(made.name, made)
    return made


def _positional(words: Iterable[str]) -> list[str]:
    """Return the words before the first `params:` or `name=value`."""
    joined = re.sub(r"\s*=\s*", "=", " ".join(words))
    found: list[str] = []
    for word in joined.split():
        if word.lower().startswith("params:") or "=" in word:
            break
        found.append(word)
    return found


def _refuse_short(card: Card) -> None:
    words = card.words
    letter = words[0][0].lower()
    named = words[1:3] if letter in "rcldqmjvix" else []
    if odd := next((word for word in named if "(" in word or ")" in word), ""):
        raise BadNetlist(
            f"Node name {odd} holds a parenthesis, where SPICE splits it into two nodes",
            kind="bad_node_name",
            where=card.where(),
            fix=f"rename it, for instance to {re.sub(r'[()]', '_', odd)}; newer KiCad does so when it exports",
        )
    least = _LEAST_WORDS.get(letter, 2)
    joined = re.sub(r"\s*=\s*", "=", card.text).split()
    if len(joined) < least:
        shape = _SHAPES.get(letter, "")
        raise BadNetlist(
            f"{words[0]} is cut short: {len(joined)} words where at least {least} are needed",
            kind="incomplete_element",
            where=card.where(),
            fix=f"write it as {shape}" if shape else "give all its nodes and its value or model",
        )


class _Unfolding:
    """Puts subcircuits in place of their instances."""

    def __init__(self, shared: set[str]) -> None:
        self.shared = shared
        self.count = 0

    def unfold(self, here: Subcircuit, prefix: str, ports: dict[str, str], depth: int) -> Iterator[Element]:
        """Yield the elements of a subcircuit and of everything in it."""
        if depth > MAX_NESTING:
            raise BadNetlist(f"Subcircuit {here.name} contains itself", kind="subcircuit_loop", where=here.card.where(),
                             fix="a subcircuit may not use itself, directly or through another")  # fmt: skip

        def place(node: str) -> str:
            name = node.lower()
            name = GROUND if name == "gnd" else name
            return name if name in self.shared else ports.get(name, f"{prefix}{name}")

        for card in here.elements:
            self._count_one()
            words = card.words
            letter, name = words[0][0].lower(), f"{prefix}{words[0].lower()}"
            if letter == "x":
                yield from self._instance(card, here, name, place, depth)
                continue
            nodes, senses = terminals(words, here)
            mentions = tuple(map(place, _mentioned(card.text))) if letter in "begrcl" else ()
            yield Element(
                name, letter, tuple(map(place, nodes)), tuple(map(place, senses)), tuple(words), card, mentions
            )

    def _count_one(self) -> None:
        # Instances count too: subcircuits of nothing but instances double with every level.
        self.count += 1
        if self.count > MAX_ELEMENTS:
            raise BadNetlist(f"The circuit unfolds to more than {MAX_ELEMENTS:,} elements", kind="circuit_too_large",
                             fix="simulate a part of it")  # fmt: skip

    def _instance(
        self, card: Card, here: Subcircuit, name: str, place: Callable[[str], str], depth: int
    ) -> Iterator[Element]:
        words = _positional(card.words[1:])
        inner = here.find(words[-1].lower()) if words else None
        if inner is None:
            # ngspice will say that it is missing; until then it connects everything it touches.
            yield Element(name, "x", tuple(place(node) for node in words[:-1]), (), tuple(card.words), card)
            return
        if len(words) - 1 != len(inner.ports):
            raise BadNetlist(
                f"{card.words[0]} connects {len(words) - 1} nodes, but {inner.name} has {len(inner.ports)} ports",
                kind="wrong_port_count",
                where=card.where(),
                fix=f"connect them in this order: {' '.join(inner.ports)}",
            )
        ports = {port: place(node) for port, node in zip(inner.ports, words[:-1], strict=True)}
        yield from self.unfold(inner, f"{name}.", ports, depth + 1)


def terminals(words: list[str], here: Subcircuit | None = None) -> tuple[list[str], list[str]]:
    """Return the nodes an element's line names: those that carry its current, and those it only senses."""
    letter = words[0][0].lower()
    rest = words[1:]
    if letter in ("e", "g"):
        controlled = rest[2:4] if len(rest) >= 5 and not _POLY.search(" ".join(rest[2:])) else []
        return rest[:2], controlled
    if letter == "s":
        return rest[:2], rest[2:4]
    if letter == "q":
        with_substrate = len(rest) > 4 and here is not None and not here.knows_model(rest[3].lower())
        return rest[: 4 if with_substrate and "=" not in rest[4] and not _is_number(rest[4]) else 3], []
    if letter in ("m", "d", "j", "z"):
        return _up_to_model(rest, _NODE_COUNTS[letter], here), []
    if letter == "k":
        return [], []
    if letter in ("a", "n", "y", "p"):
        return [re.sub(r"[\[\]~%]", "", word) for word in rest[:-1] if "=" not in word and not word.startswith("%")], []
    return rest[: _NODE_COUNTS.get(letter, 2)], []


def _mentioned(text: str) -> list[str]:
    """Return what may be nodes in an element's expression: whatever stands in parentheses behind its own nodes."""
    return [name for group in re.findall(r"\(([^()]*)\)", text) for name in re.split(r"[\s,]+", group) if name]


def _up_to_model(rest: list[str], count: int, here: Subcircuit | None) -> list[str]:
    """Return the nodes before the model's name; some devices have more of them than the usual ones."""
    if count == 4 and here is not None and len(rest) > 3 and here.knows_model(rest[3].lower()):
        # A power transistor without a bulk of its own.
        return rest[:3]
    if here is not None and not (len(rest) > count and here.knows_model(rest[count].lower())):
        for index in range(count + 1, min(len(rest), count + 4)):
            if here.knows_model(rest[index].lower()):
                return rest[:index]
    return rest[:count]


def _is_number(word: str) -> bool:
    return bool(re.match(r"[-+]?\.?\d", word))
