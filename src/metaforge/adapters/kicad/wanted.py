"""The circuit that a schematic is to show: parts, and which pins are connected."""

import re
from dataclasses import dataclass, field

from pydantic import BaseModel, ConfigDict

from metaforge.core.errors import InvalidArguments
from metaforge.formats.kicad_netlist import Netlist

MOST_PARTS = 400
GUESSES = {
    "R": "Device:R", "C": "Device:C", "L": "Device:L", "D": "Device:D", "LED": "Device:LED", "Y": "Device:Crystal",
    "F": "Device:Fuse", "BT": "Device:Battery_Cell", "SW": "Switch:SW_Push",
}  # fmt: skip
"""Symbols of parts that name none, by the letters of their reference."""


class SchematicPart(BaseModel):
    """symbol: LIBRARY:NAME of KiCad, such as Device:R; without it guessed from the reference, else drawn as a box."""

    model_config = ConfigDict(extra="forbid")

    reference: str
    value: str = ""
    symbol: str = ""
    footprint: str = ""
    fields: dict[str, str] | None = None


@dataclass(frozen=True)
class Part:
    """A part of the circuit."""

    reference: str
    value: str
    symbol: str
    footprint: str
    fields: dict[str, str] = field(default_factory=dict)

    @property
    def letters(self) -> str:
        return re.sub(r"\d.*$", "", self.reference)


@dataclass(frozen=True)
class Circuit:
    """Parts and nets.

    Attributes:
        nets: name -> pins as (reference, number or name).
        known_pins: symbol -> its pins (number, name, kind), where a netlist told them.
    """

    parts: tuple[Part, ...]
    nets: dict[str, tuple[tuple[str, str], ...]]
    known_pins: dict[str, tuple[tuple[str, str, str], ...]] = field(default_factory=dict)


def from_lists(parts: list[SchematicPart], nets: dict[str, list[str]]) -> Circuit:
    """Take parts and nets as a caller lists them.

    Raises:
        InvalidArguments: two parts share a reference, a pin is no `PART.PIN`, of an unknown part, or on two nets.
    """
    _refuse_doubles([part.reference for part in parts])
    known = {part.reference for part in parts}
    wrong: dict[str, str] = {}
    taken: dict[tuple[str, str], str] = {}
    wanted: dict[str, tuple[tuple[str, str], ...]] = {}
    for name, pins in nets.items():
        found: list[tuple[str, str]] = []
        for pin in pins:
            reference, _, number = pin.partition(".")
            if not number or reference not in known:
                wrong[f"nets.{name}"] = f"{pin!r} is no pin of a part: write R1.1 or U1.VCC"
            elif (reference, number) in taken:
                wrong[f"nets.{name}"] = f"{pin!r} is on {taken[reference, number]} already"
            else:
                taken[reference, number] = name
                found.append((reference, number))
        wanted[name] = tuple(found)
    if wrong:
        raise InvalidArguments("; ".join(f"{name}: {text}" for name, text in wrong.items()), fields=wrong)
    made = tuple(
        Part(
            part.reference,
            part.value or part.reference,
            part.symbol or _guess(part.reference, wanted),
            part.footprint,
            part.fields or {},
        )
        for part in parts
    )
    return Circuit(made, wanted)


def from_netlist(netlist: Netlist) -> Circuit:
    """Take the circuit of a KiCad netlist; nets of one pin are left open."""
    parts = tuple(
        Part(part.reference, part.value or part.reference, part.symbol, part.footprint) for part in netlist.components
    )
    _refuse_doubles([part.reference for part in parts])
    nets = {
        net.name.rsplit("/", 1)[-1] if net.name.count("/") == 1 else net.name:
        tuple((pin.component, pin.number) for pin in net.pins)
        for net in netlist.nets
        if len(net.pins) > 1
    }  # fmt: skip
    return Circuit(parts, nets, netlist.library_pins)


def _guess(reference: str, nets: dict[str, tuple[tuple[str, str], ...]]) -> str:
    letters = re.sub(r"\d.*$", "", reference).upper()
    numbers = {pin for pins in nets.values() for part, pin in pins if part == reference}
    if letters in ("J", "P", "CN", "CONN") and numbers and all(pin.isdigit() for pin in numbers):
        return f"Connector_Generic:Conn_01x{max(map(int, numbers)):02d}"
    return GUESSES.get(letters, "")


def _refuse_doubles(references: list[str]) -> None:
    wrong = [name for name in references if not re.fullmatch(r"[A-Za-z_]+\d+[A-Za-z]?", name)]
    doubles = sorted({name for name in references if references.count(name) > 1})
    if wrong or doubles or not references or len(references) > MOST_PARTS:
        text = (
            f"{', '.join(map(repr, wrong[:5]))}: a reference is letters and a number, such as R1" if wrong
            else f"{', '.join(doubles[:5])} is given twice" if doubles
            else f"1 to {MOST_PARTS} parts are needed, not {len(references)}"
        )  # fmt: skip
        raise InvalidArguments(f"components: {text}", fields={"components": text})
