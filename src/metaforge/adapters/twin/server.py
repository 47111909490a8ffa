"""`twin.*`: the design record as tools."""

from metaforge import __version__
from metaforge.adapters.twin.decisions import Decisions
from metaforge.adapters.twin.evidence import EvidenceTools
from metaforge.adapters.twin.geometry import Geometry
from metaforge.adapters.twin.promotion import Promotions
from metaforge.adapters.twin.querying import Querying
from metaforge.adapters.twin.reading import Reading
from metaforge.adapters.twin.requirements import Requirements
from metaforge.adapters.twin.tracing import Tracing
from metaforge.tools.server import McpToolServer
from metaforge.twin.services import TwinServices


class TwinServer(McpToolServer):
    """Runs inside the server; each group of tools is a module beside this one."""

    in_process = True

    def __init__(self, services: TwinServices | None = None) -> None:
        groups = (Reading, Requirements, Decisions, EvidenceTools, Geometry, Promotions, Tracing, Querying)
        super().__init__("twin", __version__, groups=[group(services) for group in groups])
