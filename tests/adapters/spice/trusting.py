"""An adapter that hands any netlist to ngspice unread: what the box must hold if everything before it failed."""

from dataclasses import dataclass

from metaforge.adapters.spice.ngspice import Context, simulate
from metaforge.tools.context import Answer, ToolContext
from metaforge.tools.effect import Effect
from metaforge.tools.server import McpToolServer
from metaforge.tools.tool import tool


@dataclass(frozen=True)
class Told:
    """What ngspice said."""

    log: str


class TrustingServer(McpToolServer):
    """Runs netlists as they come."""

    def __init__(self) -> None:
        super().__init__("trusting", "1.0.0")

    @tool(effect=Effect.PRODUCE, capability="test", title="Run", search_hint="test")
    def run(self, ctx: ToolContext, netlist: str) -> Answer[Told]:
        """Run a netlist unread.

        Args:
            netlist: anything.
        """
        done = simulate(netlist, ctx.scratch, Context("op"), timeout_seconds=20, progress=ctx.progress)
        told = (ctx.scratch / "told.txt").read_text() if (ctx.scratch / "told.txt").exists() else ""
        return Answer(Told(done.log + told), "ran")
