"""Look at a netlist before it is simulated: what SPICE would read otherwise than its author, or cannot solve.

Two kinds of findings: what makes every answer worthless is refused, what may be meant is a warning.
"""

import re
from collections import Counter
from collections.abc import Iterator

from metaforge.adapters.spice.cards import BadNetlist, Card
from metaforge.adapters.spice.circuit import GROUND, Circuit, Element, terminals
from metaforge.adapters.spice.source import ANALYSES, KEPT, Netlist
from metaforge.adapters.spice.topology import Island, Loop, has_ground, islands, voltage_loops
from metaforge.adapters.spice.values import doubt_of, read_value
from metaforge.core.errors import FailureMode, ToolError

_UNITS = {"r": "ohm", "c": "farad", "l": "henry"}
_GROUND_LIKE = re.compile(r"(?:^|[/_.])[a-d]?gnd[a-d]?\d*$|^vss$|^ground$|^earth$", re.IGNORECASE)
MOST_DOUBTS = 8


class BadCircuit(ToolError):
    """The circuit has no solution, or none that means anything."""

    default_kind = "bad_circuit"


def title_warning(netlist: Netlist, circuit: Circuit) -> str:
    """Return a warning when the first line, which SPICE always takes as the title, looks like part of the circuit."""
    line = netlist.title_line
    words = line.split()
    if not words or line[0] in "*;$#":
        return ""
    if line.startswith("."):
        swallowed = words[0].lower() in KEPT | ANALYSES | {".include", ".inc", ".lib"}
    else:
        swallowed = _is_element(words, circuit)
    if not swallowed:
        return ""
    return (
        f"The first line `{line[:80]}` was taken as the title, as SPICE always does, so it is not part of the circuit: "
        "put a title line before it"
    )


def _is_element(words: list[str], circuit: Circuit) -> bool:
    letter = words[0][0].lower()
    if letter not in "rclvidqmjegfhbsx" or len(words) < 4 or circuit.named(words[0]) is not None:
        return False
    if letter == "x":
        return words[-1].lower() in circuit.top.inner
    nodes, senses = terminals(words)
    there = circuit.nodes | {GROUND, "gnd"}
    if not all(node.lower() in there for node in (*nodes, *senses)):
        return False
    if letter in "dqmj":
        return any(circuit.top.knows_model(word.lower()) for word in words[3:])
    if letter in "rcl":
        return read_value(words[3]) is not None or words[3].startswith(("{", "'"))
    rest = " ".join(words[3:])
    return bool(re.match(r"(dc|ac|sin|pulse|pwl|exp|poly|value|table|[vi]\s*=|[-+.\d{])", rest, re.IGNORECASE))


def number_warnings(netlist: Netlist) -> list[str]:
    """Return warnings for numbers that SPICE reads otherwise than people do."""
    found = [f"{text} ({card.where()})" for card in netlist.cards for text in _number_doubts(card)]
    if len(found) > MOST_DOUBTS:
        found[MOST_DOUBTS:] = [f"{len(found) - MOST_DOUBTS} more numbers of this kind"]
    return found


def _number_doubts(card: Card) -> Iterator[str]:
    words = card.words
    letter = words[0][0].lower()
    if card.directive not in ("", ".param", ".model", ".subckt") or letter == "x":
        candidates: list[str] = []
    elif card.directive:
        candidates = re.findall(r"=\s*\{?\s*([-+]?[\d.][\w.µμ]*)", card.text)
    else:
        candidates = re.split(r"[\s=(){}]+", " ".join(words[3:]))
    unit = _UNITS.get(letter, "") if not card.directive else ""
    for position, token in enumerate(candidates):
        if letter in "rcl" and not card.directive and position == 0 and re.fullmatch(r"[-+]?\d+,\d+\D*", token):
            rest = token.partition(",")[2]
            yield f"`{token}`: SPICE has no decimal comma and reads {rest}; write {token.replace(',', '.')}"
            continue
        for each in token.split(",") if letter in "vib" else [token]:
            doubt = doubt_of(each, unit)
            if doubt is not None:
                yield f"{doubt.token} = {doubt.read_as}; write {doubt.instead}"


def refuse_without_ground(circuit: Circuit) -> None:
    """Refuse a circuit in which nothing is connected to node 0.

    Raises:
        BadCircuit: kind `no_ground`, naming the nodes that may be meant.
    """
    if has_ground(circuit):
        return
    names = Counter(node for element in circuit.elements for node in element.nodes if "." not in node)
    if not circuit.elements:
        raise BadCircuit("The netlist holds no element", kind="empty_circuit",
                         fix="the first line is always the title: put elements such as `R1 in 0 1k` below")  # fmt: skip
    likely = [node for node in names if _GROUND_LIKE.search(node)] or [node for node, _ in names.most_common(3)]
    raise BadCircuit(
        "The circuit has no ground: no element is connected to node 0, so no voltage in it is defined",
        kind="no_ground",
        where=f"nodes: {', '.join(list(names)[:12])}",
        fix=f"rename the reference node to 0, or connect it: `V0 {likely[0]} 0 0` (likely: {', '.join(likely[:3])})",
        failure_mode=FailureMode.DESIGN,
    )


def island_warnings(circuit: Circuit, analysis: str, *, swept: str = "", uses_initial: bool = False) -> list[str]:
    """Return warnings for nodes without a direct-current path to ground.

    Raises:
        BadCircuit: kind `no_dc_path`: a current is driven into nodes that it cannot leave.
    """
    warnings: list[str] = []
    for island in islands(circuit, swept):
        driven = island.drivers and not (analysis == "transient" and uses_initial)
        if driven and not circuit.unsure:
            source = island.drivers[0]
            raise BadCircuit(
                f"No DC path to ground from {_nodes(island)}: the current of {source.words[0]} has nowhere to go, and "
                "SPICE would invent a voltage such as 1e12 V",
                kind="no_dc_path",
                where=source.card.where(),
                fix=f"connect a resistor, such as 1G, from {island.nodes[0]} to 0"
                + (", or set params.uic to start from given voltages" if analysis == "transient" else ""),
                failure_mode=FailureMode.DESIGN,
            )
        warnings.append(
            f"Floating: {_nodes(island)} {'has' if len(island.nodes) == 1 else 'have'} no DC path to ground, so the DC "
            f"voltage there is not defined by the circuit; add a resistor to 0, such as 1G"
        )
    if len(warnings) > MOST_DOUBTS:
        warnings[MOST_DOUBTS:] = [f"{len(warnings) - MOST_DOUBTS} more groups of nodes float"]
    return warnings


def _nodes(island: Island) -> str:
    shown = ", ".join(island.nodes[:6])
    more = f" and {len(island.nodes) - 6} more" if len(island.nodes) > 6 else ""
    return f"node{'s' if len(island.nodes) > 1 else ''} {shown}{more}"


def loop_warnings(circuit: Circuit, analysis: str, *, uses_initial: bool = False) -> list[str]:
    """Return warnings for loops of inductors whose currents nothing decides.

    Raises:
        BadCircuit: kind `voltage_loop`: voltage sources in a loop, or a DC source across an inductor.
    """
    warnings: list[str] = []
    for loop in voltage_loops(circuit):
        names = " - ".join(element.words[0] for element in reversed(loop.elements))
        starts_given = loop.has_inductor and analysis == "transient" and uses_initial
        if starts_given:
            continue
        if (not loop.has_inductor or loop.gap_v not in (0.0, None)) and not circuit.unsure:
            raise BadCircuit(
                _loop_message(loop, names),
                kind="voltage_loop",
                where=loop.elements[0].card.where(),
                fix=f"put a resistor, such as 1m, in series with {loop.elements[0].words[0]}",
                failure_mode=FailureMode.DESIGN,
            )
        warnings.append(
            f"Loop of {names}: nothing decides how a direct current divides in it; add a series resistor such as 1m"
        )
    return warnings[:MOST_DOUBTS]


def _loop_message(loop: Loop, names: str) -> str:
    if len(loop.elements) == 1:
        return f"Voltage source {names} is short-circuited: both ends are on node {loop.elements[0].nodes[0]}"
    if loop.has_inductor:
        return f"A DC voltage of {abs(loop.gap_v or 0):g} V drives the loop {names}, and an inductor is a short at DC"
    gap = f"; their voltages differ by {abs(loop.gap_v):g} V around it" if loop.gap_v else ""
    return f"Voltage sources in a loop: {names}{gap}. No current is defined by it, even where the voltages agree"


def dangling_warning(circuit: Circuit) -> str:
    """Return a warning that names nodes which only one terminal is connected to, or nothing."""
    counts = Counter(node for element in circuit.elements for node in (*element.nodes, *element.senses))
    counts.update({node for element in circuit.elements for node in element.mentions if node in counts})
    inner = {node for node in counts if "." in node}
    ends = [node for node, count in counts.items() if count == 1 and node != GROUND and node not in inner]
    ends = [node for node in ends if "unconnected" not in node and not node.startswith("nc_")]
    if not ends:
        return ""
    shown = ", ".join(sorted(ends)[:6]) + (f" and {len(ends) - 6} more" if len(ends) > 6 else "")
    return f"Only one terminal is connected to node{'s' if len(ends) > 1 else ''} {shown}: is a name misspelled?"


def refuse_silent_sources(circuit: Circuit, analysis: str) -> None:
    """Refuse an AC analysis in which no source has an AC value: every result would be zero.

    Raises:
        BadCircuit: kind `no_ac_source`.
    """
    if analysis not in ("ac", "noise") or any(_has_ac(source) for source in circuit.sources()) or circuit.unsure:
        return
    sources = [source.words[0] for source in circuit.sources()]
    raise BadCircuit(
        "No source has an AC value, so every result of this analysis would be 0",
        kind="no_ac_source",
        where=f"sources: {', '.join(sources[:8]) or 'none'}",
        fix=f"give the input source one, such as `{sources[0] if sources else 'V1'} in 0 DC 0 AC 1`",
    )


def _has_ac(source: Element) -> bool:
    words = [word.lower() for word in source.card.text.replace("=", " ").split()[3:]]
    if "portnum" in words:
        return True
    if "ac" not in words:
        return False
    after = words[words.index("ac") + 1 :]
    value = read_value(after[0]) if after else 1.0
    return value is None or value != 0


def refuse_duplicates(circuit: Circuit) -> None:
    """Refuse two elements of one name, of which SPICE may use only one.

    Raises:
        BadNetlist: kind `duplicate_element`.
    """
    if circuit.unsure:
        return
    first: dict[str, Element] = {}
    for element in circuit.elements:
        other = first.setdefault(element.name, element)
        if other is not element:
            raise BadNetlist(
                f"{element.words[0]} stands twice in the netlist",
                kind="duplicate_element",
                where=f"{other.card.where()} and {element.card.where()}",
                fix="give one of them another name",
            )


def coarse_step_warning(circuit: Circuit, max_step_seconds: float) -> str:
    """Return a warning when a sine source has fewer than 20 time steps a period, or nothing."""
    worst: tuple[float, str] | None = None
    for source in circuit.sources():
        words = re.split(r"[\s(),]+", source.card.text.lower())
        if "sin" in words:
            after = words[words.index("sin") + 1 :]
            frequency_hz = read_value(after[2]) if len(after) > 2 else None
            if frequency_hz and (worst is None or frequency_hz > worst[0]):
                worst = (frequency_hz, source.words[0])
    if worst is None or max_step_seconds * worst[0] <= 1 / 20:
        return ""
    steps = 1 / (max_step_seconds * worst[0])
    return (
        f"{worst[1]} at {worst[0]:g} Hz gets only {steps:.2g} time steps per period: set params.max_step to "
        f"{1 / (40 * worst[0]):.2g} s or less"
    )
