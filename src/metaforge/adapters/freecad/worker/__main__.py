"""Start the worker. Run by FreeCAD's Python as a file: this package is not installed there."""

import sys
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

NAME = "freecad_worker"


def load_package() -> None:
    """Make this folder importable as a package of its own, and nothing beside it."""
    here = Path(__file__).resolve().parent
    spec = spec_from_file_location(NAME, here / "__init__.py", submodule_search_locations=[str(here)])
    assert spec is not None
    assert spec.loader is not None
    package = module_from_spec(spec)
    sys.modules[NAME] = package
    spec.loader.exec_module(package)


load_package()
sys.exit(import_module(f"{NAME}.serving").main())
