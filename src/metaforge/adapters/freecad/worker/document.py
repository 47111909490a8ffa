"""The live document: its objects by id, edits that can be taken back, and shapes that a script pinned."""

import difflib
from typing import Any

from . import seam
from .refusals import Refusal

CONTAINERS = ("App::Part", "Assembly::AssemblyObject")
HIDDEN = ("App::Origin", "App::Line", "App::Plane", "App::Point", "App::LocalCoordinateSystem")


class Document:
    """One FreeCAD document.

    Args:
        name: what a person calls it.
    """

    def __init__(self, name: str) -> None:
        import FreeCAD

        self.app = FreeCAD
        self.doc = FreeCAD.newDocument("Session")
        self.doc.Label = name
        self.doc.UndoMode = 1
        self.pinned: dict[str, Any] = {}
        self._pinned_before: dict[str, Any] = {}
        self.known_facts: dict[str, tuple[Any, dict[str, Any]]] = {}
        self.watch = _Watch(self)
        FreeCAD.addDocumentObserver(self.watch)

    def close(self) -> None:
        """Drop the document."""
        self.app.removeDocumentObserver(self.watch)
        self.app.closeDocument(self.doc.Name)

    # -- edits -------------------------------------------------------------------------------------------------------

    def begin(self, name: str) -> None:
        """Open an edit; the one before can no longer be taken back."""
        self.doc.commitTransaction()
        self.doc.clearUndos()
        self._pinned_before = dict(self.pinned)
        self.doc.openTransaction(name)

    def take_back(self) -> None:
        """Undo everything since `begin`."""
        self.pinned = self._pinned_before
        self.watch.recording = False
        self.doc.abortTransaction()

    def recompute(self) -> None:
        """Compute what changed.

        Raises:
            Refusal: an object that could be computed before cannot any more; the message names it.
        """
        broken = {each.Name for each in self.doc.Objects if seam.status_of(each)}
        self.doc.recompute()
        for each in self.doc.Objects:
            told = seam.status_of(each)
            if told and each.Name not in broken:
                raise Refusal(
                    f"{each.Name} cannot be computed: {told}", "not_computable", where=each.Name, mode="design"
                )

    # -- objects -----------------------------------------------------------------------------------------------------

    def add(self, kind: str, name: str) -> Any:
        """Return a new object; its id is made from the name."""
        made = self.doc.addObject(kind, _identifier(name))
        made.Label = name
        return made

    def find(self, obj_id: str) -> Any:
        """Return an object by id or label.

        Raises:
            Refusal: there is none, with the nearest; or several have the label.
        """
        found = self.doc.getObject(obj_id)
        if found is not None:
            return found
        labelled = self.doc.getObjectsByLabel(obj_id)
        if len(labelled) == 1:
            return labelled[0]
        known = [each.Name for each in self.listed()]
        if labelled:
            names = ", ".join(each.Name for each in labelled)
            raise Refusal(
                f"{len(labelled)} objects are labelled {obj_id}: {names}", "ambiguous_object", "give an obj_id"
            )
        near = difflib.get_close_matches(obj_id, known, n=1, cutoff=0.5)
        there = f"did you mean {near[0]}?" if near else f"there are: {', '.join(known[:20]) or 'none yet'}"
        raise Refusal(f"The session has no object {obj_id!r}; {there}", "no_such_object", "name one of these", obj_id)

    def find_kind(self, obj_id: str, kind: str, what: str) -> Any:
        """Return an object of a kind.

        Raises:
            Refusal: it is of another kind.
        """
        found = self.find(obj_id)
        if not found.isDerivedFrom(kind):
            fit = [each.Name for each in self.listed() if each.isDerivedFrom(kind)]
            fix = f"there are: {', '.join(fit[:20])}" if fit else f"make one first: freecad.create_{what}"
            raise Refusal(f"{obj_id} is a {found.TypeId}, not a {what}", "wrong_kind", fix, obj_id)
        return found

    def body(self, body_id: str) -> Any:
        return self.find_kind(body_id, "PartDesign::Body", "body")

    def sketch_of(self, body: Any, sketch_id: str) -> Any:
        """Return a sketch of a body.

        Raises:
            Refusal: it lies in another body.
        """
        sketch = self.find_kind(sketch_id, "Sketcher::SketchObject", "sketch")
        if sketch not in body.Group:
            raise Refusal(
                f"{sketch_id} does not lie in {body.Name}", "wrong_body", "name a sketch of this body", sketch_id
            )
        return sketch

    def feature_of(self, body: Any, feature_id: str) -> Any:
        """Return a feature of a body that adds or removes material."""
        found = self.find(feature_id)
        if found not in body.Group or not found.isDerivedFrom("PartDesign::Feature"):
            fit = [each.Name for each in body.Group if each.isDerivedFrom("PartDesign::Feature")]
            raise Refusal(
                f"{feature_id} is no feature of {body.Name}", "wrong_kind",
                f"there are: {', '.join(fit) or 'none yet'}", feature_id,
            )  # fmt: skip
        return found

    def body_of(self, thing: Any) -> Any | None:
        """Return the body that an object is, or lies in."""
        if thing.isDerivedFrom("PartDesign::Body"):
            return thing
        return thing.getParentGeoFeatureGroup() if thing.isDerivedFrom("PartDesign::Feature") else None

    def listed(self) -> list[Any]:
        """Return the objects a caller works with: no origins, no axes."""
        return [each for each in self.doc.Objects if each.TypeId not in HIDDEN]

    # -- pins --------------------------------------------------------------------------------------------------------

    def pin(self, thing: Any) -> None:
        """Keep an object's shape as it is now, whatever a recompute would make of it."""
        shape = thing.Shape.copy()
        self.pinned[thing.Name] = shape


class _Watch:
    """Told by FreeCAD what changes."""

    def __init__(self, owner: Document) -> None:
        self._owner = owner
        self.recording = False
        """Whether an assigned shape is a script's wish, to be kept."""

    def slotChangedObject(self, thing: Any, name: str) -> None:
        owner = self._owner
        if not self.recording or name != "Shape" or thing.Document.Name != owner.doc.Name:
            return
        if not owner.doc.Recomputing and thing.TypeId != "Part::Feature":
            owner.pin(thing)

    def slotRecomputedObject(self, thing: Any) -> None:
        shape = self._owner.pinned.get(thing.Name)
        if shape is None:
            return
        placement = thing.Placement
        thing.Shape = shape
        thing.Placement = placement


def _identifier(name: str) -> str:
    kept = "".join(c if c.isascii() and (c.isalnum() or c == "_") else "_" for c in name).strip("_")
    return kept if kept and not kept[0].isdigit() else f"Object_{kept}".rstrip("_")
