"""Element types that CalculiX solves badly or wrongly, without a word of its own."""

from collections.abc import Iterator

import numpy as np

from metaforge.core.errors import ToolError
from metaforge.engineering.boundary import boundary_faces
from metaforge.engineering.mesh import Ids, Mesh
from metaforge.engineering.mesh_quality import Quality

_REDUCED = frozenset({"C3D20R", "C3D20RI", "C3D8R"})
_OPPOSITE_FACES = ((1, 2), (3, 5), (4, 6))

TYPE_TRAPS = {
    "B31": (
        "refuse",
        "two-node beams (B31) are wrong in CalculiX: a cantilever bends 80 times too far, without a warning",
        "use B32R, or solid elements",
    ),
    "B31R": (
        "refuse",
        "two-node beams (B31R) are wrong in CalculiX: a cantilever bends 80 times too far, without a warning",
        "use B32R, or solid elements",
    ),
    "C3D4": ("warn", "linear tetrahedra (C3D4) are far too stiff: stresses can be 70 % too low", "use C3D10"),
    "C3D8": (
        "warn",
        "fully integrated bricks (C3D8) are too stiff in bending: 12 % with two through the thickness",
        "use C3D8I or C3D20R",
    ),
    "C3D8R": (
        "warn",
        "reduced bricks (C3D8R) are too soft in bending: 32 % with two through the thickness",
        "use C3D8I or C3D20R",
    ),
    "S3": ("warn", "three-node shells (S3) become linear wedges here and are too stiff in bending", "use S6 or S8R"),
    "CPS3": ("warn", "three-node plane elements (CPS3) are too stiff", "use CPS6 or CPS8R"),
    "CPE3": ("warn", "three-node plane elements (CPE3) are too stiff", "use CPE6 or CPE8R"),
}


def refuse_inverted(quality: Quality) -> None:
    """Raise when an element is inside out where the solver integrates.

    Raises:
        ToolError: names the worst element and its centroid.
    """
    rows = np.flatnonzero(quality.refused)
    if not len(rows):
        return
    row = int(rows[quality.scaled_jacobian_ratio[rows].argmin()])
    centre = ", ".join(f"{value:.4g}" for value in quality.centroids_mm[row])
    ids = ", ".join(str(i) for i in quality.element_ids[rows][:8])
    raise ToolError(
        f"{len(rows)} element{'s are' if len(rows) > 1 else ' is'} turned inside out (Jacobian not positive): {ids}"
        + (" ..." if len(rows) > 8 else ""),
        kind="inverted_element",
        where=f"element {quality.element_ids[row]} ({quality.type_names[row]}), centroid [{centre}] mm",
        fix="reverse the node order of the element (its first face must run the other way round), or mesh again",
        elements=[int(i) for i in quality.element_ids[rows][:50]],
    )


def element_warnings(mesh: Mesh, quality: Quality) -> Iterator[str]:
    """Yield a warning for every element type that CalculiX solves badly.

    Raises:
        ToolError: a type, or a shape of it, that it solves wrongly.
    """
    for name, count in quality.types.items():
        if name not in TYPE_TRAPS:
            continue
        verdict, text, fix = TYPE_TRAPS[name]
        if verdict == "refuse":
            raise ToolError(
                f"{count} elements of type {name}: {text}",
                kind="element_type_wrong",
                where=f"*ELEMENT, TYPE={name}",
                fix=fix,
            )
        yield f"{count} elements: {text}; {fix}"
    yield from _incompatible_mode_warnings(quality)
    yield from _zero_energy_warnings(mesh)


def _incompatible_mode_warnings(quality: Quality) -> Iterator[str]:
    """Distorted C3D8I fail the patch test: stresses off by half, without a word."""
    rows = np.flatnonzero((quality.type_names == "C3D8I") & (quality.scaled_jacobian_ratio < 0.95))
    if not len(rows):
        return
    worst = float(quality.scaled_jacobian_ratio[rows].min())
    text = (
        f"{len(rows)} C3D8I elements are not box-shaped (scaled Jacobian down to {worst:.2f}): CalculiX "
        "fails the patch test with them, stresses can be off by 50 %"
    )
    if worst < 0.8:
        raise ToolError(
            text,
            kind="element_type_wrong",
            where=f"element {quality.element_ids[rows[quality.scaled_jacobian_ratio[rows].argmin()]]}",
            fix="use TYPE=C3D8 or, better, C3D20R",
        )
    yield f"{text}; use C3D20R"


def _zero_energy_warnings(mesh: Mesh) -> Iterator[str]:
    """Reduced integration leaves motions without energy, and a brick alone in its cross-section cannot stop them.

    Measured on a cantilever one element thick: C3D20R bends 21 times too far, C3D8R 55 times.

    Raises:
        ToolError: a row of such elements.
    """
    reduced = [block for block in mesh.blocks if block.type in _REDUCED]
    if not reduced:
        return
    alone = np.intersect1d(_alone_in_section(boundary_faces(mesh)), np.concatenate([block.ids for block in reduced]))
    names = ", ".join(sorted({block.type for block in reduced}))
    text = (
        f"{len(alone)} {names} elements stand alone in their cross-section: reduced integration lets them move "
        "without straining, and displacements come out many times too large"
    )
    if len(alone) > 1:
        raise ToolError(
            text,
            kind="element_type_wrong",
            where=f"elements {', '.join(map(str, alone[:6]))}{' ...' if len(alone) > 6 else ''}",
            fix="use TYPE=C3D20 (or C3D8I), or at least two elements through every section",
        )
    if len(alone):
        yield text


def _alone_in_section(skin: Ids) -> Ids:
    """Return hexahedra with two pairs of opposite faces on the skin: nothing beside them in two directions."""
    pairs = np.zeros(len(np.unique(skin[:, 0])), dtype=np.int64)
    ids, rows = np.unique(skin[:, 0], return_inverse=True)
    for first, second in _OPPOSITE_FACES:
        open_sides = np.zeros((len(ids), 2), dtype=np.bool_)
        open_sides[rows[skin[:, 1] == first], 0] = True
        open_sides[rows[skin[:, 1] == second], 1] = True
        pairs += open_sides.all(axis=1)
    return np.asarray(ids[pairs >= 2])
