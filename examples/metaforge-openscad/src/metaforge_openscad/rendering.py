"""Evaluate a model, look at what it would open, then let OpenSCAD build the solid and measure what it wrote."""

import re
import time
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path, PurePosixPath

from metaforge.core.errors import FailureMode, ToolCrashed, ToolError, ToolTimedOut
from metaforge.engineering.programs import find_program, run_program
from metaforge.tools.context import Answer, OutputFile, Picture, ToolContext
from metaforge_openscad.model import Model
from metaforge_openscad.server import Box, Rendered, Value
from metaforge_openscad.surface import Surface, read_surface

INSTALL = "apt-get install -y openscad"
FORMATS = {".stl": ("binstl", "model/stl"), ".off": ("off", "model/off")}
MEASURING_SECONDS = 2.0
"""Kept back from the deadline for reading the result."""

_SAID = re.compile(r"^(?:EXPORT-|UI-|PARSER-)?(ERROR|WARNING|DEPRECATED): (.*)$", re.MULTILINE)
_PLACE = re.compile(r"(?:,)? in file (.+), line (\d+)$")
KNOWN = (
    ("Parser error", "syntax_error", "correct that line; a missing ; or bracket is often one line above"),
    ("Assertion", "assertion_failed", "change the parameters so that it holds"),
    ("unknown (?:module|function|variable)", "unknown_name", "define it, or use <FILE> that does; check the spelling"),
    ("Recursion detected", "endless_recursion", "give the recursion an end"),
    ("2-manifold", "not_manifold", "let parts that only touch overlap by 0.01 mm, and close every face"),
    ("not a 3D object", "flat_model", "give it height: linear_extrude(height = 2) ..."),
    ("object is empty", "empty_model", "nothing is left to render: check differences, conditions and sizes"),
)


@dataclass(frozen=True)
class Request:
    """The arguments of `render`."""

    output_path: str
    source: str | None
    file_path: str | None
    parameters: dict[str, Value]
    picture: bool
    allow_warnings: bool
    timeout_seconds: float


class OpenScad:
    """OpenSCAD, for one call.

    Attributes:
        said: its warnings, in a person's words.
        echoed: what the model's echo() printed.
    """

    def __init__(self, model: Model, request: Request, ctx: ToolContext) -> None:
        self.program = find_program("openscad", INSTALL)
        self.model, self.request, self.ctx = model, request, ctx
        self.end = time.monotonic() + min(request.timeout_seconds, ctx.timeout_seconds) - MEASURING_SECONDS
        self.said: list[str] = []
        self.echoed: list[str] = []

    def run(self, *words: str, output: Path, doing: str, share: float) -> None:
        """Write `output`, or raise what OpenSCAD said, with the line."""
        try:
            result = run_program(
                (self.program, *words, "-o", str(output)),
                cwd=self.model.path.parent,
                timeout_seconds=max(self.end - time.monotonic(), 0.5),
                environment={"HOME": str(self.ctx.scratch), "OPENSCADPATH": str(self.model.workspace)},
                heartbeat=lambda seconds, _: self.ctx.progress(share + seconds / (seconds + 60) / 2, doing),
            )
        except ToolTimedOut:
            raise ToolTimedOut(
                f"OpenSCAD was not done within the {self.request.timeout_seconds:g} s it may take; it was {doing}",
                fix="lower $fn, replace minkowski() of round bodies, or allow more: timeout_seconds up to 600",
                failure_mode=FailureMode.LIMIT,
            ) from None
        if result.signal:
            raise ToolCrashed(f"OpenSCAD crashed (signal {result.signal})", signal=result.signal)
        self.echoed = re.findall(r"^ECHO: (.*)$", result.output, re.MULTILINE)
        faults = _SAID.findall(result.output)
        wrong = [text for kind, text in faults if kind == "ERROR"]
        warned = [text for kind, text in faults if kind == "WARNING"]
        if wrong or (warned and not self.request.allow_warnings):
            raise self._fault(wrong + warned)
        if not output.is_file() or not output.stat().st_size:
            raise self._fault(re.findall(r"^Current top level .*$", result.output, re.MULTILINE) or ["no result"])
        # Both runs say the same of the model.
        self.said = list(dict.fromkeys([*self.said, *map(self._told, warned)]))

    def _fault(self, texts: list[str]) -> ToolError:
        texts = list(dict.fromkeys(texts))
        message, where = self._split(texts[0])
        kind, fix = next(
            ((kind, fix) for words, kind, fix in KNOWN if re.search(words, message)),
            ("openscad_refused", "correct the model there, or pass allow_warnings: true if it is as you want it"),
        )
        more = f" (and {len(texts) - 1} more: {'; '.join(map(self._told, texts[1:4]))})" if len(texts) > 1 else ""
        return ToolError(f"OpenSCAD: {message}{more}", kind=kind, where=where, fix=fix)

    def _split(self, text: str) -> tuple[str, str]:
        """Return what OpenSCAD says, and the place as a person finds it."""
        match = _PLACE.search(text)
        if not match:
            return text, ""
        path = (self.model.path.parent / match[1]).resolve()
        return text[: match.start()], self.model.place(path, int(match[2]))

    def _told(self, text: str) -> str:
        message, where = self._split(text)
        return f"{message} ({where})" if where else message


def render(request: Request, ctx: ToolContext) -> Answer[Rendered]:
    """Render and measure.

    Raises:
        ToolError: the model is wrong, reads what it may not, takes too long or encloses no volume.
    """
    suffix = PurePosixPath(request.output_path).suffix.lower()
    if suffix not in FORMATS:
        raise ToolError(f"{request.output_path} is neither .stl nor .off", kind="unknown_format", fix="end it in .stl")
    export_format, media_type = FORMATS[suffix]
    model = Model.open(request.source, request.file_path, ctx)
    openscad = OpenScad(model, request, ctx)
    words = (*model.definitions(dict(request.parameters)), str(model.path))
    tree, opened, target = ctx.scratch / "model.csg", ctx.scratch / "opened.d", ctx.output_file(request.output_path)
    openscad.run(*words, output=tree, doing="evaluating", share=0)
    model.refuse_outside_imports(tree.read_text("utf-8", "replace"))
    openscad.run(
        "--export-format",
        export_format,
        "-d",
        str(opened),
        *words,
        output=target,
        doing="building the solid",
        share=0.4,
    )
    model.refuse_outside_reads(opened.read_text("utf-8", "replace"))
    surface = read_surface(target)
    answer = _measured(surface, request, openscad)
    files = [OutputFile(request.output_path, media_type, "geometry")]
    pictures: tuple[Picture, ...] = ()
    if request.picture:
        pictures = _drawn(surface, answer, ctx, openscad.said)
        files += [OutputFile(picture.path, "image/png", "picture") for picture in pictures]
    return Answer(answer, _summary(answer), tuple(openscad.said), "", tuple(files), pictures, {"OpenSCAD": _version()})


def _measured(surface: Surface, request: Request, openscad: OpenScad) -> Rendered:
    volume, open_edges = surface.volume_mm3(), surface.open_edges_count()
    if open_edges or volume <= 0:
        fault = f"The surface is not closed: {open_edges} edges" if open_edges else "The surface encloses no volume"
        if not request.allow_warnings:
            raise ToolError(fault, kind="not_manifold", where=request.output_path, fix=KNOWN[4][2])
        openscad.said.append(f"{fault}; the volume of {volume:.6g} mm³ means nothing")
    low, high = surface.points_mm.min(axis=0), surface.points_mm.max(axis=0)
    return Rendered(
        output_path=request.output_path,
        volume_mm3=volume,
        surface_area_mm2=surface.area_mm2(),
        bounding_box=Box(min_mm=low.tolist(), max_mm=high.tolist(), size_mm=(high - low).tolist()),
        facets_count=len(surface.corners),
        echo=openscad.echoed[:50] or None,
    )


def _summary(answer: Rendered) -> str:
    size = " x ".join(f"{length:.6g}" for length in answer.bounding_box.size_mm)
    return (
        f"{answer.output_path}: {size} mm, volume {answer.volume_mm3:.6g} mm³, "
        f"surface {answer.surface_area_mm2:.6g} mm², {answer.facets_count} facets."
    )


def _drawn(surface: Surface, answer: Rendered, ctx: ToolContext, warnings: list[str]) -> tuple[Picture, ...]:
    """Draw what was measured. OpenSCAD's own PNG export needs an X server and crashes without one."""
    if find_spec("vtkmodules") is None:
        warnings.append("No picture: pip install vtk")
        return ()
    from metaforge.engineering.pictures_cad import MeshedPart, draw_meshes

    path = str(PurePosixPath(answer.output_path).with_suffix(".png"))
    part = MeshedPart(surface.points_mm, surface.corners, surface.sharp_edges_mm())
    draw_meshes([part], ctx.output_file(path), PurePosixPath(answer.output_path).name, f"{answer.volume_mm3:.6g} mm³")
    return (Picture(path, f"{_summary(answer)} Top, front, right and 3/4 view."),)


@cache
def _version() -> str:
    told = run_program((find_program("openscad", INSTALL), "--version"), cwd=Path("/"), timeout_seconds=20).output
    return told.rpartition(" ")[2].strip()
