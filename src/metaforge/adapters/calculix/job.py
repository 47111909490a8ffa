"""One job from input to files: which kind of input it is, its mesh, the solve, and what is written."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from metaforge.adapters.calculix.answers import MeshEcho
from metaforge.adapters.calculix.deck_source import Source, read_source
from metaforge.adapters.calculix.deck_writer import write_deck
from metaforge.adapters.calculix.fields import number
from metaforge.adapters.calculix.problem import Problem
from metaforge.adapters.calculix.solver import Solved, solve
from metaforge.core.errors import InvalidArguments, ToolError
from metaforge.engineering.mesh import Mesh
from metaforge.engineering.mesh_quality import Quality
from metaforge.tools.context import OutputFile, Picture, ToolContext
from metaforge.tools.results import settled

CAD_SUFFIXES = (".step", ".stp", ".stl")
DECK_SUFFIXES = (".inp", ".dat", ".msh.inp")
RESERVE_SECONDS = 5.0
"""Kept back from the call's deadline for reading results and writing files."""


def input_path(step_file: str | None, mesh_file: str | None) -> str:
    """Return the one input file.

    Raises:
        InvalidArguments: none, or both.
    """
    if (step_file is None) == (mesh_file is None):
        raise InvalidArguments(
            "Give step_file (a STEP part) or mesh_file (an .inp deck or mesh), one of them",
            fields={"step_file": "a .step file", "mesh_file": "an .inp file"},
        )
    return step_file or mesh_file or ""


def is_cad(path: str) -> bool:
    """Whether the file is geometry that must be meshed first."""
    return path.lower().endswith(CAD_SUFFIXES)


def ever_onward(ctx: ToolContext) -> ToolContext:
    """Return the context with progress that only grows, whatever order the work is told in."""
    last = 0.0

    def progress(fraction: float, message: str) -> None:
        nonlocal last
        last = min(max(fraction, last + 0.001), 0.999)
        ctx.progress(last, message)

    return replace(ctx, progress=progress)


def open_deck(path: str, ctx: ToolContext) -> Source:
    """Read a deck or mesh file.

    Raises:
        ToolError: it is none.
    """
    return read_source(path, ctx.workspace)


def mesh_echo(quality: Quality, size_mm: float | None, volume_mm3: float | None) -> MeshEcho:
    """Return the mesh's size and worst elements."""
    measured = bool(len(quality.element_ids))
    return MeshEcho(
        dict(quality.types),
        number(quality.min_scaled_jacobian_ratio) if measured else 0.0,
        number(quality.max_aspect_ratio) if measured else 0.0,
        size_mm,
        volume_mm3,
    )


@dataclass(frozen=True)
class Outputs:
    """Where a job's files go, relative to the workspace.

    Attributes:
        frd: the result file.
        source: the input file, which the deck must not replace.
        is_default: whether the caller left the name to us.
        overwrite: whether existing files may be replaced.
    """

    frd: PurePosixPath
    source: str = ""
    is_default: bool = False
    overwrite: bool = False

    @property
    def deck(self) -> PurePosixPath:
        path = self.frd.with_suffix(".inp")
        return path.with_name(f"{path.stem}-solved.inp") if str(path) == self.source else path

    @property
    def picture(self) -> PurePosixPath:
        return self.frd.with_suffix(".png")

    @classmethod
    def choose(cls, output_path: str | None, source: str, load_case: str, *, overwrite: bool = False) -> "Outputs":
        """Take the caller's path, or `fea/<input>-<load case>.frd`."""
        if output_path:
            path = PurePosixPath(output_path)
            frd = path if path.suffix.lower() == ".frd" else path.with_name(path.name + ".frd")
            return cls(frd, source, False, overwrite)
        slug = re.sub(r"[^A-Za-z0-9_.-]+", "-", load_case).strip("-.") or "case"
        return cls(PurePosixPath("fea") / f"{Path(source).stem}-{slug}.frd", source, True, overwrite)

    def settle(self, deck: str, ctx: ToolContext) -> "Outputs":
        """Look for results of another job at these paths, before minutes are spent on a solve.

        Returns:
            These paths, or, where the name was ours to choose, paths with a digest of the deck in them.

        Raises:
            ToolError: the caller's path holds another job's results.
        """
        path = settled(
            self.frd, self.deck, deck, ctx, is_ours=self.is_default, may_replace=self.overwrite,
            told="the results of another job; nothing was solved",
        )  # fmt: skip
        return replace(self, frd=path)

    def write(self, ctx: ToolContext, solved: Solved, deck: str) -> list[OutputFile]:
        """Write result file and deck, and return them for the answer."""
        ctx.output_file(str(self.frd)).write_bytes(solved.frd)
        ctx.output_file(str(self.deck)).write_text(deck, encoding="utf-8")
        return [
            OutputFile(self.frd, "application/x-calculix-frd", "results"),
            OutputFile(self.deck, "text/x-calculix-inp", "deck"),
        ]


def solve_problem(
    problem: Problem, ctx: ToolContext, needs: tuple[str, ...], spent_seconds: float, outputs: Outputs
) -> tuple[Solved, str, Outputs]:
    """Write the deck and solve it; returns the solve, the deck's text and where the files go."""
    deck = write_deck(problem)
    settled = outputs.settle(deck, ctx)
    return run_deck(deck, ctx, problem.mesh, needs, spent_seconds), deck, settled


def run_deck(deck: str, ctx: ToolContext, mesh: Mesh, needs: tuple[str, ...], spent_seconds: float) -> Solved:
    """Solve a deck within what is left of the call's time."""
    ctx.progress(0.3, f"solving {mesh.node_count} nodes with CalculiX")
    left = max(1.0, ctx.timeout_seconds - spent_seconds - RESERVE_SECONDS)
    folder = ctx.scratch / "ccx"
    folder.mkdir(exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    return solve(deck, folder, mesh, needs=needs, timeout_seconds=left, progress=ctx.progress)


def drawn(
    outputs: Outputs, ctx: ToolContext, draw: Callable[[Path], str], files: list[OutputFile]
) -> tuple[tuple[Picture, ...], list[str]]:
    """Draw the picture and add it to the files; where it cannot be drawn the results still count, with a warning."""
    ctx.progress(0.95, "drawing")
    try:
        caption = draw(ctx.output_file(str(outputs.picture)))
    except ModuleNotFoundError as fault:
        return (), [f"No picture: Python module {fault.name} is not installed (pip install 'metaforge[cadquery]')"]
    except ToolError as fault:
        return (), [f"No picture: {fault.message}; {fault.fix}"]
    files.append(OutputFile(outputs.picture, "image/png", "picture"))
    return (Picture(outputs.picture, caption),), []
