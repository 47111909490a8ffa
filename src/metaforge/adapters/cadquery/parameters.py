"""What each parametric shape takes: one model a shape, lengths in mm.

The schema shows all of them; the shape's own model judges, so that a mistake is told about the shape that was meant.
"""

import difflib
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, WithJsonSchema

from metaforge.core.errors import InvalidArguments

ShapeType = Literal["box", "cylinder", "sphere", "cone", "bracket", "plate", "enclosure"]

LARGEST_MM = 100_000.0

Length = Annotated[float, Field(gt=0, le=LARGEST_MM, allow_inf_nan=False)]
LengthOrZero = Annotated[float, Field(ge=0, le=LARGEST_MM, allow_inf_nan=False)]
Coordinate = Annotated[float, Field(ge=-LARGEST_MM, le=LARGEST_MM, allow_inf_nan=False)]


class _Parameters(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=False)

    synonyms: ClassVar[dict[str, str]] = {}
    """Other names for a field, without unit; `diameter` also halves."""


class Hole(_Parameters):
    """A round through-hole."""

    x_mm: Coordinate
    y_mm: Coordinate
    diameter_mm: Length


class WallHole(_Parameters):
    """A round through-hole in an upright wall."""

    y_mm: Coordinate
    z_mm: Coordinate
    diameter_mm: Length


class Box(_Parameters):
    width_mm: Length = Field(description="along x")
    length_mm: Length = Field(description="along y")
    height_mm: Length = Field(description="along z")
    fillet_radius_mm: LengthOrZero = Field(0, description="of the upright edges")

    synonyms: ClassVar[dict[str, str]] = {"depth": "length_mm", "thickness": "height_mm"}


class Cylinder(_Parameters):
    radius_mm: Length
    height_mm: Length

    synonyms: ClassVar[dict[str, str]] = {"length": "height_mm"}


class Sphere(_Parameters):
    radius_mm: Length


class Cone(_Parameters):
    bottom_radius_mm: LengthOrZero
    top_radius_mm: LengthOrZero = Field(0, description="0: pointed")
    height_mm: Length

    synonyms: ClassVar[dict[str, str]] = {
        "radius": "bottom_radius_mm", "radius1": "bottom_radius_mm", "radius2": "top_radius_mm",
        "base_radius": "bottom_radius_mm",
    }  # fmt: skip


class Bracket(_Parameters):
    width_mm: Length = Field(description="base leg, outside")
    length_mm: Length = Field(description="along y")
    height_mm: Length = Field(description="wall, outside")
    thickness_mm: Length = Field(description="of both legs")
    fillet_radius_mm: LengthOrZero = Field(0, description="inner corner")
    base_holes: list[Hole] = Field(default_factory=list)
    wall_holes: list[WallHole] = Field(default_factory=list)

    synonyms: ClassVar[dict[str, str]] = {"depth": "length_mm", "fillet": "fillet_radius_mm", "holes": "base_holes"}


class Plate(_Parameters):
    width_mm: Length = Field(description="along x")
    length_mm: Length = Field(description="along y")
    thickness_mm: Length = Field(description="along z")
    corner_radius_mm: LengthOrZero = 0
    holes: list[Hole] = Field(default_factory=list)

    synonyms: ClassVar[dict[str, str]] = {"depth": "length_mm", "height": "thickness_mm"}


class Enclosure(_Parameters):
    width_mm: Length = Field(description="outside")
    length_mm: Length = Field(description="outside")
    height_mm: Length = Field(description="outside, with lid")
    wall_mm: Length = Field(2, description="of all walls")
    corner_radius_mm: LengthOrZero = Field(0, description="upright edges")
    lid: bool = Field(True, description="as a second part, else open")

    synonyms: ClassVar[dict[str, str]] = {
        "depth": "length_mm", "wall_thickness": "wall_mm", "thickness": "wall_mm", "fillet_radius": "corner_radius_mm",
    }  # fmt: skip


SHAPES: dict[str, type[_Parameters]] = {
    "box": Box, "cylinder": Cylinder, "sphere": Sphere, "cone": Cone, "bracket": Bracket, "plate": Plate,
    "enclosure": Enclosure,
}  # fmt: skip


def _schema() -> dict[str, Any]:
    """Tell every shape's parameters in few tokens. The shape's own model judges the values."""
    branches = [_branch(name, model) for name, model in SHAPES.items()]
    # The last branch lets every object through to the shape's own model, which knows what was meant.
    branches.append({"description": "or the same names without _mm, read as mm", "type": "object"})
    return {"type": "object", "anyOf": branches}


def _branch(name: str, model: type[_Parameters]) -> dict[str, Any]:
    raw = model.model_json_schema()
    properties = {field: _told(schema) for field, schema in raw["properties"].items()}
    return {"description": name, "type": "object", "properties": properties, "required": raw["required"]}


def _told(schema: dict[str, Any]) -> dict[str, Any]:
    told: dict[str, Any] = {"type": schema["type"]}
    if schema["type"] == "array":
        kinds: dict[str, type[_Parameters]] = {"Hole": Hole, "WallHole": WallHole}
        hole = kinds[schema["items"]["$ref"].rsplit("/", 1)[-1]]
        return told | {"description": "{" + ", ".join(hole.model_fields) + "}"}
    if "default" in schema:
        told["default"] = schema["default"]
    if "description" in schema:
        told["description"] = schema["description"]
    return told


ShapeParameters = Annotated[dict[str, Any], WithJsonSchema(_schema())]


def parse_parameters(shape_type: str, given: dict[str, Any]) -> Any:
    """Return the shape's own parameters.

    Args:
        shape_type: one of `SHAPES`.
        given: names with `_mm`, or without (taken as mm); `diameter` stands for twice a radius.

    Raises:
        InvalidArguments: every wrong name and value at once, each with what would be right.
    """
    model = SHAPES[shape_type]
    wrong: dict[str, str] = {}
    renamed = _renamed(model, given, wrong)
    try:
        parsed = model.model_validate(renamed)
    except ValidationError as fault:
        for each in fault.errors():
            wrong["parameters." + ".".join(str(part) for part in each["loc"])] = _explain(each)
        parsed = None
    if wrong:
        listed = "; ".join(f"{name}: {text}" for name, text in wrong.items())
        raise InvalidArguments(f"A {shape_type} cannot be made of these parameters. {listed}", fields=wrong)
    return parsed


def refuse(shape_type: str, name: str, text: str) -> InvalidArguments:
    """Return the error for a value that does not fit the others."""
    field = f"parameters.{name}"
    return InvalidArguments(f"A {shape_type} cannot be made of these parameters. {field}: {text}", fields={field: text})


def _renamed(model: type[_Parameters], given: dict[str, Any], wrong: dict[str, str]) -> dict[str, Any]:
    known = model.model_fields
    renamed: dict[str, Any] = {}
    for name, value in given.items():
        target = _target(model, name)
        if target is None:
            close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
            hint = f"did you mean {close[0]}?" if close else f"there are: {', '.join(known)}"
            wrong[f"parameters.{name}"] = f"is not a parameter of a {_shape_name(model)}; {hint}"
            continue
        if "diameter" in name and target.endswith("radius_mm") and isinstance(value, int | float):
            value = value / 2
        if target in renamed:
            wrong[f"parameters.{name}"] = f"says {target} a second time"
        if isinstance(value, list):
            value = [_renamed_hole(known[target].annotation, item) for item in value]
        renamed[target] = value
    return renamed


def _renamed_hole(annotation: Any, item: Any) -> Any:
    """Let `x`, `y`, `diameter` of a hole stand without their unit."""
    if not isinstance(item, dict):
        return item
    (hole,) = get_args(annotation)
    return {(f"{key}_mm" if f"{key}_mm" in hole.model_fields else key): value for key, value in item.items()}


def _target(model: type[_Parameters], name: str) -> str | None:
    fields = model.model_fields
    plain = name.removesuffix("_mm")
    if name in fields:
        return name
    if f"{plain}_mm" in fields:
        return f"{plain}_mm"
    if plain in model.synonyms:
        return model.synonyms[plain]
    radius = plain.replace("diameter", "radius")
    if radius != plain:
        return f"{radius}_mm" if f"{radius}_mm" in fields else model.synonyms.get(radius)
    return None


def _shape_name(model: type[_Parameters]) -> str:
    return next(name for name, each in SHAPES.items() if each is model)


def _explain(fault: Any) -> str:
    kind, context, value = fault["type"], fault.get("ctx", {}), fault.get("input")
    if kind == "missing":
        return "is required"
    if kind == "greater_than":
        return f"{value} is not allowed, it must be greater than {context['gt']:g} mm"
    if kind == "greater_than_equal":
        return f"{value} is not allowed, it must be at least {context['ge']:g} mm"
    if kind == "less_than_equal":
        return f"{value} is not allowed, the largest is {context['le']:g} mm"
    if kind == "extra_forbidden":
        return "is not a parameter here"
    return f"{value!r} is not allowed: {fault['msg']}"
