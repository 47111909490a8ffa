"""Draw a schematic of a circuit, and let KiCad read it back: its netlist must be the one that was asked for."""

from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath

from metaforge.adapters.kicad.answers import GeneratedSchematic
from metaforge.adapters.kicad.erc import check_file
from metaforge.adapters.kicad.netlist import circuit_of
from metaforge.adapters.kicad.outputs import named
from metaforge.adapters.kicad.placing import BELOW_MM, GRID_MM, LETTER_MM, PinKey, place
from metaforge.adapters.kicad.program import Deadline, kicad
from metaforge.adapters.kicad.sheet import Sheet, Supply
from metaforge.adapters.kicad.symbols import OWN_LIBRARY, Shelf, box
from metaforge.adapters.kicad.verdict import count, counted, told
from metaforge.adapters.kicad.wanted import GUESSES, Circuit, Part, SchematicPart, from_lists, from_netlist
from metaforge.adapters.kicad.wiring import wire
from metaforge.core.errors import InvalidArguments, ToolError
from metaforge.formats.kicad_netlist import NotANetlist, read_netlist
from metaforge.formats.kicad_schematic import read_schematic
from metaforge.formats.kicad_sexpr import BadExpression
from metaforge.formats.kicad_symbol import Symbol
from metaforge.tools.context import Answer, OutputFile, ToolContext

MOST_SHOWN = 20


def generate_schematic(
    components: list[SchematicPart] | None,
    nets: dict[str, list[str]] | None,
    netlist_path: str | None,
    symbol_files: list[str],
    title: str,
    output_path: str | None,
    ctx: ToolContext,
) -> Answer[GeneratedSchematic]:
    """Draw a schematic.

    Raises:
        InvalidArguments: no circuit, or one that contradicts itself.
        ToolError: a symbol is not there, a pin is not on it, or KiCad reads another circuit than was asked for.
    """
    circuit = _circuit(components, nets, netlist_path, ctx)
    shelf = Shelf([ctx.workspace / file for file in symbol_files])
    symbols, library_ids, own = _symbols(circuit, shelf)
    wanted = _numbered(circuit, symbols)
    supplies = _supplies(wanted, symbols, shelf)
    stem = PurePosixPath(output_path).stem if output_path else PurePosixPath(netlist_path or "schematic").stem
    text, open_pins = _drawn(circuit, symbols, library_ids, wanted, supplies, shelf, stem, title or stem)
    source = netlist_path or "schematic"
    path = named(output_path, source, ".kicad_sch", text.encode(), ctx)
    deadline = Deadline(ctx)
    scratch = ctx.scratch / f"{stem}.kicad_sch"
    scratch.write_text(text, encoding="utf-8")
    _refuse_other(scratch, str(path), wanted, symbols, deadline, ctx)
    violations = check_file(str(scratch), str(path), read_schematic(text).places, deadline, ctx)
    ctx.output_file(str(path)).write_text(text, encoding="utf-8")
    errors, warnings = count(violations, "error"), count(violations, "warning")
    flagged = [name for name, supply in supplies.items() if supply.flagged]
    answer = GeneratedSchematic(
        str(path), len(circuit.parts), len(wanted), not errors, errors, warnings,
        told(violations, "all", MOST_SHOWN), flagged, open_pins, own,
    )  # fmt: skip
    notes = [
        *([f"told as supplied, since no power output drives them: {', '.join(flagged)}"] if flagged else []),
        *([f"{counted(len(open_pins), 'pin')} marked as not connected: {', '.join(open_pins[:12])}"] * bool(open_pins)),
        *([f"drawn as boxes, no library here has their symbol: {', '.join(own[:12])}"] if own else []),
    ]
    verdict = "ERC passes" if answer.passed else f"ERC blocks: {counted(errors, 'error')}"
    return Answer(
        answer,
        f"Schematic {path}: {counted(len(circuit.parts), 'part')}, {counted(len(wanted), 'net')}, read back by KiCad "
        f"as asked; {verdict}, {counted(warnings, 'warning')}.",
        tuple(notes),
        f"kicad.render input_file={path} shows it",
        (OutputFile(path, "application/x-kicad-schematic", "schematic"),),
        programs={"KiCad": kicad().version},
    )


def _circuit(
    components: list[SchematicPart] | None, nets: dict[str, list[str]] | None, netlist_path: str | None,
    ctx: ToolContext,
) -> Circuit:  # fmt: skip
    if (netlist_path is None) == (components is None):
        raise InvalidArguments(
            "give either components with nets, or netlist_path", fields={"components": "these, or netlist_path"}
        )
    if netlist_path is None:
        return from_lists(components or [], nets or {})
    try:
        return from_netlist(read_netlist((ctx.workspace / netlist_path).read_text(encoding="utf-8", errors="replace")))
    except (BadExpression, NotANetlist) as fault:
        raise ToolError(
            f"{netlist_path} cannot be read: {fault}",
            kind="bad_netlist",
            where=netlist_path,
            fix="name a netlist in KiCad's own format, such as one of kicad.export_netlist",
        ) from None


def _symbols(circuit: Circuit, shelf: Shelf) -> tuple[dict[str, Symbol], dict[str, str], list[str]]:
    """Return each part's symbol, what the file calls it, and the parts drawn as boxes."""
    symbols: dict[str, Symbol] = {}
    library_ids: dict[str, str] = {}
    own: list[str] = []
    for part in circuit.parts:
        found, library_id = shelf.find(part.symbol), part.symbol
        if found is None:
            found, library_id = _like(part, circuit, shelf)
        if found is None:
            found = box(f"BOX_{part.reference}", _pins_of(part, circuit))
            library_id = f"{OWN_LIBRARY}:{found.name}"
            own.append(part.reference)
        symbols[part.reference], library_ids[part.reference] = found, library_id
    return symbols, library_ids, own


def _like(part: Part, circuit: Circuit, shelf: Shelf) -> tuple[Symbol | None, str]:
    """Return the usual symbol of a part's letters, where it has the same pins."""
    library_id = GUESSES.get(part.letters.upper(), "")
    found = shelf.find(library_id)
    pins = {number for number, _, _ in _pins_of(part, circuit)}
    return (found, library_id) if found is not None and {pin.number for pin in found.pins} == pins else (None, "")


def _pins_of(part: Part, circuit: Circuit) -> list[tuple[str, str, str]]:
    known = circuit.known_pins.get(part.symbol)
    if known:
        return list(known)
    used = sorted({pin for pins in circuit.nets.values() for reference, pin in pins if reference == part.reference},
                  key=lambda pin: (not pin.isdigit(), int(pin) if pin.isdigit() else 0, pin))  # fmt: skip
    return [(pin, "" if pin.isdigit() else pin, "passive") for pin in used]


def _numbered(circuit: Circuit, symbols: Mapping[str, Symbol]) -> dict[str, tuple[PinKey, ...]]:
    """Return the nets with every pin by its number.

    Raises:
        InvalidArguments: a symbol has no such pin, or several of that name.
    """
    wrong: dict[str, str] = {}
    nets: dict[str, tuple[PinKey, ...]] = {}
    for name, pins in circuit.nets.items():
        found: list[PinKey] = []
        for reference, pin in pins:
            of_symbol = symbols[reference].pins
            numbers = {each.number for each in of_symbol if each.number == pin} or {
                each.number for each in of_symbol if each.name == pin
            }
            if len(numbers) != 1:
                has = ", ".join(f"{each.number}{f' ({each.name})' if each.name else ''}" for each in of_symbol[:24])
                wrong[f"nets.{name}"] = (
                    f"{reference} has {'several pins' if numbers else 'no pin'} {pin!r}; it has {has or 'none'}"
                )
            else:
                found.append((reference, numbers.pop()))
        nets[name] = tuple(found)
    if wrong:
        raise InvalidArguments("; ".join(f"{name}: {text}" for name, text in wrong.items()), fields=wrong)
    return {name: pins for name, pins in nets.items() if pins}


def _supplies(nets: Mapping[str, Sequence[PinKey]], symbols: Mapping[str, Symbol], shelf: Shelf) -> dict[str, Supply]:
    """Return the nets that power symbols name, and those that must be told to be supplied."""
    kinds = {(reference, pin.number): pin.kind for reference, symbol in symbols.items() for pin in symbol.pins}
    found: dict[str, Supply] = {}
    for name, pins in nets.items():
        of_pins = {kinds[pin] for pin in pins}
        symbol = shelf.power(name)
        if symbol is None and "power_in" not in of_pins:
            continue
        found[name] = Supply(name, symbol, flagged="power_out" not in of_pins and shelf.has_standard)
    return found


def _drawn(
    circuit: Circuit,
    symbols: Mapping[str, Symbol],
    library_ids: Mapping[str, str],
    nets: Mapping[str, Sequence[PinKey]],
    supplies: Mapping[str, Supply],
    shelf: Shelf,
    project: str,
    title: str,
) -> tuple[str, list[str]]:
    """Return the file's text, and the pins that were marked as open."""
    power = frozenset(supplies)
    placed, (paper, _, height) = place(symbols, nets, power)
    parts = {part.reference: part for part in circuit.parts}
    sheet = Sheet(project, paper, title)
    for each in placed:
        sheet.add_part(parts[each.reference], each, library_ids[each.reference])
    wiring = wire(placed, nets, power)
    sheet.add_wiring(wiring, supplies)
    named_only = [len(supply.net) for supply in supplies.values() if supply.flagged and supply.symbol is None]
    step = 8 * GRID_MM + round(max([0, *named_only]) * LETTER_MM / GRID_MM) * GRID_MM
    x, y = step, round((height - BELOW_MM + 4 * GRID_MM) / GRID_MM) * GRID_MM
    for supply in supplies.values():
        if supply.flagged:
            sheet.add_flag(shelf.flag(), supply, (round(x, 4), round(y, 4)))
            x += step
    return sheet.text(), [f"{reference}.{number}" for (reference, number), _ in wiring.open]


def _refuse_other(
    file: Path, name: str, nets: Mapping[str, Sequence[PinKey]], symbols: Mapping[str, Symbol], deadline: Deadline,
    ctx: ToolContext,
) -> None:  # fmt: skip
    """Raise when KiCad reads other connections than were asked for."""
    circuit, _ = circuit_of(file, name, deadline, ctx)
    listed = {pin for pins in nets.values() for pin in pins}
    read = {frozenset(group & listed) for group in circuit.pin_groups()} - {frozenset()}
    asked = {frozenset(pins) for pins in nets.values()}
    missing = {part for part in symbols if part not in {each.reference for each in circuit.components}}
    if read != asked or missing:
        other = sorted(sorted(group) for group in read - asked)[:3]
        raise ToolError(
            f"KiCad reads another circuit from the drawing than was asked for: {other or sorted(missing)}",
            kind="schematic_differs", where=name,
            fix="pins that a symbol stacks on one point share a net: put them on one, or name other symbols",
        )  # fmt: skip
