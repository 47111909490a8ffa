"""The FreeCAD adapter: sessions, tools on files, meshing. Importing it loads neither gmsh nor numpy."""

from shutil import which
from typing import Annotated, Literal

from pydantic import Field

from metaforge import __version__
from metaforge.adapters.freecad.answers import MeshAnswer
from metaforge.adapters.freecad.assembly import AssemblyTools
from metaforge.adapters.freecad.dressing import DressingTools
from metaforge.adapters.freecad.exchange import ExchangeTools
from metaforge.adapters.freecad.generators import GeneratorTools
from metaforge.adapters.freecad.measuring import MeasuringTools
from metaforge.adapters.freecad.process import freecad_python
from metaforge.adapters.freecad.sessions import SessionTools
from metaforge.adapters.freecad.sketching import SketchTools
from metaforge.adapters.freecad.solids import SolidTools
from metaforge.adapters.freecad.stateless import FileTools
from metaforge.adapters.freecad.steps import FREECAD
from metaforge.adapters.freecad.workbench import Workbench
from metaforge.core.errors import InvalidArguments
from metaforge.protocol.messages import ToolManifest
from metaforge.tools.context import Answer, ToolContext
from metaforge.tools.effect import Effect
from metaforge.tools.manifest import Need
from metaforge.tools.paths import InputPath, OutputPath
from metaforge.tools.server import McpToolServer
from metaforge.tools.tool import tool

Positive = Annotated[float, Field(gt=0)]
GMSH = Need("module", "gmsh", extra="cadquery", minimum="4.13")


class FreecadServer(McpToolServer):
    """Models solids in FreeCAD and meshes them. Each tool says what it needs: meshing needs gmsh, not FreeCAD."""

    def __init__(self) -> None:
        self.workbench = bench = Workbench()
        groups = (
            SessionTools(bench), SolidTools(bench), SketchTools(bench), DressingTools(bench), AssemblyTools(bench),
            MeasuringTools(bench), ExchangeTools(bench), FileTools(bench), GeneratorTools(bench),
        )  # fmt: skip
        super().__init__("freecad", __version__, groups=groups)

    def warm_up(self) -> None:
        """Begin to load FreeCAD, so that a session opens at once. The mesher is imported when it is first needed."""
        if which(FREECAD.name) and which(freecad_python()):
            self.workbench.warm_up()

    def manifests(self) -> list[ToolManifest]:
        """Return the manifests, with the documented name without its unit allowed but not shown."""
        made = super().manifests()
        for manifest in made:
            if manifest.input_schema["properties"].pop("element_size", None):
                manifest.input_schema["patternProperties"] = {"^element_size$": {"type": "number"}}
        return made

    @tool(
        effect=Effect.PRODUCE,
        capability="mesh_generation",
        title="Generate mesh",
        idempotent=True,
        timeout_seconds=600.0,
        max_memory_mb=4096,
        max_cpu_seconds=1200,
        max_disk_mb=1024,
        needs=(GMSH,),
        search_hint="mesh a STEP part for finite element analysis; list its faces",
    )
    def generate_mesh(
        self,
        ctx: ToolContext,
        input_file: InputPath,
        element_size_mm: Positive | None = None,
        element_size: Positive | None = None,
        algorithm: Literal["gmsh", "netgen", "mefisto"] = "gmsh",
        order: Literal[1, 2] = 2,
        output_format: Literal["inp", "unv", "stl"] | None = None,
        output_path: OutputPath | None = None,
        picture: bool = False,
        overwrite: bool = False,
    ) -> Answer[MeshAnswer]:
        """Mesh the solids of a STEP file with tetrahedra and name every face by position.

        Coordinates are those of the STEP file in mm with assembly placements applied. surface_sets: face_1 ... and
        top, bottom, left, right, front, back (+z -z -x +x -y +y) where a flat face lies outermost; calculix.run_fea
        takes these names. Touching solids share nodes.

        Args:
            input_file: .step or .stp file.
            element_size_mm: edge length; default min(longest side / 10, wall / 2) within 3,000 to 60,000 elements.
            element_size: same as element_size_mm.
            algorithm: gmsh does the work in any case.
            order: 2 for C3D10 (quadratic), 1 for C3D4 (linear: too stiff for stresses).
            output_format: default by output_path, else inp (CalculiX).
            output_path: default beside input_file.
            picture: also draw the mesh as PNG.
            overwrite: replace a file that exists with other content.
        """
        from metaforge.adapters.freecad import mesh

        if element_size_mm is not None and element_size is not None and element_size_mm != element_size:
            raise InvalidArguments(
                f"element_size_mm {element_size_mm:g} and element_size {element_size:g} differ: give one",
                fields={"element_size": "the same as element_size_mm, or nothing"},
            )
        output = mesh.choose_output(input_file, output_path, output_format)
        return mesh.generate(ctx, input_file, element_size_mm or element_size, algorithm, order, output, picture)
