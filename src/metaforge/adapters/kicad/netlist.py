"""Netlists of a schematic, and the net of every pin."""

import fnmatch
import posixpath
import re
from pathlib import Path, PurePosixPath

from metaforge.adapters.kicad.answers import ComponentPins, NetlistAnswer, PinMapping, PinTold
from metaforge.adapters.kicad.hierarchy import read_hierarchy
from metaforge.adapters.kicad.mirror import mirrored, unmirrored
from metaforge.adapters.kicad.outputs import named, without_clock
from metaforge.adapters.kicad.program import Deadline, failed, kicad, remove, run_kicad
from metaforge.adapters.kicad.verdict import counted
from metaforge.core.errors import ToolError
from metaforge.formats.kicad_netlist import Netlist, NotANetlist, read_netlist
from metaforge.formats.kicad_sexpr import BadExpression
from metaforge.tools.context import Answer, OutputFile, ToolContext

FORMATS = {"kicad": "kicadsexpr", "spice": "spice", "cadstar": "cadstar"}
ENDINGS = {"kicad": ".net", "spice": ".cir", "cadstar": ".frp"}
MEDIA = {"kicad": "application/x-kicad-netlist", "spice": "text/x-spice-netlist", "cadstar": "text/plain"}
MOST_PINS = 600
_INCLUDE = re.compile(r'^(\s*\.(?:include|inc|lib)\s+)(?:"([^"]*)"|(\S+))(.*)$', re.IGNORECASE)
_NO_MODEL = re.compile(r"^(\S+) __(\S+)\s*$")
_MECHANICAL = re.compile(r"^(?:J|P|CN|CONN|TP|H|MH|FID|LOGO|NT)\d", re.IGNORECASE)
"""References of connectors, holes, test points: an open circuit to a simulator."""


def write_netlist(file: Path, format: str, target: Path, name: str, deadline: Deadline, ctx: ToolContext) -> str:
    """Let KiCad write a netlist and return its text.

    Args:
        file: the root schematic.
        format: kicad-cli's name of it.
        name: what the caller knows the schematic by.

    Raises:
        ToolError: KiCad left none.
    """
    remove(target)
    words = ("sch", "export", "netlist", "--format", format, "-o", str(target), str(file))
    result = run_kicad(words, deadline, cwd=ctx.scratch, doing="writing the netlist")
    if not target.is_file() or not target.stat().st_size:
        raise failed(result, "write the netlist", name, "run kicad.run_erc: it says what is wrong")
    return target.read_text(encoding="utf-8", errors="replace")


def circuit_of(file: Path, name: str, deadline: Deadline, ctx: ToolContext) -> tuple[Netlist, str]:
    """Return a schematic's netlist, and its text in KiCad's own format."""
    text = write_netlist(file, "kicadsexpr", ctx.scratch / "circuit.net", name, deadline, ctx)
    try:
        return read_netlist(text), text
    except (BadExpression, NotANetlist) as fault:
        raise ToolError(f"KiCad's netlist cannot be used: {fault}", kind="bad_report", where=name) from None


def export_netlist(
    schematic_file: str, output_format: str, output_path: str | None, ctx: ToolContext
) -> Answer[NetlistAnswer]:
    """Write a schematic's netlist.

    Raises:
        ToolError: a sheet cannot be used, or KiCad left no netlist.
    """
    hierarchy = read_hierarchy(ctx.workspace, schematic_file)
    deadline, file = Deadline(ctx), mirrored(schematic_file, ctx)
    circuit, text = circuit_of(file, schematic_file, deadline, ctx)
    warnings = [*hierarchy.warnings]
    without: list[str] | None = None
    includes: list[str] | None = None
    if output_format != "kicad":
        text = write_netlist(
            file, FORMATS[output_format], ctx.scratch / f"export{ENDINGS[output_format]}", schematic_file, deadline, ctx
        )
    text = without_clock(text)
    if output_format == "spice":
        folder = PurePosixPath(output_path).parent if output_path else PurePosixPath("kicad")
        text, without, includes, told = for_simulation(text, ctx.workspace, PurePosixPath(schematic_file), folder)
        warnings += told
    content = unmirrored(text, ctx).encode()
    path = named(output_path, schematic_file, ENDINGS[output_format], content, ctx)
    ctx.output_file(str(path)).write_bytes(content)
    if not circuit.components:
        warnings.append("the schematic has no parts")
    answer = NetlistAnswer(
        str(path), output_format, len(circuit.nets), len(circuit.components), without or None, includes or None
    )
    return Answer(
        answer,
        f"Netlist {path} ({output_format}): {counted(len(circuit.components), 'part')}, "
        f"{counted(len(circuit.nets), 'net')}" + (f", {len(without)} without a SPICE model" if without else "") + ".",
        tuple(warnings),
        f"spice.run_simulation netlist_path={path}" if output_format == "spice" else "",
        files=(OutputFile(path, MEDIA[output_format], "netlist"),),
        programs={"KiCad": kicad().version},
    )


def for_simulation(
    text: str, workspace: Path, schematic: PurePosixPath, folder: PurePosixPath
) -> tuple[str, list[str], list[str], list[str]]:
    """Make a SPICE netlist of KiCad's one that a simulator takes wherever it lies.

    Args:
        text: as KiCad wrote it.
        schematic: the root schematic, relative to the workspace.
        folder: where the netlist will lie, relative to the workspace.

    Returns:
        The text, the parts without a model, the included files, and warnings.
    """
    kept: list[str] = []
    without: list[str] = []
    includes: list[str] = []
    warnings: list[str] = []
    in_control = dropped = False
    for line in text.splitlines():
        word = line.strip().lower()
        if word.startswith(".control"):
            in_control = dropped = True
        elif in_control:
            in_control = not word.startswith(".endc")
        elif match := _INCLUDE.match(line):
            target = match[2] if match[2] is not None else match[3]
            inside = _inside(target, workspace, schematic)
            includes.append(inside or target)
            named_so = posixpath.relpath(inside, str(folder)) if inside else target
            kept.append(f'{match[1]}"{named_so}"{match[4]}')
            if not inside:
                warnings.append(f"{target} is included and does not lie in the workspace: copy it there")
        elif match := _NO_MODEL.match(line):
            without.append(match[1])
            is_open = bool(_MECHANICAL.match(match[1]))
            kept.append(f"* {match[1]} has no SPICE model: left open" if is_open else line)
        else:
            kept.append(line)
    if dropped:
        warnings.append("commands of the schematic's simulation text (.control) are left out: nothing runs them here")
    needed = [name for name in without if not _MECHANICAL.match(name)]
    if needed:
        warnings.append(
            f"{counted(len(needed), 'part')} without a SPICE model: {', '.join(needed[:10])}. A simulator refuses "
            "their lines until the symbols get a model (Sim.* fields)"
        )
    opened = [name for name in without if name not in needed]
    if opened:
        warnings.append(f"left open, as they have no SPICE model: {', '.join(opened[:10])}")
    return "\n".join(kept) + "\n", without, includes, warnings


def _inside(target: str, workspace: Path, schematic: PurePosixPath) -> str:
    """Return an included file's path in the workspace, or nothing where it lies elsewhere."""
    root = workspace.resolve()
    path = Path(target)
    resolved = (path if path.is_absolute() else workspace / schematic.parent / path).resolve()
    return resolved.relative_to(root).as_posix() if resolved.is_relative_to(root) else ""


def get_pin_mapping(schematic_file: str, component_filter: str, ctx: ToolContext) -> Answer[PinMapping]:
    """Return the net of every pin.

    Raises:
        ToolError: a sheet cannot be used, no part matches, or KiCad left no netlist.
    """
    hierarchy = read_hierarchy(ctx.workspace, schematic_file)
    circuit, _ = circuit_of(mirrored(schematic_file, ctx), schematic_file, Deadline(ctx), ctx)
    nets = {(pin.component, pin.number): net for net in circuit.nets for pin in net.pins}
    pins = {(pin.component, pin.number): pin for net in circuit.nets for pin in net.pins}
    components: list[ComponentPins] = []
    for part in circuit.components:
        if component_filter and not fnmatch.fnmatchcase(part.reference.upper(), component_filter.upper()):
            continue
        told: list[PinTold] = []
        for number in sorted({number for reference, number in pins if reference == part.reference}, key=_natural):
            pin, net = pins[part.reference, number], nets[part.reference, number]
            is_open = net.name.startswith("unconnected-(") or "+no_connect" in pin.kind
            told.append(PinTold(number, pin.function, pin.kind.split("+")[0], None if is_open else net.name))
        components.append(ComponentPins(part.reference, part.value, part.footprint, told))
    if component_filter and not components:
        known = ", ".join(sorted((part.reference for part in circuit.components), key=_natural)[:20])
        raise ToolError(
            f"No part of {schematic_file} matches {component_filter!r}", kind="no_match", where=schematic_file,
            fix=f"take a reference or a pattern such as U*; there are: {known or 'none'}",
        )  # fmt: skip
    components.sort(key=lambda each: _natural(each.reference))
    total = sum(len(each.pins) for each in components)
    unconnected = sum(1 for each in components for pin in each.pins if pin.net is None)
    shown = _cut(components)
    cut = [f"{len(shown)} of {len(components)} parts are listed: pass component_filter, such as U1 or J*"]
    return Answer(
        PinMapping(schematic_file, len(components), total, unconnected, shown),
        f"{schematic_file}: {counted(len(components), 'part')}, {counted(total, 'pin')}, {unconnected} unconnected.",
        (*hierarchy.warnings, *(cut if len(shown) < len(components) else ())),
        programs={"KiCad": kicad().version},
    )


def _cut(components: list[ComponentPins]) -> list[ComponentPins]:
    shown: list[ComponentPins] = []
    pins = 0
    for each in components:
        pins += len(each.pins)
        if shown and pins > MOST_PINS:
            break
        shown.append(each)
    return shown


def _natural(text: str) -> tuple[tuple[int, str], ...]:
    """Sort R2 before R10."""
    return tuple((int(part), "") if part.isdigit() else (-1, part) for part in re.findall(r"\d+|\D+", text))
