"""What a worker does before its first call."""

import tempfile
from pathlib import Path


def warm_up() -> None:
    """Load the kernel and everything that a first part touches, and write one part to a throw-away folder."""
    from metaforge.adapters.cadquery.postponed import import_cadquery

    import_cadquery()
    from metaforge.adapters.cadquery import create
    from metaforge.tools.context import ToolContext

    with tempfile.TemporaryDirectory() as folder:
        ctx = ToolContext("warm-up", Path(folder), Path(folder), Path(folder))
        size = {"width_mm": 1.0, "length_mm": 1.0, "height_mm": 1.0}
        create.create(ctx, "box", size, "box.step", None, picture=False)
