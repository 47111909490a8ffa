"""Which voltages and currents are wanted: from the arguments, or what the netlist itself prints."""

import difflib
import re
from collections.abc import Set
from dataclasses import dataclass

from metaforge.adapters.spice.cards import BadNetlist
from metaforge.adapters.spice.circuit import GROUND, Circuit
from metaforge.adapters.spice.source import Netlist
from metaforge.core.errors import InvalidArguments

_PARTS = ("r", "i", "m", "p", "db")
"""What `.print ac vdb(out)` takes of a complex value; the answer gives magnitude and phase anyway."""
_CALL = re.compile(r"(v|i)(r|i|m|p|db)?\(\s*([^(),]+?)\s*(?:,\s*([^(),]+?)\s*)?\)", re.IGNORECASE)
_DEVICE = re.compile(r"@[\w.#+-]+\[\w+\]")
_PLAIN = re.compile(r"[^\s(),{}\"'`;$&|<>\\]+")
_SAFE = re.compile(r"[\w./#+:~@\[\]-]+")
_KINDS = {"tran": "transient", "dc": "dc", "ac": "ac", "op": "op", "noise": "noise"}
_CURRENT_OF = {"r": "i", "c": "i", "d": "id", "q": "ic", "m": "id", "j": "id"}


@dataclass(frozen=True)
class Probe:
    """One wanted quantity.

    Attributes:
        label: what it is called in the answer: `v(out)`, `v(a,b)`, `i(v1)`, `@q1[ic]`.
        vectors: names of the raw file whose difference it is, or whose value.
    """

    label: str
    vectors: tuple[str, ...]


def wanted_probes(probes: list[str], circuit: Circuit, analysis: str) -> list[Probe]:
    """Return the probes of an argument.

    Raises:
        InvalidArguments: one names nothing in the circuit; the nearest names are told.
    """
    found: list[Probe] = []
    wrong: dict[str, str] = {}
    for text in probes:
        try:
            probe = _probe(text.strip(), circuit, analysis)
        except LookupError as fault:
            wrong[text] = str(fault.args[0])
            continue
        if probe not in found:
            found.append(probe)
    if wrong:
        raise InvalidArguments(
            "probes: " + "; ".join(f"{text!r} {why}" for text, why in wrong.items()),
            fields={f"probes: {text}": why for text, why in wrong.items()},
        )
    return found


def printed_probes(netlist: Netlist, circuit: Circuit, analysis: str) -> list[Probe]:
    """Return what the netlist's own `.print`, `.plot`, `.probe` and `.save` cards ask for in this analysis.

    Raises:
        BadNetlist: kind `bad_output_request`: ngspice would run, print nothing and end well.
    """
    found: list[Probe] = []
    for card in netlist.outputs:
        if card.directive in (".meas", ".measure", ".width"):
            continue
        words = _outputs(card.text)[1:]
        if card.directive in (".print", ".plot"):
            if not words or _KINDS.get(words[0].lower()) != analysis:
                continue
            words = words[1:]
        for word in words:
            if word.lower() in ("all", "alli", "allv") or re.fullmatch(r"\(.*", word):
                continue
            try:
                probe = _probe(word, circuit, analysis)
            except LookupError as fault:
                raise BadNetlist(
                    f"{card.directive} asks for `{word}`, which {fault.args[0]}; ngspice would print nothing for it",
                    kind="bad_output_request",
                    where=card.where(),
                    fix="name node voltages and source currents, such as v(out) i(V1), or give probes, which replace "
                    "the netlist's own",
                ) from None
            if probe not in found:
                found.append(probe)
    return found


def _outputs(text: str) -> list[str]:
    """Split a card at blanks and commas, but not inside parentheses and braces."""
    for pattern in (r"\(([^()]*)\)", r"\{([^{}]*)\}"):
        text = re.sub(pattern, lambda found: found[0].replace(" ", "").replace(",", "\0"), text)
    return [word.replace("\0", ",") for word in re.split(r"[\s,]+", text) if word]


def _probe(text: str, circuit: Circuit, analysis: str) -> Probe:
    if _DEVICE.fullmatch(text):
        return _device(text.lower(), circuit)
    call = _CALL.fullmatch(text)
    if call is None:
        if _PLAIN.fullmatch(text):
            return _voltage(text, circuit)
        raise LookupError("is an expression, not the name of a voltage or current")
    kind, part, first, second = call.groups()
    if part and analysis != "ac":
        raise LookupError(f"takes a part of a complex number, which {analysis} has none of")
    if kind.lower() == "i":
        return _current(first, circuit, analysis)
    if second is None:
        return _voltage(first, circuit)
    vectors = (*_voltage(first, circuit).vectors, *_voltage(second, circuit).vectors)
    if _is_ground(second):
        return _voltage(first, circuit)
    return Probe(f"v({first.lower()},{second.lower()})", vectors)


def _is_ground(name: str) -> bool:
    return name.lower() in (GROUND, "gnd")


def _voltage(name: str, circuit: Circuit) -> Probe:
    node = name.lower()
    if _is_ground(node):
        raise LookupError("is ground, which is 0 V always")
    nodes = circuit.nodes
    if node not in nodes and not circuit.unsure:
        raise LookupError(f"is no node of the circuit{_nearest(node, nodes)}")
    return Probe(f"v({node})", (f"v({node})",))


def _current(name: str, circuit: Circuit, analysis: str) -> Probe:
    element = circuit.named(name)
    if element is None:
        raise LookupError(f"is no element of the circuit{_nearest(name.lower(), {e.name for e in circuit.elements})}")
    letter, inner = element.letter, element.is_inner
    full = f"{letter}.{element.name}" if inner else element.name
    if letter in "vehl" or (letter == "b" and "v=" in element.card.text.replace(" ", "").lower()):
        return Probe(f"i({element.name})", (f"i({full})",))
    parameter = _CURRENT_OF.get(letter)
    if parameter is None or analysis in ("ac", "noise"):
        raise LookupError("has no current that SPICE keeps; put a 0 V source in series and probe that: Vsense a b 0")
    return Probe(f"i({element.name})", (f"@{full}[{parameter}]",))


def _device(text: str, circuit: Circuit) -> Probe:
    name = text[1 : text.index("[")]
    bare = name.split(".", 1)[1] if "." in name else name
    if circuit.named(bare) is None and circuit.named(name) is None and not circuit.unsure:
        raise LookupError(f"is no element of the circuit{_nearest(name, {e.name for e in circuit.elements})}")
    return Probe(text, (text,))


def _nearest(name: str, known: Set[str]) -> str:
    close = difflib.get_close_matches(name, sorted(known), 3)
    shown = close or sorted(each for each in known if "." not in each and each != GROUND)[:8]
    return f"; {'did you mean' if close else 'there are'} {', '.join(shown)}" if shown else ""


def save_card(probes: list[Probe]) -> str:
    """Return the `.save` card for these probes; empty when ngspice should keep every voltage and current."""
    vectors = list(dict.fromkeys(vector for probe in probes for vector in probe.vectors))
    devices = [vector for vector in vectors if vector.startswith("@")]
    names = [vector[2:-1] if not vector.startswith("@") else vector for vector in vectors]
    if not all(_SAFE.fullmatch(name) for name in names):
        return f".save all {' '.join(devices)}" if devices else ""
    return f".save {' '.join(vectors)}" if vectors else ""
