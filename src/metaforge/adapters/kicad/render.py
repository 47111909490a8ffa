"""Pictures of boards and schematics."""

from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from metaforge.adapters.kicad.answers import RenderAnswer
from metaforge.adapters.kicad.drc import board_of, read_file
from metaforge.adapters.kicad.hierarchy import read_hierarchy
from metaforge.adapters.kicad.mirror import mirrored
from metaforge.adapters.kicad.outputs import named
from metaforge.adapters.kicad.program import Deadline, failed, kicad, run_kicad
from metaforge.core.errors import InvalidArguments
from metaforge.tools.context import Answer, OutputFile, Picture, ToolContext

if TYPE_CHECKING:
    from PIL.Image import Image

WIDTH_PX = 1280
LAYERS = "B.Cu,F.Cu,F.SilkS,F.Mask,Edge.Cuts"
POINTS_PER_MM = 72 / 25.4
MARGIN_MM = 4.0
MARK_RADIUS_PX = 22
_MARK = (220, 20, 60)
_PAPER = 245


@dataclass(frozen=True)
class Request:
    """What is to be drawn."""

    input_file: str
    view: str
    page: int
    marks_mm: list[list[float]]
    output_path: str | None


def render(request: Request, ctx: ToolContext) -> Answer[RenderAnswer]:
    """Draw a board or a schematic.

    Raises:
        InvalidArguments: it is neither, or the view does not fit it.
        ToolError: the file cannot be used, or KiCad drew nothing.
    """
    suffix = PurePosixPath(request.input_file).suffix
    if suffix not in (".kicad_pcb", ".kicad_sch"):
        raise InvalidArguments(
            f"input_file: {request.input_file} is no .kicad_pcb or .kicad_sch",
            fields={"input_file": "a .kicad_pcb or .kicad_sch file"},
        )
    wrong = [place for place in request.marks_mm if len(place) != 2]
    if wrong:
        raise InvalidArguments(f"marks_mm: {wrong[0]} is not [x, y]", fields={"marks_mm": "pairs [x, y] in mm"})
    if suffix == ".kicad_sch":
        return _schematic(request, ctx)
    if request.view == "layout":
        return _layout(request, ctx)
    return _solid(request, ctx)


def _schematic(request: Request, ctx: ToolContext) -> Answer[RenderAnswer]:
    hierarchy = read_hierarchy(ctx.workspace, request.input_file)
    target = ctx.scratch / "page.pdf"
    words = ("sch", "export", "pdf", "--exclude-pdf-property-popups", "--pages", str(request.page),
             "-o", str(target), str(mirrored(request.input_file, ctx)))  # fmt: skip
    result = run_kicad(words, Deadline(ctx), cwd=ctx.scratch, doing="drawing the sheet")
    if not target.is_file():
        raise failed(result, f"draw page {request.page}", request.input_file,
                     f"the schematic has {hierarchy.instances_count} pages; choose one of them")  # fmt: skip
    image, per_mm = _page(target)
    _mark(image, request.marks_mm, per_mm, (0.0, 0.0))
    shown = [0.0, 0.0, round(image.width / per_mm, 1), round(image.height / per_mm, 1)]
    caption = f"{request.input_file}, page {request.page} of {hierarchy.instances_count}"
    return _answer(image, shown, caption, request, ctx, hierarchy.instances_count)


def _layout(request: Request, ctx: ToolContext) -> Answer[RenderAnswer]:
    """Draw the copper, silkscreen and edge from above, cut to the board."""
    text, _ = read_file(ctx.workspace, request.input_file)
    board_of(text, request.input_file)
    target = ctx.scratch / "layout.pdf"
    words = ("pcb", "export", "pdf", "--mode-single", "--layers", LAYERS, "-o", str(target),
             str(mirrored(request.input_file, ctx)))  # fmt: skip
    result = run_kicad(words, Deadline(ctx), cwd=ctx.scratch, doing="drawing the board")
    if not target.is_file():
        raise failed(result, "draw the board", request.input_file, "kicad.run_drc says what is wrong with it")
    left, top, right, bottom = _ink_mm(target, request.marks_mm)
    scale = WIDTH_PX / max(right - left, bottom - top, 1.0) / POINTS_PER_MM
    page, per_mm = _page(target, scale)
    image = page.crop((left * per_mm, top * per_mm, right * per_mm, bottom * per_mm))
    _mark(image, request.marks_mm, per_mm, (left, top))
    shown = [round(edge, 2) for edge in (left, top, right, bottom)]
    caption = (
        f"{request.input_file} from above: front copper red, back copper blue; x {shown[0]:g} to {shown[2]:g} mm, "
        f"y {shown[1]:g} to {shown[3]:g} mm downwards"
    )
    return _answer(image, shown, caption, request, ctx, None)


def _solid(request: Request, ctx: ToolContext) -> Answer[RenderAnswer]:
    """Draw the board as a solid, from above or below."""
    text, _ = read_file(ctx.workspace, request.input_file)
    board_of(text, request.input_file)
    target = ctx.scratch / "solid.png"
    words = ("pcb", "render", "--side", request.view, "--width", str(WIDTH_PX), "--height", str(WIDTH_PX * 3 // 4),
             "--preset", "follow_pcb_editor", "--background", "opaque", "-o", str(target),
             str(mirrored(request.input_file, ctx)))  # fmt: skip
    result = run_kicad(words, Deadline(ctx), cwd=ctx.scratch, doing="rendering the board")
    if not target.is_file():
        raise failed(result, "render the board", request.input_file, "close the outline on Edge.Cuts (kicad.run_drc)")
    from PIL import Image as Images

    with Images.open(target) as opened:
        image = opened.convert("RGB")
    return _answer(image, [], f"{request.input_file}, {request.view} side", request, ctx, None)


def _page(file: Path, scale: float | None = None) -> tuple["Image", float]:
    """Return the first page of a PDF as a picture, and its pixels per mm."""
    import pypdfium2

    document = pypdfium2.PdfDocument(file)
    try:
        page = document[0]
        factor = scale or WIDTH_PX / page.get_width()
        image: Image = page.render(scale=factor, draw_annots=False).to_pil().convert("RGB")
    finally:
        document.close()
    return image, factor * POINTS_PER_MM


def _ink_mm(file: Path, marks_mm: list[list[float]]) -> tuple[float, float, float, float]:
    """Return what of the page is drawn on, with a margin; marked places belong to it."""
    image, per_mm = _page(file, 1.0)
    ink = image.convert("L").point([255 if level < _PAPER else 0 for level in range(256)]).getbbox()
    edges = [edge / per_mm for edge in ink or (0, 0, image.width, image.height)]
    xs = [edges[0], edges[2], *(place[0] for place in marks_mm)]
    ys = [edges[1], edges[3], *(place[1] for place in marks_mm)]
    width, height = image.width / per_mm, image.height / per_mm
    return (
        max(min(xs) - MARGIN_MM, 0.0), max(min(ys) - MARGIN_MM, 0.0),
        min(max(xs) + MARGIN_MM, width), min(max(ys) + MARGIN_MM, height),
    )  # fmt: skip


def _mark(image: "Image", marks_mm: list[list[float]], per_mm: float, origin_mm: tuple[float, float]) -> None:
    """Draw a numbered ring around each place."""
    from PIL import ImageDraw

    draw = ImageDraw.Draw(image)
    for number, (x_mm, y_mm) in enumerate(marks_mm, 1):
        x, y = (x_mm - origin_mm[0]) * per_mm, (y_mm - origin_mm[1]) * per_mm
        draw.ellipse(
            (x - MARK_RADIUS_PX, y - MARK_RADIUS_PX, x + MARK_RADIUS_PX, y + MARK_RADIUS_PX), outline=_MARK, width=4
        )
        draw.text((x + MARK_RADIUS_PX, y - MARK_RADIUS_PX), str(number), fill=_MARK, font_size=26)


def _answer(
    image: "Image", shown: list[float], caption: str, request: Request, ctx: ToolContext, pages: int | None
) -> Answer[RenderAnswer]:
    import io

    written = io.BytesIO()
    image.save(written, "PNG")
    content = written.getvalue()
    about = f"-{request.view}" if request.input_file.endswith("_pcb") else f"-page{request.page}"
    path = named(request.output_path, request.input_file, f"{about}.png", content, ctx)
    ctx.output_file(str(path)).write_bytes(content)
    programs: dict[str, Any] = {"KiCad": kicad().version}
    return Answer(
        RenderAnswer(str(path), pages, shown), f"{path}: {caption}.", files=(OutputFile(path, "image/png", "picture"),),
        pictures=(Picture(path, caption),), programs=programs,
    )  # fmt: skip
