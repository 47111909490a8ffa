"""Where FreeCAD lives, and the few things that releases name differently. All else runs on 0.20 and 1.0 alike."""

import sys
from pathlib import Path
from typing import Any

FOLDERS = ("lib/freecad/lib", "lib/freecad-python3/lib", "lib/freecad/Mod")
"""Where Debian and Fedora keep FreeCAD's modules, below the prefix of their Python."""
BUNDLED = ("lib", "Mod")
"""Where conda and AppImages keep them."""


def load() -> Any:
    """Import FreeCAD and the modules the worker uses, and return FreeCAD."""
    for folder in reversed(_folders(Path(sys.prefix))):
        if folder not in sys.path:
            sys.path.insert(0, folder)
    import FreeCAD  # noqa: I001 - FreeCAD must come first: it makes its modules importable
    import Part  # noqa: F401
    import Sketcher  # noqa: F401
    import PartDesign  # noqa: F401
    import Import  # noqa: F401

    return FreeCAD


def _folders(prefix: Path) -> list[str]:
    # All of a system's lib would be importable with it: only where FreeCAD itself lies there.
    bundled = BUNDLED if (prefix / "lib" / "FreeCAD.so").exists() else ()
    return [str(prefix / each) for each in (*FOLDERS, *bundled)]


def version() -> str:
    """Return the release, such as `0.20.2`."""
    import FreeCAD

    told = FreeCAD.Version()
    # 0.20 tells major, minor.patch apart; 1.0 has a suffix in the fourth place.
    return ".".join(part for part in told[:3] if part and part[0].isdigit())


def attach(sketch: Any, plane: Any, offset_mm: float) -> None:
    """Put a sketch on an origin plane; 0.20 calls the property Support, 1.0 AttachmentSupport."""
    import FreeCAD

    name = "AttachmentSupport" if "AttachmentSupport" in sketch.PropertiesList else "Support"
    setattr(sketch, name, [(plane, "")])
    sketch.MapMode = "FlatFace"
    sketch.AttachmentOffset = FreeCAD.Placement(FreeCAD.Vector(0, 0, offset_mm), FreeCAD.Rotation())


def set_midplane(feature: Any, midplane: bool) -> None:
    """Extrude to both sides; releases after 1.0 call it SideType."""
    if "Midplane" in feature.PropertiesList:
        feature.Midplane = midplane
    elif midplane:
        feature.SideType = "Symmetric"


def add_variables(document: Any, name: str) -> Any:
    """Return a new object that holds named numbers: 1.0 has VarSet, 0.20 takes a plain scripted object."""
    try:
        return document.addObject("App::VarSet", name)
    except Exception:  # noqa: BLE001 - FreeCAD raises its own base error for a type it does not know
        return document.addObject("App::FeaturePython", name)


def compound(shapes: list[Any]) -> Any:
    """Return shapes as one; makeCompound ends the process in 1.0.0, whatever it is given."""
    import Part

    return Part.Compound(shapes)


def status_of(thing: Any) -> str:
    """Return what FreeCAD says is wrong with an object, or an empty string."""
    if not {"Invalid", "Error"} & set(thing.State):
        return ""
    told = thing.getStatusString()
    return told if told not in ("", "Valid") else "it could not be computed"
