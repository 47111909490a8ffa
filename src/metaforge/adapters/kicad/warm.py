"""What a worker does before its first call."""

import metaforge.adapters.kicad.drc
import metaforge.adapters.kicad.erc  # noqa: F401
from metaforge.adapters.kicad.program import kicad
from metaforge.core.errors import ToolError


def warm_up() -> None:
    """Find kicad-cli and learn its version; where it is missing the first call says so."""
    try:
        kicad()
    except ToolError:
        return
