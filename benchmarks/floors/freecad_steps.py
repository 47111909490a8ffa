"""FreeCAD alone: reads `NAME` lines, does that step on a plate of holes, measures it, and prints milliseconds.

Run by the system's Python. Each step is told the time of the operation with the measurements that an answer holds:
volume, area, box, counts, validity.
"""

import sys
import time

sys.path[:0] = ["/usr/lib/freecad/lib", "/usr/lib/freecad-python3/lib", "/usr/lib/freecad/Mod"]

import FreeCAD as App  # noqa: E402 - found in the folders above
import Import  # noqa: E402
import Part  # noqa: E402
import PartDesign  # noqa: E402, F401
import Sketcher  # noqa: E402

HOLES = 8


def measured(shape):
    box = shape.BoundBox
    solids = shape.Solids
    return (
        sum(s.Volume for s in solids), shape.Area, len(solids), len(shape.Shells), len(shape.Faces), len(shape.Edges),
        shape.isValid(), box.XMin, box.XMax,
    )  # fmt: skip


def sketch(doc, body):
    made = body.newObject("Sketcher::SketchObject", "Sketch")
    setattr(made, "AttachmentSupport" if "AttachmentSupport" in made.PropertiesList else "Support",
            [(body.Origin.OriginFeatures[3], "")])  # fmt: skip
    made.MapMode = "FlatFace"
    corners = [(0, 0), (100, 0), (100, 80), (0, 80)]
    for start, end in zip(corners, [*corners[1:], corners[0]], strict=True):
        made.addGeometry(Part.LineSegment(App.Vector(*start, 0), App.Vector(*end, 0)), False)
    for side in range(4):
        made.addConstraint(Sketcher.Constraint("Coincident", side, 2, (side + 1) % 4, 1))
    for column in range(HOLES):
        for row in range(HOLES):
            centre = App.Vector(10 + 11.0 * column, 8 + 9.0 * row, 0)
            made.addGeometry(Part.Circle(centre, App.Vector(0, 0, 1), 2), False)
    doc.recompute()
    made.solve()
    return made


def main():
    doc = body = pad = None
    for line in sys.stdin:
        name = line.strip()
        started = time.perf_counter()
        if name == "new":
            if doc is not None:
                App.closeDocument(doc.Name)
            doc = App.newDocument("Plate")
            doc.UndoMode = 1
            body = doc.addObject("PartDesign::Body", "Body")
            profile = sketch(doc, body)
        elif name == "pad":
            pad = body.newObject("PartDesign::Pad", "Pad")
            pad.Profile, pad.Length = profile, 10
            doc.recompute()
            measured(body.Shape)
        elif name == "fillet":
            made = body.newObject("PartDesign::Fillet", "Fillet")
            box = pad.Shape.BoundBox
            top = [f"Edge{n}" for n, e in enumerate(pad.Shape.Edges, 1) if abs(e.BoundBox.ZMin - box.ZMax) < 1e-6]
            made.Base, made.Radius = (pad, top), 1
            doc.recompute()
            measured(body.Shape)
        elif name == "boolean":
            ball = doc.addObject("Part::Sphere", "Ball")
            ball.Radius = 15
            cut = doc.addObject("Part::Cut", "Cut")
            cut.Base, cut.Tool = body, ball
            doc.recompute()
            measured(cut.Shape)
        elif name == "export":
            Import.export([cut], "/dev/shm/metaforge-floor.step")
            again = Part.Shape()
            again.read("/dev/shm/metaforge-floor.step")
            measured(again)
        print((time.perf_counter() - started) * 1000, flush=True)


main()
