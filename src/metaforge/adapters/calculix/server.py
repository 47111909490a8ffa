"""The CalculiX adapter: four tools. Nothing heavy is imported until a tool runs."""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from metaforge import __version__
from metaforge.adapters.calculix import shorthand
from metaforge.adapters.calculix.answers import ExtractedResults, FeaAnswer, MeshVerdict, ThermalAnswer
from metaforge.adapters.calculix.arguments import HeatLoad, Load, MaterialChoice, Positive, Support, Vector
from metaforge.core.errors import InvalidArguments
from metaforge.engineering.materials import Material as Resolved
from metaforge.tools.context import Answer, ToolContext
from metaforge.tools.effect import Effect
from metaforge.tools.manifest import Need
from metaforge.tools.paths import InputPath, OutputPath
from metaforge.tools.server import McpToolServer
from metaforge.tools.tool import tool

Material = str | MaterialChoice
ModeCount = Annotated[int, Field(ge=1, le=100)]


class CalculixServer(McpToolServer):
    """Finite element analysis with CalculiX."""

    needs: ClassVar[tuple[Need, ...]] = (
        Need("program", "ccx", apt="calculix-ccx", minimum="2.17"),
        Need("module", "numpy", extra="cadquery"),
    )

    def __init__(self) -> None:
        super().__init__("calculix", __version__)

    def warm_up(self) -> None:
        """Import numpy, the mesher where it is installed, and the analysis modules."""
        import importlib.util

        import metaforge.adapters.calculix.deck_run

        if importlib.util.find_spec("gmsh") is not None:
            import metaforge.engineering.meshing  # noqa: F401

    @tool(
        effect=Effect.PRODUCE,
        capability="stress_analysis",
        title="Run FEA",
        idempotent=True,
        timeout_seconds=1800.0,
        max_memory_mb=4096,
        max_cpu_seconds=3600,
        max_disk_mb=2048,
        search_hint="stress, displacement, natural frequency, buckling of a part",
    )
    def run_fea(
        self,
        ctx: ToolContext,
        analysis_type: Literal["static_stress", "modal", "buckling", "thermal"],
        load_case: str = "case-1",
        step_file: InputPath | None = None,
        mesh_file: InputPath | None = None,
        material: Material | None = None,
        materials: dict[str, Material] | None = None,
        supports: list[Support] | None = None,
        loads: list[Load] | None = None,
        fixed_node_set: str | None = None,
        load_node_set: str | None = None,
        load_force_n: Vector | None = None,
        element_size_mm: Positive | None = None,
        num_modes: ModeCount = 3,
        mesh_convergence: bool = False,
        picture: bool = False,
        output_path: OutputPath | None = None,
        overwrite: bool = False,
    ) -> Answer[FeaAnswer]:
        """Compute stresses, natural frequencies, buckling loads or temperatures with CalculiX.

        Takes a STEP part (meshed with quadratic tetrahedra), an .inp mesh with sets, or an .inp deck with its own
        *STEP. Checks units, restraint and elements before the solve, reactions after it. Axes as in the file.

        Args:
            analysis_type: of a deck, that of its step.
            load_case: label; part of the result file's name.
            step_file: the part.
            mesh_file: .inp mesh or deck.
            material: such as steel-316, or numbers.
            materials: by solid or element set.
            supports: such as [{"face": "bottom"}].
            loads: such as [{"face": "top", "force_n": [0, 0, -1000]}].
            fixed_node_set: held in x, y, z.
            load_node_set: carries load_force_n.
            load_force_n: in all, x y z.
            element_size_mm: of a STEP part; default min(part / 10, wall / 2).
            num_modes: frequencies or buckling factors.
            mesh_convergence: compare with a coarser mesh (STEP, static).
            picture: draw the result as PNG.
            output_path: .frd file; deck and picture get the same name.
            overwrite: replace existing result files.
        """
        from metaforge.adapters.calculix import deck_run, job, meshed, structural, thermal

        ctx, path = job.ever_onward(ctx), job.input_path(step_file, mesh_file)
        outputs = job.Outputs.choose(output_path, path, load_case, overwrite=overwrite)
        one, by_set = _materials(material, materials)
        all_supports = [*(supports or []), *shorthand.fixed(fixed_node_set)]
        all_loads = [*(loads or []), *shorthand.forced(load_node_set, load_force_n)]
        if job.is_cad(path):
            part = meshed.mesh_cad(path, ctx, one, by_set, element_size_mm)
        else:
            source = job.open_deck(path, ctx)
            if source.has_step:
                _refuse_beside_deck(material, materials, all_supports, all_loads)
                return deck_run.run_complete_deck(source, load_case, analysis_type, outputs, picture, ctx)
            part = meshed.mesh_from_deck(source, one, by_set, mechanical=analysis_type != "thermal")
            part.warnings.extend(_size_ignored(element_size_mm))
        if analysis_type == "thermal":
            part.warnings.extend(["supports play no part in a thermal analysis"] if all_supports else [])
            return thermal.as_fea(load_case, all_loads, picture, outputs, part, ctx)
        request = structural.StructuralRequest(
            path, load_case, analysis_type, all_supports, all_loads, num_modes, mesh_convergence, picture, outputs,
            one, by_set,
        )  # fmt: skip
        return structural.run_structural(request, part, ctx)

    @tool(
        effect=Effect.PRODUCE,
        capability="thermal_analysis",
        title="Run thermal analysis",
        idempotent=True,
        timeout_seconds=1800.0,
        max_memory_mb=4096,
        max_cpu_seconds=3600,
        max_disk_mb=2048,
        search_hint="heat, temperature, cooling of a part",
    )
    def run_thermal(
        self,
        ctx: ToolContext,
        step_file: InputPath | None = None,
        mesh_file: InputPath | None = None,
        material: Material | None = None,
        materials: dict[str, Material] | None = None,
        loads: list[HeatLoad] | None = None,
        heat_source_node_set: str | None = None,
        power_dissipation_w: float | None = None,
        sink_node_set: str | None = None,
        sink_temp_c: float | None = None,
        analysis_mode: Literal["steady_state", "transient"] = "steady_state",
        duration_seconds: Positive | None = None,
        time_step_seconds: Positive | None = None,
        initial_temperature_c: float = 20.0,
        element_size_mm: Positive | None = None,
        boundary_conditions: dict[str, Any] | None = None,
        picture: bool = False,
        output_path: OutputPath | None = None,
        overwrite: bool = False,
    ) -> Answer[ThermalAnswer]:
        """Compute temperatures in a part by heat conduction with CalculiX, steady or over time.

        Takes a STEP part or an .inp mesh; a deck with its own *STEP belongs to run_fea. Checks heat in against heat
        out.

        Args:
            step_file: the part.
            mesh_file: .inp mesh with node sets or surfaces.
            material: such as steel-316, or numbers: conductivity; for a transient density and specific heat too.
            materials: by solid or element set.
            loads: such as [{"face": "top", "power_w": 5}, {"face": "bottom", "temperature_c": 20}].
            heat_source_node_set: takes power_dissipation_w.
            power_dissipation_w: in all.
            sink_node_set: held at sink_temp_c.
            sink_temp_c: of the sink.
            analysis_mode: steady state, or over time.
            duration_seconds: of a transient.
            time_step_seconds: default duration / 50.
            initial_temperature_c: of a transient.
            element_size_mm: of a STEP part.
            boundary_conditions: older form of loads: {"top": {"temperature_c": 20}}.
            picture: draw the temperatures as PNG.
            output_path: .frd file; deck and picture get the same name.
            overwrite: replace existing result files.
        """
        from metaforge.adapters.calculix import job, meshed, thermal

        ctx, path = job.ever_onward(ctx), job.input_path(step_file, mesh_file)
        one, by_set = _materials(material, materials)
        all_loads = [
            *(loads or []),
            *shorthand.heated(heat_source_node_set, power_dissipation_w),
            *shorthand.sunk(sink_node_set, sink_temp_c),
        ]
        if job.is_cad(path):
            part = meshed.mesh_cad(path, ctx, one, by_set, element_size_mm)
        else:
            source = job.open_deck(path, ctx)
            if source.has_step:
                raise InvalidArguments(
                    f"{path} is a complete deck with its own *STEP: use calculix.run_fea, analysis_type thermal",
                    fields={"mesh_file": "an .inp mesh without *STEP"},
                )
            part = meshed.mesh_from_deck(source, one, by_set, mechanical=False)
            part.warnings.extend(_size_ignored(element_size_mm))
        if boundary_conditions is not None:
            from metaforge.adapters.calculix.heat_conditions import read_conditions

            all_loads += read_conditions(boundary_conditions, part.mesh.node_sets)
        request = thermal.ThermalRequest(
            all_loads, analysis_mode, duration_seconds, time_step_seconds, initial_temperature_c, picture,
            job.Outputs.choose(output_path, path, analysis_mode, overwrite=overwrite),
        )  # fmt: skip
        return thermal.run_heat(request, part, ctx)

    @tool(
        effect=Effect.READ,
        capability="mesh_validation",
        title="Validate mesh",
        timeout_seconds=120.0,
        max_memory_mb=4096,
        search_hint="mesh quality, aspect ratio, inverted elements",
    )
    def validate_mesh(
        self, ctx: ToolContext, mesh_file: InputPath, max_aspect_ratio: Annotated[float, Field(gt=1)] = 10.0
    ) -> Answer[MeshVerdict]:
        """Check an .inp mesh: element types, aspect ratio, Jacobians, duplicate and unused nodes, separate bodies.

        Args:
            mesh_file: .inp mesh or deck.
            max_aspect_ratio: above this an element is an issue; 1 is ideal.
        """
        from metaforge.adapters.calculix import job, mesh_report

        return mesh_report.report_mesh(job.open_deck(mesh_file, ctx), max_aspect_ratio)

    @tool(
        effect=Effect.READ,
        capability="result_extraction",
        title="Extract FEA results",
        timeout_seconds=120.0,
        max_memory_mb=4096,
        search_hint="read an .frd result file",
    )
    def extract_results(
        self, ctx: ToolContext, frd_path: InputPath, include_node_data: bool = False
    ) -> Answer[ExtractedResults]:
        """Summarise a CalculiX .frd file: stress, displacement, temperature, and whether the peak is suspicious.

        Args:
            frd_path: .frd file.
            include_node_data: also values per node, the highest 1000 first.
        """
        from metaforge.adapters.calculix.extract import summarise
        from metaforge.formats.frd import read_frd

        return summarise(read_frd(ctx.input_file(frd_path).read_bytes()), frd_path, include_node_data)


def _materials(
    material: Material | None, materials: dict[str, Material] | None
) -> tuple[Resolved | None, dict[str, Resolved]]:
    from metaforge.adapters.calculix.meshed import resolve_material

    by_set = {name: made for name, choice in (materials or {}).items() if (made := resolve_material(choice))}
    return resolve_material(material), by_set


def _size_ignored(element_size_mm: float | None) -> list[str]:
    if element_size_mm is None:
        return []
    return [f"element_size_mm {element_size_mm:g} is not used: a mesh file keeps its own elements"]


def _refuse_beside_deck(*given: object) -> None:
    if any(given):
        raise InvalidArguments(
            "The deck has its own *STEP: material, supports and loads are already in it",
            fields={"mesh_file": "a mesh without *STEP, or leave out material, supports and loads"},
        )
