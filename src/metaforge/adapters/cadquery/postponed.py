"""Import CadQuery without what a part does not need: VTK, casadi, nlopt, numpy and the DXF library.

CadQuery imports them by name at its top and uses them in a few functions: exports of other formats, the solvers of
assemblies and sketches. They are 350 shared libraries, and as slow to load as the kernel itself. Here those names
become stand-ins while CadQuery is imported; a stand-in fetches what it stands for when it is first used.
"""

import importlib
import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

POSTPONED = (
    "vtk", "vtkmodules.vtkCommonDataModel", "vtkmodules.vtkFiltersCore", "vtkmodules.vtkFiltersExtraction",
    "vtkmodules.vtkIOExport", "vtkmodules.vtkIOXML", "vtkmodules.vtkRenderingCore",
    "OCP.IVtkOCC", "OCP.IVtkVTK", "casadi", "nlopt", "numpy", "numpy.linalg", "numpy.typing",
    "cadquery.occ_impl.exporters.dxf", "cadquery.occ_impl.exporters.vtk", "cadquery.occ_impl.importers.dxf",
)  # fmt: skip
"""What is not loaded with CadQuery."""
_CONSTANTS = {"numpy": {"inf": math.inf}}
"""Values that are calculated with, which no stand-in can be."""


def import_cadquery() -> ModuleType:
    """Import CadQuery, and what `POSTPONED` names only when it is used.

    A release of CadQuery that uses one of them while it is imported is imported with all of them.
    """
    if "cadquery" not in sys.modules:
        try:
            with _standing_in():
                return importlib.import_module("cadquery")
        except (ImportError, AttributeError, TypeError):
            for name in [name for name in sys.modules if name.partition(".")[0] == "cadquery"]:
                del sys.modules[name]
    return importlib.import_module("cadquery")


@contextmanager
def _standing_in() -> Iterator[None]:
    stand_ins = {name: _Module(name) for name in POSTPONED if name not in sys.modules}
    sys.modules.update(stand_ins)
    try:
        yield
    finally:
        for name, module in stand_ins.items():
            if sys.modules.get(name) is module:
                del sys.modules[name]
            # A module is an attribute of its package, as if it had been imported.
            package, _, leaf = name.rpartition(".")
            if package.startswith("cadquery") and package in sys.modules:
                vars(sys.modules[package]).setdefault(leaf, module)


class _Module(ModuleType):
    """Stands for a module: gives stand-ins while it is in `sys.modules`, and the module's own names afterwards."""

    def __getattr__(self, name: str) -> Any:
        module = self.__name__
        if name in _CONSTANTS.get(module, ()):
            return _CONSTANTS[module][name]
        if name.startswith("__"):
            raise AttributeError(f"module {module} is not loaded yet and has no {name}")
        if sys.modules.get(module) is self:
            return _Name(module, name)
        return getattr(importlib.import_module(module), name)


class _Name:
    """Stands for one name of a module: a class or a function, in a call, an annotation or an `isinstance`."""

    def __init__(self, module: str, name: str) -> None:
        self._module = module
        self._name = name

    def _real(self) -> Any:
        if isinstance(sys.modules.get(self._module), _Module):
            raise TypeError(f"{self!r} is used before it can be loaded")
        return getattr(importlib.import_module(self._module), self._name)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self._real()(*arguments, **named)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"{self!r} has no {name}")
        return getattr(self._real(), name)

    def __getitem__(self, key: Any) -> Any:
        # While CadQuery is imported only annotations do this, and nobody evaluates them.
        return self if isinstance(sys.modules.get(self._module), _Module) else self._real()[key]

    def __instancecheck__(self, thing: object) -> bool:
        return isinstance(thing, self._real())

    def __subclasscheck__(self, kind: type) -> bool:
        return issubclass(kind, self._real())

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[Any, ...]:
        return (self._real(),)

    def __repr__(self) -> str:
        return f"{self._module}.{self._name}"
