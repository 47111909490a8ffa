"""Which analysis is run: from the arguments, or the netlist's own card of that kind."""

import re
from dataclasses import dataclass
from typing import Any

from metaforge.adapters.spice.cards import Card
from metaforge.adapters.spice.circuit import Circuit
from metaforge.adapters.spice.source import Netlist
from metaforge.adapters.spice.values import AmbiguousQuantity, doubt_of, read_quantity, read_value, spice_number
from metaforge.core.errors import InvalidArguments

CARDS = {
    "op": ".op", "dc": ".dc", "ac": ".ac", "transient": ".tran", "noise": ".noise", "pole_zero": ".pz",
    "transfer_function": ".tf",
}  # fmt: skip
_FIELDS = {
    "op": (), "dc": ("source", "start", "stop", "step"), "ac": ("variation", "points", "fstart", "fstop"),
    "transient": ("step", "stop"),
}  # fmt: skip
_OPTIONAL = {"ac": ("variation", "points"), "transient": ("step", "start", "max_step", "uic")}
_EXAMPLES = {
    "dc": '{"source": "V1", "start": 0, "stop": 5, "step": 0.1}',
    "ac": '{"fstart": 10, "fstop": 1e6, "points": 20}',
    "transient": '{"stop": 0.01, "step": 1e-5}',
}
DEFAULT_POINTS = 20
DEFAULT_STEPS = 500
MAX_POINTS = 5_000_000


@dataclass(frozen=True)
class Analysis:
    """One analysis.

    Attributes:
        kind: `op`, `dc`, `ac`, `transient`, `noise`, `pole_zero` or `transfer_function`.
        card: as ngspice gets it.
        swept: name of what a DC sweep varies, in lower case.
        step_seconds: the step a transient asks for, and stop_seconds its end.
        max_step_seconds: the longest time step ngspice will take.
        uses_initial: whether a transient starts from given voltages instead of an operating point.
        warnings: about the choice.
    """

    kind: str
    card: str
    swept: str = ""
    step_seconds: float = 0.0
    stop_seconds: float = 0.0
    max_step_seconds: float = 0.0
    uses_initial: bool = False
    warnings: tuple[str, ...] = ()


def choose(kind: str, params: dict[str, Any], netlist: Netlist, circuit: Circuit) -> Analysis:
    """Return the analysis to run.

    Args:
        kind: the analysis_type asked for.
        params: its parameters; empty means the netlist's own card.
        netlist: which may have cards of its own.
        circuit: in which a swept source must exist.

    Raises:
        InvalidArguments: parameters are missing, wrong, or belong to another analysis.
    """
    own = [card for card in netlist.analyses if card.directive == CARDS[kind]]
    if kind not in _FIELDS and params:
        raise InvalidArguments(
            f"{kind} takes its numbers from the netlist's own {CARDS[kind]} card, not from params",
            fields={"params": f"leave out, and put a {CARDS[kind]} card into the netlist"},
        )
    if not params:
        return _own_card(kind, own, netlist, circuit)
    allowed = {*_FIELDS[kind], *_OPTIONAL.get(kind, ())}
    foreign = {name: f"not a parameter of {kind}" for name in params if name not in allowed}
    required = [name for name in _FIELDS[kind] if name not in _OPTIONAL.get(kind, ())]
    missing = {name: "needed" for name in required if name not in params}
    if foreign or missing:
        wrong = foreign | missing
        raise InvalidArguments(
            f"params of {kind}: {'; '.join(f'{name} is {why}' for name, why in wrong.items())}. "
            + (f"Example: {_EXAMPLES[kind]}" if kind in _EXAMPLES else "op takes none"),
            fields={f"params.{name}": why for name, why in wrong.items()},
        )
    warnings = (f"params replace the netlist's own `{own[0].text}`",) if own and kind != "op" else ()
    numbers = {name: _number(name, value) for name, value in params.items() if name in _NUMERIC}
    if kind == "dc":
        return _dc(str(params["source"]), numbers, circuit, warnings)
    if kind == "ac":
        return _ac(str(params.get("variation") or "dec"), numbers, warnings)
    return _transient(numbers, bool(params.get("uic")), warnings)


_NUMERIC = frozenset({"start", "stop", "step", "points", "fstart", "fstop", "max_step"})


def _number(name: str, value: Any) -> float:
    try:
        return read_quantity(value)
    except AmbiguousQuantity as fault:
        raise InvalidArguments(f"params.{name}: {fault}", fields={f"params.{name}": str(fault)}) from None


def _wrong(name: str, message: str) -> InvalidArguments:
    return InvalidArguments(f"params.{name}: {message}", fields={f"params.{name}": message})


def _dc(source: str, numbers: dict[str, float], circuit: Circuit, warnings: tuple[str, ...]) -> Analysis:
    start, stop, step = numbers["start"], numbers["stop"], numbers["step"]
    if not re.fullmatch(r"[A-Za-z][\w.#:+-]*", source):
        raise _wrong("source", f"{source!r} is no name of a source")
    _refuse_unknown_sweep(source, circuit)
    if step == 0 or (stop - start) * step < 0:
        signed = abs(step) or 0.1
        raise _wrong(
            "step", f"{step:g} never leads from {start:g} to {stop:g}; give {signed * (-1) ** (stop < start):g}"
        )
    _refuse_too_many((stop - start) / step + 1, "step")
    card = f".dc {source} {spice_number(start)} {spice_number(stop)} {spice_number(step)}"
    return Analysis("dc", card, source.lower(), warnings=warnings)


def _refuse_unknown_sweep(source: str, circuit: Circuit) -> None:
    name = source.lower()
    if name == "temp" or (circuit.named(name) is not None and name[0] in "vir"):
        return
    known = [element.words[0] for element in circuit.elements if element.letter in "vi" and not element.is_inner]
    raise _wrong("source", f"{source!r} is not in the circuit: sweep one of {', '.join(known[:12]) or 'no source'}, a "
                 "resistor, or temp")  # fmt: skip


def _ac(variation: str, numbers: dict[str, float], warnings: tuple[str, ...]) -> Analysis:
    low, high = numbers["fstart"], numbers["fstop"]
    points = numbers.get("points", DEFAULT_POINTS)
    if not low > 0:
        raise _wrong("fstart", f"{low:g} Hz: the sweep starts above 0 Hz, for instance at 1")
    if high < low:
        raise _wrong("fstop", f"{high:g} Hz lies below fstart, {low:g} Hz")
    if points < 1 or points != int(points):
        raise _wrong("points", f"{points:g} is no whole number of at least 1")
    decades = {"dec": 1.0, "oct": 3.3219}.get(variation, 0.0)
    _refuse_too_many(points if variation == "lin" else points * decades * _decades(low, high), "points")
    return Analysis("ac", f".ac {variation} {int(points)} {spice_number(low)} {spice_number(high)}", warnings=warnings)


def _decades(low: float, high: float) -> float:
    import math

    return math.log10(high / low)


def _transient(numbers: dict[str, float], uic: bool, warnings: tuple[str, ...]) -> Analysis:
    stop, start = numbers["stop"], numbers.get("start", 0.0)
    if not 0 <= start < stop:
        raise _wrong("stop", f"{stop:g} s does not lie after start, {start:g} s")
    step = numbers.get("step", (stop - start) / DEFAULT_STEPS)
    if not 0 < step <= stop:
        raise _wrong("step", f"{step:g} s: give a step above 0 and at most stop, {stop:g} s")
    # ngspice alone would let a smooth waveform pass with 50 steps in all.
    longest = numbers.get("max_step", min(step, (stop - start) / DEFAULT_STEPS))
    if longest <= 0:
        raise _wrong("max_step", f"{longest:g} s is no time step")
    _refuse_too_many(stop / min(longest, stop), "max_step" if "max_step" in numbers else "step")
    words = [spice_number(value) for value in (step, stop, start, longest)]
    card = f".tran {' '.join(words)}{' uic' if uic else ''}"
    return Analysis("transient", card, "", step, stop, longest, uic, warnings)


def _refuse_too_many(points: float, name: str) -> None:
    if points > MAX_POINTS:
        raise _wrong(name, f"this makes {points:,.0f} points; the limit is {MAX_POINTS:,}: take a larger step")


def _own_card(kind: str, own: list[Card], netlist: Netlist, circuit: Circuit) -> Analysis:
    if not own:
        if kind == "op":
            return Analysis("op", ".op")
        has = ", ".join(sorted({card.directive for card in netlist.analyses})) or "none"
        how = f"give params such as {_EXAMPLES[kind]}" if kind in _EXAMPLES else f"put a {CARDS[kind]} card into it"
        raise InvalidArguments(
            f"The netlist has no {CARDS[kind]} card (its analyses: {has}): {how}",
            fields={"params": f"needed for {kind}"},
        )
    card = own[0]
    warnings: tuple[str, ...] = (
        (f"Only the first of {len(own)} {CARDS[kind]} cards was run: `{card.text}`",) if len(own) > 1 else ()
    )
    warnings += tuple(
        f"{doubt.token} = {doubt.read_as}; write {doubt.instead} ({card.where()})"
        for word in card.words[1:]
        if (doubt := doubt_of(word)) is not None
    )
    if kind == "dc":
        if len(card.words) > 1:
            _refuse_unknown_sweep(card.words[1], circuit)
        return Analysis(kind, card.text, card.words[1].lower() if len(card.words) > 1 else "", warnings=warnings)
    if kind == "transient":
        return _own_transient(card, warnings)
    return Analysis(kind, card.text, warnings=warnings)


def _own_transient(card: Card, warnings: tuple[str, ...]) -> Analysis:
    uses_initial = any(word.lower() == "uic" for word in card.words)
    numbers = [read_value(word) for word in card.words[1:] if word.lower() != "uic"]
    step, stop = (*numbers, None, None)[:2]
    start = (numbers[2] if len(numbers) > 2 else 0.0) or 0.0
    if step is None or stop is None:
        return Analysis("transient", card.text, uses_initial=uses_initial, warnings=warnings)
    longest = numbers[3] if len(numbers) > 3 else min(step, (stop - start) / 50)
    return Analysis("transient", card.text, "", step, stop, longest or 0.0, uses_initial, warnings)
