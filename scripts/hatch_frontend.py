"""Bundle the dashboard's libraries into a wheel; where that fails, say so and build the wheel without them."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

BUILD = Path("src") / "metaforge" / "web" / "frontend" / "build.py"


class FrontendHook(BuildHookInterface[Any]):
    """Runs before a wheel is packed. An editable install has none: `make web` builds into the checkout."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build, unless what is there was made of the same sources."""
        if version == "editable":
            return
        frontend = _load(Path(self.root) / BUILD)
        if frontend.is_built():
            return
        try:
            frontend.build()
        except frontend.NotBuilt as fault:
            self.app.display_warning(f"The dashboard will have no 3-D view: {fault}")


def _load(path: Path) -> ModuleType:
    """Load a file of the package that is about to be built."""
    spec = importlib.util.spec_from_file_location("metaforge_frontend_build", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
