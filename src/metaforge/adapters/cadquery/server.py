"""The CadQuery adapter: seven tools on the Open CASCADE kernel. Importing it does not load the kernel."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from metaforge.adapters.cadquery.parameters import ShapeParameters, ShapeType
from metaforge.adapters.cadquery.pieces import AssemblyPart, Constraint, Cutout, MountingHole, Property
from metaforge.adapters.cadquery.results import (
    AssemblyResult,
    BooleanResult,
    EnclosureResult,
    ExportResult,
    PropertiesResult,
    ScriptResult,
    ShapeResult,
)
from metaforge.core.errors import InvalidArguments
from metaforge.protocol.messages import ToolManifest
from metaforge.tools.context import Answer, ToolContext
from metaforge.tools.effect import Effect
from metaforge.tools.manifest import Need
from metaforge.tools.paths import InputPath, OutputPath
from metaforge.tools.server import McpToolServer
from metaforge.tools.tool import tool

Positive = Annotated[float, Field(gt=0)]
PositiveOrZero = Annotated[float, Field(ge=0)]
Seconds = Annotated[float, Field(gt=0, le=600)]
UNITLESS = ("pcb_length", "pcb_width", "pcb_thickness", "component_max_height", "wall_thickness")
"""Names of generate_enclosure that mean the same in mm with `_mm` after them."""


class CadQueryServer(McpToolServer):
    """Makes, measures and converts solid geometry."""

    needs: ClassVar[tuple[Need, ...]] = (Need("module", "cadquery", extra="cadquery", minimum="2.8"),)

    def __init__(self) -> None:
        super().__init__("cadquery", "1.0.0")

    def warm_up(self) -> None:
        """Import the kernel and make one part, so that the first call finds everything loaded."""
        from metaforge.adapters.cadquery.warm import warm_up

        warm_up()

    def manifests(self) -> list[ToolManifest]:
        """Return the manifests, with names that stand without their unit allowed but not shown."""
        made = super().manifests()
        for manifest in made:
            if manifest.tool_id != "cadquery.generate_enclosure":
                continue
            properties = manifest.input_schema["properties"]
            for name in UNITLESS:
                del properties[name]
            manifest.input_schema["patternProperties"] = {f"^({'|'.join(UNITLESS)})$": {"type": "number"}}
        return made

    @tool(
        effect=Effect.PRODUCE, capability="cad_generation", title="Create parametric shape", idempotent=True,
        timeout_seconds=120, search_hint="make a CAD part: box, cylinder, sphere, cone, bracket, plate, enclosure",
    )  # fmt: skip
    def create_parametric(
        self,
        ctx: ToolContext,
        shape_type: ShapeType,
        parameters: ShapeParameters,
        output_path: OutputPath,
        material: str | None = None,
        picture: bool = False,
        overwrite: bool = False,
    ) -> Answer[ShapeResult]:
        """Make a solid from its dimensions in mm and write it as STEP.

        Width is along x, length along y, height along z; it is centred in x and y and stands on z = 0 (a sphere is
        centred). A bracket is an L: base leg along x, wall at its -x end.

        Args:
            shape_type: Which shape.
            parameters: In mm, by shape.
            output_path: STEP file to write, such as out/bracket.step.
            material: Such as steel-316; adds the mass.
            picture: Also draw it.
            overwrite: Replace a file with other content.
        """
        from metaforge.adapters.cadquery.create import create

        return create(ctx, shape_type, parameters, output_path, material, picture)

    @tool(
        effect=Effect.PRODUCE, capability="cad_operations", title="Boolean operation", idempotent=True,
        timeout_seconds=300, search_hint="union, subtract (cut), intersect two CAD files",
    )  # fmt: skip
    def boolean_operation(
        self,
        ctx: ToolContext,
        input_file_a: InputPath,
        input_file_b: InputPath,
        operation: Literal["union", "subtract", "intersect"],
        output_path: OutputPath | None = None,
        picture: bool = False,
        overwrite: bool = False,
    ) -> Answer[BooleanResult]:
        """Unite two parts, subtract b from a, or intersect them; both stay where their files place them.

        Args:
            input_file_a: STEP or BREP file.
            input_file_b: STEP or BREP file.
            operation: What to do.
            output_path: STEP file to write; default beside a.
            picture: Also draw it.
            overwrite: Replace a file with other content.
        """
        from metaforge.adapters.cadquery.boolean import combine

        return combine(ctx, input_file_a, input_file_b, operation, output_path, picture)

    @tool(
        effect=Effect.READ, capability="cad_analysis", title="Geometric properties",
        timeout_seconds=300, search_hint="measure a STEP file: volume, area, mass, inertia, bounding box, faces, units",
    )  # fmt: skip
    def get_properties(
        self,
        ctx: ToolContext,
        input_file: InputPath,
        properties: list[Property] | None = None,
        material: str | None = None,
        density_kg_m3: Positive | None = None,
        picture: bool = False,
    ) -> Answer[PropertiesResult]:
        """Measure a STEP or BREP file: volume, area, bounding box, mass, inertia, faces, parts, colours, unit.

        Inertia is about the centre of mass. Faces carry centroid, normal and side, to place loads.

        Args:
            input_file: STEP or BREP file.
            properties: Default all, with the 24 largest faces.
            material: Such as steel-316, for the mass.
            density_kg_m3: Instead of a material.
            picture: Also draw it.
        """
        from metaforge.adapters.cadquery.properties import describe

        return describe(ctx, input_file, properties, material, density_kg_m3, picture)

    @tool(
        effect=Effect.PRODUCE, capability="cad_export", title="Export geometry", idempotent=True,
        timeout_seconds=300, search_hint="convert STEP to STL, OBJ, BREP, AMF, SVG, GLB",
    )  # fmt: skip
    def export_geometry(
        self,
        ctx: ToolContext,
        input_file: InputPath,
        output_format: Literal["step", "stl", "obj", "brep", "amf", "svg", "glb"],
        output_path: OutputPath | None = None,
        tolerance_mm: Annotated[float, Field(ge=1e-4, le=100)] = 0.1,
        angular_tolerance_deg: Annotated[float, Field(ge=0.5, le=45)] = 10.0,
        overwrite: bool = False,
    ) -> Answer[ExportResult]:
        """Convert a STEP or BREP file. STEP, GLB and OBJ keep names and colours; GLB is in metres, y up.

        Args:
            input_file: STEP or BREP file.
            output_format: Format to write.
            output_path: File to write; default beside the input.
            tolerance_mm: Of triangles from the face.
            angular_tolerance_deg: Between neighbouring triangles.
            overwrite: Replace a file with other content.
        """
        from metaforge.adapters.cadquery.export import export

        return export(ctx, input_file, output_format, output_path, tolerance_mm, angular_tolerance_deg)

    @tool(
        effect=Effect.PRODUCE, capability="cad_scripting", title="Execute CadQuery script", runs_caller_code=True,
        timeout_seconds=600, max_memory_mb=4096,
        search_hint="run a CadQuery Python script, parametric modelling, fillet, loft, sweep",
    )  # fmt: skip
    def execute_script(
        self,
        ctx: ToolContext,
        script: str,
        output_path: OutputPath | None = None,
        compare_to: InputPath | None = None,
        timeout_seconds: Seconds | None = None,
        timeout: Seconds | None = None,
        picture: bool = False,
        overwrite: bool = False,
    ) -> Answer[ScriptResult]:
        """Run a CadQuery (Python) script and write the part it leaves in `result`, or shows with show_object, as STEP.

        `cq` is imported. It runs boxed in the workspace, read-only; fillets and chamfers are guarded. An Assembly
        keeps names and colours.

        Args:
            script: Python source; lengths in mm.
            output_path: STEP file to write; default out/script-<digest>.step.
            compare_to: Earlier revision, for deltas; default what lies at output_path.
            timeout_seconds: Default 60.
            timeout: Same as timeout_seconds.
            picture: Also draw it.
            overwrite: Replace a file with other content.
        """
        from metaforge.adapters.cadquery.script import execute

        return execute(ctx, script, output_path, compare_to, timeout_seconds or timeout or 60.0, picture)

    @tool(
        effect=Effect.PRODUCE, capability="cad_assembly", title="Create assembly", idempotent=True,
        timeout_seconds=600, max_memory_mb=4096,
        search_hint="assemble STEP parts with constraints, colours, interference check",
    )  # fmt: skip
    def create_assembly(
        self,
        ctx: ToolContext,
        parts: Annotated[list[AssemblyPart], Field(min_length=1)],
        constraints: list[Constraint] | None = None,
        output_path: OutputPath | None = None,
        picture: bool = False,
        overwrite: bool = False,
    ) -> Answer[AssemblyResult]:
        """Place parts from STEP files, solve constraints between them, and check every pair for interference.

        The first part named in a constraint stays unless another is fixed. Constraints that cannot be met are an
        error with what is left of each.

        Args:
            parts: What to place.
            constraints: Between features.
            output_path: STEP file to write; default out/assembly-<digest>.step.
            picture: Also draw it.
            overwrite: Replace a file with other content.
        """
        from metaforge.adapters.cadquery.assembly import assemble

        return assemble(ctx, parts, constraints or [], output_path, picture)

    @tool(
        effect=Effect.PRODUCE, capability="cad_enclosure", title="Generate PCB enclosure", idempotent=True,
        timeout_seconds=300, search_hint="housing, case, box for a circuit board with bosses, cutouts and lid",
    )  # fmt: skip
    def generate_enclosure(
        self,
        ctx: ToolContext,
        pcb_length_mm: Positive | None = None,
        pcb_width_mm: Positive | None = None,
        pcb_thickness_mm: Positive | None = None,
        component_max_height_mm: PositiveOrZero | None = None,
        connector_cutouts: list[Cutout] | None = None,
        mounting_holes: list[MountingHole] | None = None,
        wall_thickness_mm: Positive | None = None,
        clearance_mm: Positive = 1.0,
        standoff_height_mm: PositiveOrZero = 4.0,
        boss_hole_diameter_mm: Positive = 2.5,
        corner_radius_mm: PositiveOrZero = 0.0,
        lid: bool = True,
        lid_lip_mm: PositiveOrZero = 2.0,
        material: str | None = None,
        output_path: OutputPath | None = None,
        pcb_length: Positive | None = None,
        pcb_width: Positive | None = None,
        pcb_thickness: Positive | None = None,
        component_max_height: PositiveOrZero | None = None,
        wall_thickness: Positive | None = None,
        picture: bool = False,
        overwrite: bool = False,
    ) -> Answer[EnclosureResult]:
        """Make a box with lid around a circuit board: screw bosses under its holes, openings for its connectors.

        Holes and cutouts are in board coordinates, from its -x -y corner. Names without _mm mean the same.

        Args:
            pcb_length_mm: Along x; required.
            pcb_width_mm: Along y; required.
            pcb_thickness_mm: Default 1.6.
            component_max_height_mm: Above the board; default 15.
            connector_cutouts: Openings in the walls.
            mounting_holes: Of the board; each gets a boss.
            wall_thickness_mm: Default 2.
            clearance_mm: Around the board.
            standoff_height_mm: Of the bosses.
            boss_hole_diameter_mm: For the screw.
            corner_radius_mm: Of upright edges.
            lid: Whether to make one.
            lid_lip_mm: Into the body.
            material: Such as abs; adds the mass.
            output_path: STEP file to write; default out/enclosure-<digest>.step.
            picture: Also draw it.
            overwrite: Replace a file with other content.
        """
        from metaforge.adapters.cadquery.enclosure import Board, Casing, enclose

        length, width = pcb_length_mm or pcb_length, pcb_width_mm or pcb_width
        if length is None or width is None:
            missing = [name for name, value in (("pcb_length_mm", length), ("pcb_width_mm", width)) if value is None]
            raise InvalidArguments(
                f"cadquery.generate_enclosure: {' and '.join(missing)}: is required, in mm",
                fields={name: "is required, in mm" for name in missing},
            )
        tallest = component_max_height if component_max_height_mm is None else component_max_height_mm
        board = Board(length, width, pcb_thickness_mm or pcb_thickness or 1.6, 15.0 if tallest is None else tallest)
        casing = Casing(
            wall=wall_thickness_mm or wall_thickness or 2.0,
            clearance=clearance_mm,
            standoff=standoff_height_mm,
            corner_radius=corner_radius_mm,
            lid=lid,
            lip=lid_lip_mm,
        )
        return enclose(
            ctx, board, casing, mounting_holes or [], connector_cutouts or [], boss_hole_diameter_mm, material,
            output_path, picture,
        )  # fmt: skip
