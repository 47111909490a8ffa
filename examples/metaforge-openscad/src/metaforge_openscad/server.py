"""One tool: a model written in OpenSCAD becomes a solid whose measures come from the file that was written."""

from typing import Annotated, ClassVar

from pydantic import BaseModel, Field

from metaforge.tools.context import Answer, ToolContext
from metaforge.tools.effect import Effect
from metaforge.tools.manifest import Need
from metaforge.tools.paths import InputPath, OutputPath
from metaforge.tools.server import McpToolServer
from metaforge.tools.tool import tool

Value = bool | int | float | str | list[float]


class Box(BaseModel):
    """Extent along x, y and z."""

    min_mm: list[float]
    max_mm: list[float]
    size_mm: list[float]


class Rendered(BaseModel):
    """The result of `render`, measured on the facets of the written file."""

    output_path: str
    volume_mm3: float
    surface_area_mm2: float
    bounding_box: Box
    facets_count: int
    echo: list[str] | None = None


class OpenscadServer(McpToolServer):
    """Script-based solid modelling with OpenSCAD."""

    needs: ClassVar[tuple[Need, ...]] = (Need("program", "openscad", apt="openscad"), Need("module", "numpy"))

    def __init__(self) -> None:
        super().__init__("openscad", "0.1.0")

    def warm_up(self) -> None:
        """Import numpy, which takes longer than a small model."""
        import metaforge_openscad.rendering  # noqa: F401

    @tool(
        effect=Effect.PRODUCE,
        capability="cad_modelling",
        title="Render OpenSCAD model",
        idempotent=True,
        timeout_seconds=600.0,
        max_memory_mb=4096,
        search_hint="openscad scad script to stl off",
    )
    def render(
        self,
        ctx: ToolContext,
        output_path: OutputPath,
        source: str | None = None,
        file_path: InputPath | None = None,
        parameters: dict[str, Value] | None = None,
        picture: bool = False,
        allow_warnings: bool = False,
        timeout_seconds: Annotated[float, Field(gt=0, le=600)] = 120.0,
        overwrite: bool = False,
    ) -> Answer[Rendered]:
        """Render an OpenSCAD model (1 unit is 1 mm) to STL or OFF and measure the result.

        Warnings of OpenSCAD are refused, because it leaves out what it does not understand and renders the rest.

        Args:
            output_path: ends in .stl or .off.
            source: the model as text; give this or file_path.
            file_path: a .scad file; it reads others by use, include and import from the workspace only.
            parameters: values for variables that the model assigns at its top level, and $fn, $fa, $fs.
            picture: draw it as PNG beside the output.
            allow_warnings: answer with the warnings instead.
            timeout_seconds: the longest it may take.
            overwrite: replace existing files.
        """
        from metaforge_openscad.rendering import Request, render

        return render(
            Request(
                output_path, source, file_path, parameters or {}, picture, allow_warnings, timeout_seconds
            ),
            ctx,
        )  # fmt: skip
