"""The KiCad adapter. Nothing heavy is imported until a tool runs."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from metaforge import __version__
from metaforge.adapters.kicad.answers import (
    BomAnswer,
    DrcAnswer,
    ErcAnswer,
    FabricationAnswer,
    GeneratedSchematic,
    NetlistAnswer,
    PinMapping,
    RenderAnswer,
    RoutedBoard,
)
from metaforge.adapters.kicad.wanted import SchematicPart
from metaforge.tools.context import Answer, ToolContext
from metaforge.tools.effect import Effect
from metaforge.tools.manifest import Need
from metaforge.tools.paths import InputPath, OutputFolder, OutputPath
from metaforge.tools.server import McpToolServer
from metaforge.tools.tool import tool

Severity = Literal["all", "error", "warning"]
PICTURES = (Need("module", "pypdfium2", extra="kicad"), Need("module", "PIL", extra="kicad"))
Most = Annotated[int, Field(ge=0, le=1000)]


class KicadServer(McpToolServer):
    """Schematics and boards with KiCad 9."""

    needs: ClassVar[tuple[Need, ...]] = (
        Need(
            "program",
            "kicad-cli",
            apt="kicad kicad-symbols kicad-footprints",
            minimum="9.0",
            backports_of="bookworm",
        ),
    )

    def __init__(self) -> None:
        super().__init__("kicad", __version__)

    def warm_up(self) -> None:
        """Import what reads reports and files, and let KiCad make its settings folder."""
        from metaforge.adapters.kicad.warm import warm_up

        warm_up()

    @tool(
        effect=Effect.READ, capability="erc_check", title="Check schematic (ERC)", timeout_seconds=300,
        search_hint="check a schematic, electrical rules",
    )  # fmt: skip
    def run_erc(
        self,
        ctx: ToolContext,
        schematic_file: InputPath,
        severity_filter: Severity = "all",
        max_violations: Most = 50,
    ) -> Answer[ErcAnswer]:
        """Check a schematic and all its sheets against KiCad's electrical rules; says what blocks and where.

        A missing, damaged or self-including sheet is an error. What the project accepts is told apart.

        Args:
            schematic_file: the root .kicad_sch.
            severity_filter: which violations are listed; the verdict counts all.
            max_violations: listed at most, blocking ones first.
        """
        from metaforge.adapters.kicad.erc import run_erc

        return run_erc(schematic_file, severity_filter, max_violations, ctx)

    @tool(
        effect=Effect.READ, capability="drc_check", title="Check board (DRC)", timeout_seconds=600,
        max_memory_mb=3072, max_cpu_seconds=1200, search_hint="check a PCB, design rules, shorts, clearance",
    )  # fmt: skip
    def run_drc(
        self,
        ctx: ToolContext,
        pcb_file: InputPath,
        severity_filter: Severity = "all",
        rule_set: InputPath | None = None,
        max_violations: Most = 50,
    ) -> Answer[DrcAnswer]:
        """Check a board against its design rules and its schematic; says what blocks and where.

        Says which project and rules files were really used; rules that KiCad would pass over in silence are an error.

        Args:
            pcb_file: the .kicad_pcb.
            severity_filter: which violations are listed; the verdict counts all.
            rule_set: .kicad_dru to use instead of the board's own.
            max_violations: listed at most, blocking ones first.
        """
        from metaforge.adapters.kicad.drc import run_drc

        return run_drc(pcb_file, rule_set, severity_filter, max_violations, ctx)

    @tool(
        effect=Effect.PRODUCE, capability="bom_export", title="Export bill of materials", idempotent=True,
        timeout_seconds=300, search_hint="bill of materials, parts list, BOM",
    )  # fmt: skip
    def export_bom(
        self,
        ctx: ToolContext,
        schematic_file: InputPath,
        output_format: Literal["csv", "xml", "json"] = "csv",
        group_by: Literal["value_footprint", "value", "footprint", "reference"] = "value_footprint",
        fields: list[Annotated[str, Field(pattern=r"^[^,\"]+$")]] | None = None,
        exclude_dnp: bool = False,
        output_path: OutputPath | None = None,
        overwrite: bool = False,
    ) -> Answer[BomAnswer]:
        """Write a schematic's parts, grouped as asked; parts that the schematic excludes are left out.

        Args:
            schematic_file: the root .kicad_sch.
            output_format: of the file; xml is KiCad's own for BOM scripts, one part each.
            group_by: which parts share a line; reference: none.
            fields: more symbol fields, such as MPN.
            exclude_dnp: leave out parts marked Do Not Populate.
            output_path: default kicad/NAME-bom.FORMAT.
            overwrite: replace an existing file.
        """
        from metaforge.adapters.kicad.bom import export_bom

        return export_bom(schematic_file, output_format, group_by, fields or [], exclude_dnp, output_path, ctx)

    @tool(
        effect=Effect.PRODUCE, capability="netlist_export", title="Export netlist", idempotent=True,
        timeout_seconds=300, search_hint="netlist of a schematic, SPICE netlist",
    )  # fmt: skip
    def export_netlist(
        self,
        ctx: ToolContext,
        schematic_file: InputPath,
        output_format: Literal["kicad", "spice", "cadstar"] = "kicad",
        output_path: OutputPath | None = None,
        overwrite: bool = False,
    ) -> Answer[NetlistAnswer]:
        """Write a schematic's netlist; spice for spice.run_simulation, parts without a model are named.

        Args:
            schematic_file: the root .kicad_sch.
            output_format: of the file.
            output_path: default kicad/NAME.net, .cir or .frp.
            overwrite: replace an existing file.
        """
        from metaforge.adapters.kicad.netlist import export_netlist

        return export_netlist(schematic_file, output_format, output_path, ctx)

    @tool(
        effect=Effect.READ, capability="pin_mapping", title="Get pin mapping", timeout_seconds=300,
        search_hint="which net is each pin on, pinout",
    )  # fmt: skip
    def get_pin_mapping(
        self, ctx: ToolContext, schematic_file: InputPath, component_filter: str = ""
    ) -> Answer[PinMapping]:
        """Tell the net of every pin of a schematic's parts.

        Args:
            schematic_file: the root .kicad_sch.
            component_filter: a reference or pattern, such as U1 or J*.
        """
        from metaforge.adapters.kicad.netlist import get_pin_mapping

        return get_pin_mapping(schematic_file, component_filter, ctx)

    @tool(
        effect=Effect.PRODUCE, capability="gerber_export", title="Export fabrication files", idempotent=True,
        timeout_seconds=600, max_memory_mb=3072, max_cpu_seconds=1200,
        search_hint="Gerber, drill, pick and place, board STEP, manufacturing files",
    )  # fmt: skip
    def export_gerber(
        self,
        ctx: ToolContext,
        pcb_file: InputPath,
        output_dir: OutputFolder | None = None,
        layers: list[str] | None = None,
        drill: bool = True,
        positions: bool = False,
        step: bool = False,
        overwrite: bool = False,
    ) -> Answer[FabricationAnswer]:
        """Write a board's Gerbers with job file and drill, on request part positions and a STEP solid.

        Args:
            pcb_file: the .kicad_pcb.
            output_dir: default kicad/NAME-fabrication.
            layers: such as F.Cu, F.Mask, Edge.Cuts; default all of the board.
            drill: Excellon file in mm.
            positions: CSV for pick and place, mm.
            step: the board as a solid.
            overwrite: replace existing files.
        """
        from metaforge.adapters.kicad.fabrication import export_gerber

        return export_gerber(pcb_file, output_dir, layers, drill, positions, step, ctx)

    @tool(
        effect=Effect.PRODUCE, capability="rendering", title="Render board or schematic", idempotent=True,
        timeout_seconds=300, max_memory_mb=3072, max_cpu_seconds=600, needs=PICTURES,
        search_hint="picture of a board, schematic, layout",
    )  # fmt: skip
    def render(
        self,
        ctx: ToolContext,
        input_file: InputPath,
        view: Literal["layout", "top", "bottom"] = "layout",
        page: Annotated[int, Field(ge=1, le=500)] = 1,
        marks_mm: list[list[float]] | None = None,
        output_path: OutputPath | None = None,
        overwrite: bool = False,
    ) -> Answer[RenderAnswer]:
        """Draw a board or a page of a schematic as PNG, on request with numbered rings at places.

        Args:
            input_file: .kicad_pcb or .kicad_sch.
            view: of a board: copper layers seen through, or the solid from one side.
            page: of a schematic.
            marks_mm: places [x, y], such as those of violations; not on the solid.
            output_path: default kicad/NAME-VIEW.png.
            overwrite: replace an existing file.
        """
        from metaforge.adapters.kicad.render import Request, render

        return render(Request(input_file, view, page, marks_mm or [], output_path), ctx)

    @tool(
        effect=Effect.PRODUCE, capability="schematic_generation", title="Generate schematic", idempotent=True,
        timeout_seconds=300, phase=2, search_hint="draw a schematic from a parts list or netlist",
    )  # fmt: skip
    def generate_schematic(
        self,
        ctx: ToolContext,
        components: list[SchematicPart] | None = None,
        nets: dict[str, list[str]] | None = None,
        netlist_path: InputPath | None = None,
        symbol_files: list[InputPath] | None = None,
        title: str = "",
        output_path: OutputPath | None = None,
        overwrite: bool = False,
    ) -> Answer[GeneratedSchematic]:
        """Draw a schematic of parts and nets, or of a KiCad netlist; KiCad reads it back and checks it.

        Nets named as a power symbol (GND, +5V, VCC) are drawn with it and flagged as supplied.

        Args:
            components: the parts.
            nets: name to pins, by number or name: R1.1, U1.VCC.
            netlist_path: a KiCad netlist instead of components and nets.
            symbol_files: more .kicad_sym libraries, named by their files.
            title: for the title block.
            output_path: default kicad/schematic.kicad_sch.
            overwrite: replace an existing file.
        """
        from metaforge.adapters.kicad.generation import generate_schematic

        return generate_schematic(components, nets, netlist_path, symbol_files or [], title, output_path, ctx)

    @tool(
        effect=Effect.PRODUCE, capability="pcb_routing", title="Route board", idempotent=True, timeout_seconds=900,
        max_memory_mb=3072, max_cpu_seconds=1800, phase=2, needs=(Need("module", "freeroute", extra="routing"),),
        search_hint="autoroute a PCB, route tracks",
    )  # fmt: skip
    def auto_route(
        self,
        ctx: ToolContext,
        pcb_file: InputPath,
        remove_tracks: bool = False,
        output_path: OutputPath | None = None,
        overwrite: bool = False,
    ) -> Answer[RoutedBoard]:
        """Route a copy of a board; what would break its rules is taken back and counted as unrouted.

        Small boards are routed whole, dense ones in part.

        Args:
            pcb_file: the .kicad_pcb, parts placed.
            remove_tracks: route anew without the tracks that it has.
            output_path: default kicad/NAME-routed.kicad_pcb.
            overwrite: replace an existing file.
        """
        from metaforge.adapters.kicad.routing import auto_route

        return auto_route(pcb_file, remove_tracks, output_path, ctx)
