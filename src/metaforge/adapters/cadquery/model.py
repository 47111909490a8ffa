"""A model in the kernel: an XCAF document (names, colours, placements) and the parts found in it.

One document for everything that is read or written keeps what a bare shape loses: names and colours.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from OCP.Message import Message, Message_Gravity
from OCP.Quantity import Quantity_Color, Quantity_TypeOfColor
from OCP.TCollection import TCollection_ExtendedString
from OCP.TDataStd import TDataStd_Name
from OCP.TDF import TDF_Label, TDF_LabelSequence
from OCP.TDocStd import TDocStd_Document
from OCP.TopAbs import TopAbs_COMPOUND
from OCP.TopLoc import TopLoc_Location
from OCP.TopoDS import TopoDS_Compound
from OCP.XCAFApp import XCAFApp_Application
from OCP.XCAFDoc import (
    XCAFDoc_ColorCurv,
    XCAFDoc_ColorGen,
    XCAFDoc_ColorSurf,
    XCAFDoc_DocumentTool,
    XCAFDoc_ShapeTool,
)

Colour = tuple[float, float, float]
"""sRGB, 0 to 1: what STEP stores and a screen shows."""

# The kernel writes progress of every file to stdout; failures are told by return values.
for _printer in Message.DefaultMessenger_s().Printers():
    _printer.SetTraceLevel(Message_Gravity.Message_Fail)

_SRGB = Quantity_TypeOfColor.Quantity_TOC_sRGB


@dataclass(frozen=True)
class Part:
    """One leaf of a model, placed in the model's frame."""

    name: str
    shape: Any
    """`TopoDS_Shape`."""
    colour: Colour | None = None


@dataclass(frozen=True)
class Model:
    """What was read or made."""

    document: Any
    parts: tuple[Part, ...]
    source_unit: str = "millimetre"
    colours: tuple[Colour, ...] = ()
    """Every colour the document defines, parts' and faces' alike."""
    warnings: tuple[str, ...] = field(default=())

    @property
    def shape(self) -> Any:
        """All parts as one shape."""
        return self.parts[0].shape if len(self.parts) == 1 else compound(part.shape for part in self.parts)


def new_document() -> Any:
    """Return an empty XCAF document."""
    document = TDocStd_Document(TCollection_ExtendedString("BinXCAF"))
    XCAFApp_Application.GetApplication_s().InitDocument(document)
    return document


def model_of(parts: Sequence[Part], name: str) -> Model:
    """Return a model of parts already in place; several become an assembly called `name`."""
    document = new_document()
    shapes = XCAFDoc_DocumentTool.ShapeTool_s(document.Main())
    colours = XCAFDoc_DocumentTool.ColorTool_s(document.Main())
    labels = []
    for part in parts:
        # In an assembly the STEP writer drops the colour of a bare solid, and keeps that of a compound.
        shape = part.shape if len(parts) == 1 or _is_compound(part.shape) else compound([part.shape])
        label = shapes.AddShape(shape, False)
        _set_name(label, part.name)
        if part.colour is not None:
            colours.SetColor(label, Quantity_Color(*part.colour, _SRGB), XCAFDoc_ColorGen)
        labels.append(label)
    if len(parts) > 1:
        root = shapes.NewShape()
        _set_name(root, name)
        for part, label in zip(parts, labels, strict=True):
            _set_name(shapes.AddComponent(root, label, TopLoc_Location()), part.name)
        shapes.UpdateAssemblies()
    return Model(document, tuple(parts), colours=tuple(dict.fromkeys(p.colour for p in parts if p.colour)))


def parts_of(document: Any) -> tuple[Part, ...]:
    """Return the leaves of a document, placed, with their names and colours."""
    shapes = XCAFDoc_DocumentTool.ShapeTool_s(document.Main())
    free = TDF_LabelSequence()
    shapes.GetFreeShapes(free)
    colours = XCAFDoc_DocumentTool.ColorTool_s(document.Main())
    found: list[Part] = []
    for label in _each(free):
        found.extend(_leaves(label, TopLoc_Location(), "", None, colours))
    return tuple(found)


def colours_of(document: Any) -> tuple[Colour, ...]:
    """Return every colour a document defines."""
    found = TDF_LabelSequence()
    tool = XCAFDoc_DocumentTool.ColorTool_s(document.Main())
    tool.GetColors(found)
    colours = []
    for label in _each(found):
        colour = Quantity_Color()
        if tool.GetColor_s(label, colour):
            colours.append(_srgb(colour))
    return tuple(colours)


def compound(shapes: Iterator[Any] | Sequence[Any]) -> Any:
    """Return one shape that holds several."""
    from OCP.BRep import BRep_Builder

    made, builder = TopoDS_Compound(), BRep_Builder()
    builder.MakeCompound(made)
    for shape in shapes:
        builder.Add(made, shape)
    return made


def _is_compound(shape: Any) -> bool:
    return bool(shape.ShapeType() == TopAbs_COMPOUND)


def _leaves(label: Any, placement: Any, name: str, colour: Colour | None, colours: Any) -> Iterator[Part]:
    here = placement.Multiplied(XCAFDoc_ShapeTool.GetLocation_s(label))
    own_name = _name(label) or name
    own_colour = _label_colour(label, colours) or colour
    target = label
    if XCAFDoc_ShapeTool.IsReference_s(label):
        target = TDF_Label()
        XCAFDoc_ShapeTool.GetReferredShape_s(label, target)
        own_name = own_name or _name(target)
    if XCAFDoc_ShapeTool.IsAssembly_s(target):
        components = TDF_LabelSequence()
        XCAFDoc_ShapeTool.GetComponents_s(target, components)
        inherited = _label_colour(target, colours) or own_colour
        for component in _each(components):
            yield from _leaves(component, here, _name(target) or own_name, inherited, colours)
        return
    shape = XCAFDoc_ShapeTool.GetShape_s(target)
    placed = shape.Moved(here) if target is not label else shape.Moved(placement)
    found = (
        own_colour or _label_colour(target, colours) or _shape_colour(shape, colours) or _face_colour(target, colours)
    )
    yield Part(own_name or "part", placed, found)


def _face_colour(label: Any, colours: Any) -> Colour | None:
    """Return the one colour of a part whose sub-shapes are coloured; None when they differ."""
    below = TDF_LabelSequence()
    XCAFDoc_ShapeTool.GetSubShapes_s(label, below)
    found = {colour for each in _each(below) if (colour := _label_colour(each, colours)) is not None}
    return found.pop() if len(found) == 1 else None


def _label_colour(label: Any, colours: Any) -> Colour | None:
    colour = Quantity_Color()
    for kind in (XCAFDoc_ColorSurf, XCAFDoc_ColorGen, XCAFDoc_ColorCurv):
        if colours.GetColor_s(label, kind, colour):
            return _srgb(colour)
    return None


def _shape_colour(shape: Any, colours: Any) -> Colour | None:
    colour = Quantity_Color()
    for kind in (XCAFDoc_ColorSurf, XCAFDoc_ColorGen):
        if colours.GetColor(shape, kind, colour):
            return _srgb(colour)
    return None


def _srgb(colour: Any) -> Colour:
    red, green, blue = colour.Values(_SRGB)
    return (round(red, 6), round(green, 6), round(blue, 6))


def _name(label: Any) -> str:
    attribute = TDataStd_Name()
    return attribute.Get().ToExtString() if label.FindAttribute(TDataStd_Name.GetID_s(), attribute) else ""


def _set_name(label: Any, name: str) -> None:
    TDataStd_Name.Set_s(label, TCollection_ExtendedString(name, True))


def _each(sequence: Any) -> Iterator[Any]:
    for number in range(1, sequence.Length() + 1):
        yield sequence.Value(number)
