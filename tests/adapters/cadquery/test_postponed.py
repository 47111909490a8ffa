"""CadQuery comes up without the libraries that a part does not need, and everything in it works all the same."""

import subprocess
import sys
from pathlib import Path

import pytest

SLOW = ("vtk", "vtkmodules", "casadi", "ezdxf", "nlopt", "numpy")

START = f"""
import sys
from metaforge.adapters.cadquery.warm import warm_up
warm_up()
loaded = sorted({{name.partition(".")[0] for name in sys.modules}} & set({SLOW!r}))
assert not loaded, loaded
import cadquery as cq
box = cq.Workplane("XY").box(10, 20, 30)
"""

USES = {
    "a DXF file is written and read": """
cq.exporters.export(box.section(), "part.dxf")
read = cq.importers.importDXF("part.dxf").wires().toPending().extrude(1)
assert abs(read.val().Volume() - 200) < 1e-6, read.val().Volume()
""",
    "a DXF document is built by hand": """
document = cq.exporters.DxfDocument(doc_units=4)
document.add_layer("one", color=2)
document.add_shape(box.section(), "one")
assert document.document.units == 4
assert isinstance(document, cq.exporters.DxfDocument)
""",
    "a mesh goes to VTK": """
data = box.val().toVtkPolyData(0.1, 0.1, True)
assert data.GetNumberOfCells() >= 12, data.GetNumberOfCells()
cq.exporters.export(box, "part.vtp")
assert "VTKFile" in open("part.vtp").read()
""",
    "an assembly is solved": """
other = cq.Workplane("XY").box(10, 20, 5)
made = cq.Assembly(box, name="a").add(other, name="b").constrain("a@faces@>Z", "b@faces@<Z", "Plane").solve()
top = made.toCompound().BoundingBox()
assert abs(top.zlen - 35) < 1e-4, top.zlen
""",
    "an assembly is exported as scenes": """
made = cq.Assembly(box, name="a", color=cq.Color("red"))
for name in ("part.step", "part.glb", "part.wrl", "part.xml"):
    made.export(name, "VRML" if name.endswith("wrl") else None)
    assert len(open(name, "rb").read()) > 500, name
""",
    "a sketch is solved": """
sketch = (
    cq.Sketch().segment((0, 0), (0, 3.0), "s1").arc((0.0, 3.0), (1.5, 1.5), (0.0, 0.0), "a1")
    .constrain("s1", "Fixed", None).constrain("s1", "a1", "Coincident", None)
    .constrain("a1", "s1", "Coincident", None).constrain("s1", "a1", "Angle", 45).solve().assemble()
)
assert sketch._faces.isValid() and sketch._faces.Area() > 0
""",
    "a hull is drawn": """
sketch = cq.Sketch().arc((0, 0), 1.0, 0.0, 360.0).arc((1, 1.5), 0.5, 0.0, 360.0).segment((0.0, 2), (-1, 3.0)).hull()
assert sketch._faces.isValid() and sketch._faces.Area() > 5
""",
    "the libraries are whole when a script imports them": """
import numpy, vtkmodules.vtkRenderingCore, casadi, ezdxf, nlopt
from cadquery import vis
from cadquery.occ_impl.exporters import dxf
assert numpy.array([1.0]).sum() == 1 and numpy.linalg.norm([3, 4]) == 5
assert isinstance(vtkmodules.vtkRenderingCore.vtkActor(), vis.vtkActor)
assert cq.exporters.dxf.DxfDocument is dxf.DxfDocument and isinstance(dxf.DxfDocument, type)
""",
}


@pytest.mark.parametrize("use", USES)
def test_what_was_postponed_works_at_its_first_use(tmp_path: Path, use: str) -> None:
    command = [sys.executable, "-c", START + USES[use]]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert ran.returncode == 0, ran.stderr[-2000:]


def test_a_release_that_cannot_wait_gets_everything_at_once(tmp_path: Path) -> None:
    (tmp_path / "cadquery").mkdir()
    (tmp_path / "cadquery" / "__init__.py").write_text("import numpy\nHALF = numpy.float64(1) / 2\n")
    code = (
        "from metaforge.adapters.cadquery.postponed import import_cadquery\n"
        "cadquery = import_cadquery()\n"
        "import numpy\n"
        "assert cadquery.HALF == 0.5 and cadquery.numpy is numpy\n"
    )
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{code}"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0, ran.stderr
