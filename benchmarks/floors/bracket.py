"""The bracket demo with bare libraries: `bracket.py FOLDER ELEMENT_SIZE_MM`.

CadQuery makes the part and its STEP and GLB files, VTK draws it, gmsh meshes the STEP file with quadratic tetrahedra,
ccx solves, and VTK draws the stresses. No server, no checks, no sandbox. Prints one JSON object.
"""

import json
import math
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

YOUNGS_MODULUS_MPA = 193_000.0
POISSONS_RATIO = 0.27
FORCE_N = (0.0, 0.0, -1000.0)
# gmsh numbers the last two mid-edge nodes of a ten-node tetrahedron the other way round.
TET10_ORDER = (0, 1, 2, 3, 4, 5, 6, 7, 9, 8)
PICTURE_PIXELS = (1024, 768)


def make_part(folder: Path) -> dict[str, Any]:
    import cadquery as cq

    part = cq.Workplane("XY").box(50, 30, 10)
    cq.exporters.export(part, str(folder / "bracket.step"))
    cq.Assembly(part, name="bracket").export(str(folder / "bracket.glb"))
    solid = part.val()
    box = solid.BoundingBox()
    return {
        "volume_mm3": solid.Volume(),
        "surface_area_mm2": solid.Area(),
        "bounding_box_mm": [box.xlen, box.ylen, box.zlen],
        "triangles": solid.tessellate(0.1),
    }


def draw_part(folder: Path, part: dict[str, Any]) -> None:
    from vtkmodules.vtkCommonCore import vtkPoints
    from vtkmodules.vtkCommonDataModel import vtkCellArray, vtkPolyData

    points, cells = vtkPoints(), vtkCellArray()
    vertices, triangles = part.pop("triangles")
    for vertex in vertices:
        points.InsertNextPoint(vertex.x, vertex.y, vertex.z)
    for triangle in triangles:
        cells.InsertNextCell(3, triangle)
    surface = vtkPolyData()
    surface.SetPoints(points)
    surface.SetPolys(cells)
    # Four views on one sheet, as an engineer would want.
    directions = ((0, 0, 1), (0, -1, 0), (1, 0, 0), (1, -1, 1))
    _draw(folder / "bracket.png", [(surface, direction) for direction in directions], None)


def _draw(file: Path, views: list[tuple[Any, tuple[int, int, int]]], scale: tuple[float, float] | None) -> None:
    import vtkmodules.vtkInteractionStyle
    import vtkmodules.vtkRenderingFreeType
    import vtkmodules.vtkRenderingOpenGL2  # noqa: F401 - registers the back ends
    from vtkmodules.vtkIOImage import vtkPNGWriter
    from vtkmodules.vtkRenderingAnnotation import vtkScalarBarActor
    from vtkmodules.vtkRenderingCore import (
        vtkActor,
        vtkPolyDataMapper,
        vtkRenderer,
        vtkRenderWindow,
        vtkWindowToImageFilter,
    )

    window = vtkRenderWindow()
    window.SetOffScreenRendering(1)
    window.SetSize(*PICTURE_PIXELS)
    columns = 2 if len(views) > 1 else 1
    for number, (surface, direction) in enumerate(views):
        mapper = vtkPolyDataMapper()
        mapper.SetInputData(surface)
        if scale:
            mapper.SetScalarRange(*scale)
        actor = vtkActor()
        actor.SetMapper(mapper)
        renderer = vtkRenderer()
        renderer.SetBackground(1, 1, 1)
        row, column = divmod(number, columns)
        renderer.SetViewport(column / columns, row / columns, (column + 1) / columns, (row + 1) / columns)
        renderer.AddActor(actor)
        if scale:
            bar = vtkScalarBarActor()
            bar.SetLookupTable(mapper.GetLookupTable())
            bar.SetTitle("von Mises, MPa")
            renderer.AddViewProp(bar)
        camera = renderer.GetActiveCamera()
        camera.SetPosition(*direction)
        camera.SetViewUp(0, 1, 0) if direction == (0, 0, 1) else camera.SetViewUp(0, 0, 1)
        renderer.ResetCamera()
        window.AddRenderer(renderer)
    window.Render()
    grab = vtkWindowToImageFilter()
    grab.SetInput(window)
    writer = vtkPNGWriter()
    writer.SetFileName(str(file))
    writer.SetInputConnection(grab.GetOutputPort())
    writer.Write()


def make_mesh(folder: Path, size_mm: float) -> dict[str, Any]:
    import gmsh

    gmsh.initialize(interruptible=False)
    gmsh.option.setNumber("General.Terminal", 0)
    gmsh.model.occ.importShapes(str(folder / "bracket.step"))
    gmsh.model.occ.synchronize()
    gmsh.option.setNumber("Mesh.MeshSizeMin", size_mm)
    gmsh.option.setNumber("Mesh.MeshSizeMax", size_mm)
    gmsh.option.setNumber("Mesh.ElementOrder", 2)
    gmsh.model.mesh.generate(3)
    tags, coordinates, _ = gmsh.model.mesh.getNodes()
    nodes = dict(zip(tags.tolist(), coordinates.reshape(-1, 3).tolist(), strict=True))
    kinds, element_tags, element_nodes = gmsh.model.mesh.getElements(3)
    assert kinds.tolist() == [11], "only ten-node tetrahedra"
    elements = dict(zip(element_tags[0].tolist(), element_nodes[0].reshape(-1, 10).tolist(), strict=True))
    surfaces = {}
    for name, z_mm in (("top", 5.0), ("bottom", -5.0)):
        for _, face in gmsh.model.getEntities(2):
            if abs(gmsh.model.occ.getCenterOfMass(2, face)[2] - z_mm) < 1e-6:
                surfaces[name] = gmsh.model.mesh.getElements(2, face)[2][0].reshape(-1, 6).tolist()
    skin = [
        row
        for _, face in gmsh.model.getEntities(2)
        for row in gmsh.model.mesh.getElements(2, face)[2][0].reshape(-1, 6).tolist()
    ]
    gmsh.finalize()
    return {"nodes": nodes, "elements": elements, "surfaces": surfaces, "skin": skin}


def _area_mm2(nodes: dict[int, list[float]], corners: list[int]) -> float:
    a, b, c = (nodes[corner] for corner in corners)
    u, v = [b[i] - a[i] for i in range(3)], [c[i] - a[i] for i in range(3)]
    cross = (u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0])
    return math.hypot(*cross) / 2


def write_deck(folder: Path, mesh: dict[str, Any]) -> None:
    nodes, triangles = mesh["nodes"], mesh["surfaces"]["top"]
    areas = [_area_mm2(nodes, row[:3]) for row in triangles]
    loads: dict[int, float] = {}
    # A uniform traction on a six-node triangle acts on its mid-side nodes alone, a third each.
    for area, row in zip(areas, triangles, strict=True):
        for node in row[3:]:
            loads[node] = loads.get(node, 0.0) + FORCE_N[2] * area / sum(areas) / 3
    lines = ["*NODE, NSET=NALL", *(f"{n}, {x:.9g}, {y:.9g}, {z:.9g}" for n, (x, y, z) in nodes.items())]
    lines.append("*ELEMENT, TYPE=C3D10, ELSET=EALL")
    lines += [f"{tag}, " + ", ".join(str(row[i]) for i in TET10_ORDER) for tag, row in mesh["elements"].items()]
    lines.append("*NSET, NSET=FIXED")
    lines += [str(node) for node in sorted({node for row in mesh["surfaces"]["bottom"] for node in row})]
    lines += ["*MATERIAL, NAME=STEEL", "*ELASTIC", f"{YOUNGS_MODULUS_MPA}, {POISSONS_RATIO}"]
    lines += ["*SOLID SECTION, ELSET=EALL, MATERIAL=STEEL", "*BOUNDARY", "FIXED, 1, 3", "*STEP", "*STATIC", "*CLOAD"]
    lines += [f"{node}, 3, {force:.9g}" for node, force in loads.items()]
    lines += ["*NODE FILE", "U, RF", "*EL FILE", "S", "*END STEP"]
    (folder / "bracket.inp").write_text("\n".join(lines) + "\n")


def read_results(folder: Path) -> dict[str, dict[int, list[float]]]:
    """Read every nodal block of the .frd file: name -> node -> components."""
    blocks: dict[str, dict[int, list[float]]] = {}
    rows: dict[int, list[float]] = {}
    for line in (folder / "bracket.frd").read_text().splitlines():
        if line.startswith(" -4"):
            rows = blocks[line.split()[1]] = {}
        elif line.startswith(" -1") and blocks:
            rows[int(line[3:13])] = [float(line[at : at + 12]) for at in range(13, len(line.rstrip()), 12)]
    return blocks


def von_mises_mpa(stress: list[float]) -> float:
    xx, yy, zz, xy, yz, zx = stress
    shear = xy * xy + yz * yz + zx * zx
    return math.sqrt(((xx - yy) ** 2 + (yy - zz) ** 2 + (zz - xx) ** 2) / 2 + 3 * shear)


def draw_stress(folder: Path, mesh: dict[str, Any], stress_mpa: dict[int, float]) -> None:
    from vtkmodules.vtkCommonCore import vtkFloatArray, vtkPoints
    from vtkmodules.vtkCommonDataModel import vtkCellArray, vtkPolyData

    points, cells, values = vtkPoints(), vtkCellArray(), vtkFloatArray()
    index: dict[int, int] = {}
    for row in mesh["skin"]:
        for node in row[:3]:
            if node not in index:
                index[node] = points.InsertNextPoint(*mesh["nodes"][node])
                values.InsertNextValue(stress_mpa[node])
        cells.InsertNextCell(3, [index[node] for node in row[:3]])
    surface = vtkPolyData()
    surface.SetPoints(points)
    surface.SetPolys(cells)
    surface.GetPointData().SetScalars(values)
    _draw(folder / "stress.png", [(surface, (1, -1, 1))], (0.0, max(stress_mpa.values())))


def main() -> None:
    folder, size_mm = Path(sys.argv[1]), float(sys.argv[2])
    seconds: dict[str, float] = {}
    mark = time.perf_counter()

    def lap(name: str) -> None:
        nonlocal mark
        now = time.perf_counter()
        seconds[name], mark = round(now - mark, 3), now

    part = make_part(folder)
    lap("part")
    draw_part(folder, part)
    lap("part_picture")
    mesh = make_mesh(folder, size_mm)
    lap("mesh")
    write_deck(folder, mesh)
    subprocess.run(
        ["ccx", "bracket"],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        check=True,
        stdout=subprocess.DEVNULL,
    )
    lap("solve")
    results = read_results(folder)
    stress_mpa = {node: von_mises_mpa(row) for node, row in results["STRESS"].items()}
    fixed = {node for row in mesh["surfaces"]["bottom"] for node in row}
    reaction_n = sum(results["FORC"][node][2] for node in fixed)
    lap("read")
    draw_stress(folder, mesh, stress_mpa)
    lap("stress_picture")
    report = {
        "volume_mm3": part["volume_mm3"],
        "elements_count": len(mesh["elements"]),
        "max_von_mises_mpa": max(stress_mpa.values()),
        "reaction_n": reaction_n,
        "seconds": seconds,
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main()
