"""Files that a board is made from: Gerbers, drill, positions, STEP."""

import csv
import io
import re
from pathlib import Path, PurePosixPath

from metaforge.adapters.kicad.answers import FabricationAnswer
from metaforge.adapters.kicad.drc import board_of, read_file
from metaforge.adapters.kicad.mirror import mirrored
from metaforge.adapters.kicad.outputs import FOLDER, without_clock
from metaforge.adapters.kicad.program import Deadline, failed, kicad, run_kicad
from metaforge.adapters.kicad.verdict import counted
from metaforge.core.errors import InvalidArguments, ToolError
from metaforge.formats.kicad_board import Board
from metaforge.tools.context import Answer, OutputFile, ToolContext

_MEDIA = {".drl": "application/x-excellon", ".gbrjob": "application/json", ".csv": "text/csv", ".step": "model/step"}
_HIT = re.compile(r"^X-?[\d.]+Y-?[\d.]+", re.MULTILINE)
_SHORT = "the board's file ends too early, or KiCad could not plot it"


def export_gerber(
    pcb_file: str,
    output_dir: str | None,
    layers: list[str] | None,
    drill: bool,
    positions: bool,
    step: bool,
    ctx: ToolContext,
) -> Answer[FabricationAnswer]:
    """Write a board's fabrication files.

    Raises:
        ToolError: the board cannot be used, or a file that belongs to the set is missing or empty.
    """
    text, warning = read_file(ctx.workspace, pcb_file)
    board = board_of(text, pcb_file)
    _refuse_unknown(layers, board)
    if not board.outline_count:
        raise ToolError(
            f"{pcb_file} has no outline: nothing is drawn on Edge.Cuts, so a manufacturer has no edge to cut",
            kind="no_outline", where=pcb_file, fix="draw one closed outline on Edge.Cuts",
        )  # fmt: skip
    deadline, stem = Deadline(ctx), PurePosixPath(pcb_file).stem
    folder = ctx.scratch / "fabrication"
    folder.mkdir()
    file = str(mirrored(pcb_file, ctx))
    _plot(file, pcb_file, layers, folder, deadline, ctx)
    holes = _drill(file, pcb_file, folder, deadline, ctx) if drill else 0
    placed = _positions(file, pcb_file, folder / f"{stem}-positions.csv", deadline, ctx) if positions else None
    made = _step(file, pcb_file, folder / f"{stem}.step", deadline, ctx) if step else []
    target = PurePosixPath(output_dir or f"{FOLDER}/{stem}-fabrication")
    files = _collect(folder, target, ctx)
    names = [str(each.path) for each in files]
    answer = FabricationAnswer(
        str(target), len(files), [PurePosixPath(name).name for name in names], _plotted(folder, stem),
        list(board.size_mm), holes, placed,
        next((name for name in names if name.endswith(".step")), None),
    )  # fmt: skip
    warnings = [*filter(None, [warning]), *_about_zones(board), *made]
    return Answer(
        answer,
        f"{counted(len(files), 'fabrication file')} in {target}/: {counted(len(answer.layers_exported), 'layer')}, "
        f"{counted(holes, 'hole')}, board {answer.size_mm[0]:g} x {answer.size_mm[1]:g} mm"
        + (f", {placed} parts placed" if placed is not None else "") + (", STEP" if step else "") + ".",
        tuple(warnings),
        f"kicad.run_drc pcb_file={pcb_file} before you order",
        tuple(files),
        programs={"KiCad": kicad().version},
    )  # fmt: skip


def _refuse_unknown(layers: list[str] | None, board: Board) -> None:
    if layers is None:
        return
    wrong = [name for name in layers if name not in board.layers]
    if wrong or not layers:
        known = ", ".join(board.layers)
        raise InvalidArguments(
            f"layers: {', '.join(wrong) or 'none'}; this board has {known}", fields={"layers": f"some of {known}"}
        )


def _plot(
    file: str, pcb_file: str, layers: list[str] | None, folder: Path, deadline: Deadline, ctx: ToolContext
) -> None:
    chosen = ["--layers", ",".join(layers)] if layers else []
    result = run_kicad(
        ("pcb", "export", "gerbers", *chosen, "-o", f"{folder}/", file), deadline, cwd=ctx.scratch, doing="plotting"
    )
    plotted = list(folder.iterdir())
    # A finished Gerber file says so in its last line.
    short = [each.name for each in plotted if each.suffix != ".gbrjob" and not _is_whole(each)]
    wanted = len(layers) if layers else 1
    if short or len([each for each in plotted if each.suffix != ".gbrjob"]) < wanted:
        raise failed(result, f"plot every layer{': ' + ', '.join(short) if short else ''}", pcb_file, _SHORT)


def _is_whole(file: Path) -> bool:
    with file.open("rb") as stream:
        stream.seek(max(file.stat().st_size - 16, 0))
        return b"M02*" in stream.read()


def _drill(file: str, pcb_file: str, folder: Path, deadline: Deadline, ctx: ToolContext) -> int:
    result = run_kicad(
        ("pcb", "export", "drill", "--excellon-units", "mm", "-o", f"{folder}/", file), deadline, cwd=ctx.scratch,
        doing="writing the drill file",
    )  # fmt: skip
    made = list(folder.glob("*.drl"))
    texts = [each.read_text(encoding="utf-8", errors="replace") for each in made]
    if not made or any("M30" not in text for text in texts):
        raise failed(result, "write the drill file", pcb_file, _SHORT)
    return sum(len(_HIT.findall(text)) for text in texts)


def _positions(file: str, pcb_file: str, target: Path, deadline: Deadline, ctx: ToolContext) -> int:
    words = ("pcb", "export", "pos", "--format", "csv", "--units", "mm", "--side", "both", "--exclude-dnp",
             "-o", str(target), file)  # fmt: skip
    result = run_kicad(words, deadline, cwd=ctx.scratch, doing="writing the positions")
    if not target.is_file():
        raise failed(result, "write the positions", pcb_file, _SHORT)
    return len(list(csv.DictReader(io.StringIO(target.read_text(encoding="utf-8", errors="replace")))))


def _step(file: str, pcb_file: str, target: Path, deadline: Deadline, ctx: ToolContext) -> list[str]:
    """Write the board as a solid and return warnings."""
    result = run_kicad(
        ("pcb", "export", "step", "--force", "--subst-models", "-o", str(target), file), deadline, cwd=ctx.scratch,
        doing="building the solid",
    )  # fmt: skip
    text = target.read_text(encoding="utf-8", errors="replace") if target.is_file() else ""
    if "END-ISO-10303-21" not in text or "MANIFOLD_SOLID_BREP" not in text:
        raise failed(result, "build the board's solid", pcb_file, "close the outline on Edge.Cuts (kicad.run_drc)")
    absent = len(re.findall(r"Could not add 3D model for", result.output))
    if absent:
        return [f"{counted(absent, '3D model')} of parts not found: the STEP file shows the board without them"]
    return []


def _collect(folder: Path, target: PurePosixPath, ctx: ToolContext) -> list[OutputFile]:
    files: list[OutputFile] = []
    for source in sorted(folder.iterdir()):
        path = target / source.name
        text = without_clock(source.read_text(encoding="utf-8", errors="replace"))
        ctx.output_file(str(path)).write_text(text, encoding="utf-8", newline="")
        role = "geometry" if source.suffix == ".step" else "fabrication"
        files.append(OutputFile(path, _MEDIA.get(source.suffix, "application/vnd.gerber"), role))
    return files


def _plotted(folder: Path, stem: str) -> list[str]:
    """Return the layers that were plotted, as the files name them."""
    return [
        file.stem.removeprefix(f"{stem}-")
        for file in sorted(folder.iterdir())
        if file.suffix not in (".drl", ".gbrjob", ".csv", ".step")
    ]


def _about_zones(board: Board) -> list[str]:
    if not board.empty_zones:
        return []
    return [
        f"{len(board.empty_zones)} of {board.zones_count} copper zones are not filled: their copper is missing from "
        "the Gerbers. Fill them in KiCad (B), save, and export again"
    ]
