"""Read the netlist that KiCad writes: components, their pins, and which net each pin is on."""

from dataclasses import dataclass, field

from metaforge.formats.kicad_sexpr import Node, child, children, head, parse, value


class NotANetlist(ValueError):
    """The file holds another kind of list."""


@dataclass(frozen=True)
class Pin:
    """One pin of one component.

    Attributes:
        component: its reference, such as `U1`.
        number: as on the symbol.
        function: its name on the symbol; empty where it has none.
        kind: `input`, `passive`, `power_in` ...; empty where the file does not say.
    """

    component: str
    number: str
    function: str = ""
    kind: str = ""


@dataclass(frozen=True)
class Component:
    """One part.

    Attributes:
        symbol: `library:name`; empty where the file does not say.
        fields: what else the schematic says of it.
    """

    reference: str
    value: str = ""
    footprint: str = ""
    symbol: str = ""
    fields: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Net:
    """Pins that are connected."""

    name: str
    pins: tuple[Pin, ...]


@dataclass(frozen=True)
class Netlist:
    """A whole circuit.

    Attributes:
        components: in the file's order.
        nets: those of single pins too.
        library_pins: symbol -> its pins as (number, name, kind).
    """

    components: tuple[Component, ...]
    nets: tuple[Net, ...]
    library_pins: dict[str, tuple[tuple[str, str, str], ...]] = field(default_factory=dict)

    def pin_groups(self) -> frozenset[frozenset[tuple[str, str]]]:
        """Return which pins are connected, without the nets' names."""
        return frozenset(frozenset((pin.component, pin.number) for pin in net.pins) for net in self.nets if net.pins)


def read_netlist(text: str) -> Netlist:
    """Read a netlist in KiCad's own format.

    Raises:
        BadExpression: its lists are not closed.
        NotANetlist: it is a list of another kind.
    """
    root = parse(text)
    if head(root) != "export":
        raise NotANetlist(f"the file holds a {head(root) or 'list without a keyword'}, not a netlist (export)")
    parts, nets, library = child(root, "components") or [], child(root, "nets") or [], child(root, "libparts") or []
    return Netlist(
        tuple(_component(node) for node in children(parts, "comp")),
        tuple(
            Net(value(node, "name"), tuple(_pin(each) for each in children(node, "node")))
            for node in children(nets, "net")
        ),
        {f"{value(node, 'lib')}:{value(node, 'part')}": _library_pins(node) for node in children(library, "libpart")},
    )


def _component(node: Node) -> Component:
    source = child(node, "libsource") or []
    fields: dict[str, str] = {}
    for each in children(child(node, "fields") or [], "field"):
        said = [text for text in each[1:] if isinstance(text, str)]
        fields[value(each, "name")] = said[0] if said else ""
    # Marks such as dnp and exclude_from_bom are properties without a value.
    for each in children(node, "property"):
        fields.setdefault(value(each, "name"), value(each, "value"))
    name = f"{value(source, 'lib')}:{value(source, 'part')}" if source else ""
    return Component(value(node, "ref"), value(node, "value"), value(node, "footprint"), name, fields)


def _pin(node: Node) -> Pin:
    return Pin(value(node, "ref"), value(node, "pin"), value(node, "pinfunction"), value(node, "pintype"))


def _library_pins(node: Node) -> tuple[tuple[str, str, str], ...]:
    pins = child(node, "pins") or []
    return tuple((value(pin, "num"), value(pin, "name"), value(pin, "type")) for pin in children(pins, "pin"))
