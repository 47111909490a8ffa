"""Draw an object of a session: four views in one scale."""

from pathlib import Path

from metaforge.adapters.freecad.told import words
from metaforge.adapters.freecad.workbench import Session
from metaforge.tools.context import OutputFile, Picture, ToolContext


def draw(
    ctx: ToolContext, session: Session, obj_id: str, told: dict[str, object], path: str = ""
) -> tuple[tuple[OutputFile, ...], tuple[Picture, ...]]:
    """Return the PNG as a file and as a picture.

    Args:
        told: the object's fields, for the caption.
        path: where; by default named after the object and its content.
    """
    import numpy as np

    from metaforge.engineering.pictures_cad import MeshedPart, draw_meshes

    reply = session.ask("tessellate", ctx.timeout_seconds, obj_id=obj_id, scratch=str(ctx.scratch))
    parts = []
    for part in reply["parts"]:
        base = Path(part["base"])
        points = np.fromfile(base.with_suffix(".points"), np.float64).reshape(-1, 3)
        corners = np.fromfile(base.with_suffix(".corners"), np.int32).reshape(-1, 3).astype(np.int64)
        lines = np.fromfile(base.with_suffix(".lines"), np.float64).reshape(-1, 3)
        ends = np.cumsum(part["lengths"], dtype=np.int64)[:-1]
        parts.append(MeshedPart(points, corners, np.split(lines, ends), session.colours.get(part["obj_id"])))
    target = path or session.file_name(f"{obj_id}-{ctx.call_id[-6:]}", ".png")
    caption = words(told)
    draw_meshes(parts, ctx.output_file(target), obj_id, caption.partition(": ")[2])
    return (OutputFile(target, "image/png", "picture"),), (
        Picture(target, f"{caption}; top, front, right and 3/4 view"),
    )
