"""Let the model look: the picture that goes with a file."""

from pathlib import PurePosixPath

from metaforge.adapters.cadquery.model import Model
from metaforge.adapters.cadquery.results import size_words
from metaforge.engineering.solid_guard import SolidFacts
from metaforge.tools.context import OutputFile, Picture, ToolContext


def draw(
    ctx: ToolContext,
    model: Model,
    path: str,
    measured: SolidFacts,
    files: list[OutputFile],
    see_through: str = "",
    target: str = "",
) -> tuple[Picture, ...]:
    """Draw a model; the PNG is added to `files`.

    Args:
        path: the file it belongs to, which titles it.
        see_through: name of a part that hides nothing.
        target: the PNG; default beside `path`.
    """
    from metaforge.engineering import pictures_cad

    target = target or str(PurePosixPath(path).with_suffix(".png"))
    solids = f"{measured.solids_count} solid" + ("s" if measured.solids_count != 1 else "")
    pictures_cad.draw_parts(
        [pictures_cad.Part(part.shape, part.colour, 0.2 if part.name == see_through else 1.0) for part in model.parts],
        ctx.output_file(target),
        path,
        f"volume {measured.volume_mm3:.6g} mm³   area {measured.area_mm2:.6g} mm²   {solids}",
    )
    files.append(OutputFile(target, "image/png", "picture"))
    return (Picture(target, f"{path}: top, front, right and 3/4 view, {size_words(measured)}"),)
