"""Measure shapes: the guard's numbers, mass properties, faces to put loads on."""

from dataclasses import dataclass
from typing import Any

from OCP.Bnd import Bnd_Box
from OCP.BRepAdaptor import BRepAdaptor_Surface
from OCP.BRepBndLib import BRepBndLib
from OCP.BRepCheck import BRepCheck_Analyzer
from OCP.BRepGProp import BRepGProp
from OCP.gp import gp_Pnt, gp_Vec
from OCP.GProp import GProp_GProps
from OCP.TopAbs import TopAbs_FACE, TopAbs_REVERSED, TopAbs_SHELL, TopAbs_SOLID
from OCP.TopExp import TopExp, TopExp_Explorer
from OCP.TopoDS import TopoDS
from OCP.TopTools import TopTools_IndexedMapOfShape

from metaforge.engineering.solid_guard import Bounds, SolidFacts

Vector = tuple[float, float, float]


@dataclass(frozen=True)
class MassProperties:
    """Of a unit density: mass is volume, and inertia is in mm5 about the centre of mass."""

    volume_mm3: float
    centre_mm: Vector
    inertia_mm5: tuple[Vector, Vector, Vector]
    principal_mm5: Vector


@dataclass(frozen=True)
class FaceFacts:
    """One face: where it is and where it looks."""

    number: int
    kind: str
    area_mm2: float
    centroid_mm: Vector
    normal: Vector | None
    radius_mm: float | None
    bounds_mm: Bounds


def facts(shape: Any) -> SolidFacts:
    """Measure what the guard needs.

    Args:
        shape: a `TopoDS_Shape`; null or empty gives facts without bounds.
    """
    if shape is None or shape.IsNull():
        return SolidFacts(0.0, 0.0, 0, 0, 0, False, None)
    solids = children(shape, TopAbs_SOLID)
    area = GProp_GProps()
    BRepGProp.SurfaceProperties_s(shape, area)
    return SolidFacts(
        volume_mm3=sum(volume(solid) for solid in solids),
        area_mm2=area.Mass(),
        solids_count=len(solids),
        shells_count=count(shape, TopAbs_SHELL),
        faces_count=count(shape, TopAbs_FACE),
        is_valid=bool(BRepCheck_Analyzer(shape).IsValid()),
        bounds_mm=bounds(shape),
    )


def volume(solid: Any) -> float:
    """Return the volume of one solid in mm3."""
    found = GProp_GProps()
    BRepGProp.VolumeProperties_s(solid, found)
    return float(found.Mass())


def bounds(shape: Any) -> Bounds | None:
    """Return the tight bounding box; None when there is no geometry."""
    box = Bnd_Box()
    BRepBndLib.AddOptimal_s(shape, box, False, False)
    if box.IsVoid():
        return None
    xmin, ymin, zmin, xmax, ymax, zmax = (_clean(value) for value in box.Get())
    return (xmin, ymin, zmin, xmax, ymax, zmax)


def children(shape: Any, kind: Any) -> list[Any]:
    """Return every occurrence of a kind of sub-shape, placed."""
    found, explorer = [], TopExp_Explorer(shape, kind)
    while explorer.More():
        found.append(explorer.Current())
        explorer.Next()
    return found


def count(shape: Any, kind: Any) -> int:
    """Count occurrences of a kind of sub-shape."""
    total, explorer = 0, TopExp_Explorer(shape, kind)
    while explorer.More():
        total += 1
        explorer.Next()
    return total


def mass_properties(shape: Any) -> MassProperties:
    """Integrate over the solids of a shape."""
    total = GProp_GProps()
    for solid in children(shape, TopAbs_SOLID):
        one = GProp_GProps()
        BRepGProp.VolumeProperties_s(solid, one)
        total.Add(one)
    centre, matrix = total.CentreOfMass(), total.MatrixOfInertia()
    principal = total.PrincipalProperties().Moments()
    # Products that vanish by symmetry come out as noise, which reads as numbers.
    noise = 1e-12 * max(abs(moment) for moment in principal)
    rows = [_without_noise([matrix.Value(row, column) for column in (1, 2, 3)], noise) for row in (1, 2, 3)]
    return MassProperties(
        volume_mm3=total.Mass(),
        centre_mm=_vector(centre),
        inertia_mm5=(rows[0], rows[1], rows[2]),
        principal_mm5=(float(principal[0]), float(principal[1]), float(principal[2])),
    )


def _without_noise(row: list[float], noise: float) -> Vector:
    x, y, z = (0.0 if abs(value) <= noise else float(value) for value in row)
    return (x, y, z)


def faces(shape: Any) -> list[FaceFacts]:
    """Describe every face once, in the kernel's order: `number` is what a mesher calls it too."""
    found = TopTools_IndexedMapOfShape()
    TopExp.MapShapes_s(shape, TopAbs_FACE, found)
    return [_face(number, TopoDS.Face_s(found.FindKey(number))) for number in range(1, found.Extent() + 1)]


_SIDES = (("+x", "right"), ("+y", "back"), ("+z", "top"), ("-x", "left"), ("-y", "front"), ("-z", "bottom"))


def side_of(face: FaceFacts, whole: SolidFacts) -> str | None:
    """Name the side of a part that a flat outermost face makes, `top (+z)`, as loads are placed by."""
    if face.normal is None or whole.bounds_mm is None:
        return None
    for index, (direction, word) in enumerate(_SIDES):
        axis, sign = index % 3, 1 if index < 3 else -1
        reach = whole.bounds_mm[axis + 3 if sign > 0 else axis]
        if face.normal[axis] * sign > 0.996 and abs(face.centroid_mm[axis] - reach) < 1e-3 * whole.diagonal_mm:
            return f"{word} ({direction})"
    return None


def _face(number: int, face: Any) -> FaceFacts:
    surface = BRepAdaptor_Surface(face)
    kind = str(surface.GetType()).rsplit("_", 1)[-1].lower()
    area = GProp_GProps()
    BRepGProp.SurfaceProperties_s(face, area)
    return FaceFacts(
        number=number,
        kind={"othersurface": "other"}.get(kind, kind),
        area_mm2=area.Mass(),
        centroid_mm=_vector(area.CentreOfMass()),
        normal=_normal(surface, face) if kind == "plane" else None,
        radius_mm=_radius(surface, kind),
        bounds_mm=bounds(face) or (0.0,) * 6,
    )


def _normal(surface: Any, face: Any) -> Vector:
    point, along_u, along_v = gp_Pnt(), gp_Vec(), gp_Vec()
    surface.D1(
        (surface.FirstUParameter() + surface.LastUParameter()) / 2,
        (surface.FirstVParameter() + surface.LastVParameter()) / 2,
        point, along_u, along_v,
    )  # fmt: skip
    normal = along_u.Crossed(along_v).Normalized()
    if face.Orientation() == TopAbs_REVERSED:
        normal.Reverse()
    return _vector(normal)


def _radius(surface: Any, kind: str) -> float | None:
    if kind == "cylinder":
        return float(surface.Cylinder().Radius())
    if kind == "sphere":
        return float(surface.Sphere().Radius())
    return None


def _vector(found: Any) -> Vector:
    return (_clean(found.X()), _clean(found.Y()), _clean(found.Z()))


def _clean(value: float) -> float:
    """Drop the kernel's noise around zero, which reads as a length to a model."""
    return 0.0 if abs(value) < 1e-10 else float(value)
