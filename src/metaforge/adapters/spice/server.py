"""The SPICE adapter: one tool. Nothing heavy is imported until it runs."""

from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from metaforge import __version__
from metaforge.adapters.spice.answers import SimulationAnswer
from metaforge.tools.context import Answer, ToolContext
from metaforge.tools.effect import Effect
from metaforge.tools.manifest import Need
from metaforge.tools.paths import InputPath, OutputPath
from metaforge.tools.server import McpToolServer
from metaforge.tools.tool import tool

Quantity = float | str


class AnalysisParams(BaseModel):
    """Numbers or text: 1meg, 10u. dc: source start stop step; ac: fstart fstop (Hz); transient: stop step (s)."""

    model_config = ConfigDict(extra="forbid")

    source: str | None = None
    start: Quantity | None = None
    stop: Quantity | None = None
    step: Quantity | None = None
    variation: Literal["dec", "oct", "lin"] | None = None
    points: Annotated[int, Field(ge=1)] | None = None
    fstart: Quantity | None = None
    fstop: Quantity | None = None
    max_step: Quantity | None = None
    uic: bool | None = None


class SpiceServer(McpToolServer):
    """Circuit simulation with ngspice."""

    needs: ClassVar[tuple[Need, ...]] = (
        Need("program", "ngspice", apt="ngspice", minimum="36"),
        Need("module", "numpy", extra="spice"),
    )
    http_port: ClassVar[int] = 8104

    def __init__(self) -> None:
        super().__init__("spice", __version__)

    def warm_up(self) -> None:
        """Import numpy and what reads netlists and waveforms."""
        import metaforge.adapters.spice.simulation  # noqa: F401

    @tool(
        effect=Effect.PRODUCE,
        capability="circuit_simulation",
        title="Run circuit simulation",
        idempotent=True,
        timeout_seconds=600.0,
        max_memory_mb=3072,
        max_cpu_seconds=1200,
        max_disk_mb=1024,
        search_hint="simulate a circuit, filter corner, step response, operating point",
    )
    def run_simulation(
        self,
        ctx: ToolContext,
        analysis_type: Literal["op", "dc", "ac", "transient", "noise", "pole_zero", "transfer_function"],
        netlist: str | None = None,
        netlist_path: InputPath | None = None,
        params: AnalysisParams | None = None,
        probes: list[str] | None = None,
        at: list[Quantity] | None = None,
        max_points: Annotated[int, Field(ge=0, le=5000)] = 200,
        picture: bool = False,
        output_path: OutputPath | None = None,
        overwrite: bool = False,
    ) -> Answer[SimulationAnswer]:
        """Simulate a circuit with ngspice and measure it: corners, gain, step, oscillation.

        The netlist is linted first: title line, 1M for 1MEG, floating nodes, voltage loops. Without params its own
        analysis card of that type is run (noise, pole_zero and transfer_function always). .control is refused.

        Args:
            analysis_type: operating point, sweep of a source, frequency response, or over time ...
            netlist: SPICE text; its first line is the title.
            netlist_path: netlist file, such as one of kicad.export_netlist.
            params: of the analysis.
            probes: such as out, v(a,b), i(V1), @q1[ic]; default what the netlist prints, else every node.
            at: points of the sweep (Hz, s, V) to read the probes at.
            max_points: of waveform_data; 0 for none.
            picture: draw the curves as PNG.
            output_path: .raw file; deck and picture get the same name.
            overwrite: replace existing result files.
        """
        from metaforge.adapters.spice.simulation import Request, run_simulation

        given = params.model_dump(exclude_none=True) if params else {}
        request = Request(
            netlist, netlist_path, analysis_type, given, probes or [], list(at or []), max_points, picture,
            output_path, overwrite,
        )  # fmt: skip
        return run_simulation(request, ctx)
