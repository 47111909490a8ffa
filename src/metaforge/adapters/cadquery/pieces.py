"""Arguments with structure: parts and constraints of an assembly, holes and cutouts of an enclosure."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema

from metaforge.tools.paths import InputPath

Number = Annotated[float, Field(allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
_THREE = {"type": "array", "items": {"type": "number"}, "minItems": 3, "maxItems": 3}
Triple = Annotated[tuple[Number, Number, Number], WithJsonSchema(_THREE)]
Share = Annotated[float, Field(ge=0, le=1)]
SRgb = Annotated[tuple[Share, Share, Share], WithJsonSchema({"type": "array", "minItems": 3, "maxItems": 3})]

Property = Literal[
    "volume", "area", "surface_area", "center_of_mass", "bounding_box", "inertia", "mass", "validity", "faces",
    "parts", "colours", "units",
]  # fmt: skip


class _Piece(BaseModel):
    model_config = ConfigDict(extra="forbid")


class AssemblyPart(_Piece):
    name: Annotated[str, Field(pattern=r"^[^@/]{1,80}$")]
    file: InputPath
    colour: str | SRgb | None = Field(
        None, description="'#d9381e', a name, or sRGB [r, g, b] 0..1; default: the file's own"
    )
    position_mm: Triple = (0, 0, 0)
    rotation_deg: Triple = Field((0, 0, 0), description="about x, then y, then z")


class Constraint(_Piece):
    kind: Literal["plane", "point", "axis", "point_in_plane", "point_on_line", "fixed"] = Field(
        description="plane: faces meet, centres coincide; axis: directions opposed (angle_deg 0: alike); "
        "point: centres coincide; fixed: part_a stays"
    )
    part_a: str
    feature_a: str = Field(
        "", description="top|bottom|left|right|front|back, face_3, or CadQuery faces@>Z, edges@%CIRCLE; empty: the part"
    )
    part_b: str = ""
    feature_b: str = ""
    distance_mm: Number | None = Field(None, description="point, point_in_plane")
    angle_deg: Number | None = Field(None, description="axis, plane; default 180")


class MountingHole(_Piece):
    x_mm: Number
    y_mm: Number
    diameter_mm: Positive = Field(3.2, description="of the hole in the board")


class Cutout(_Piece):
    side: Literal["front", "back", "left", "right"] = Field(description="-y, +y, -x, +x")
    center_mm: Number = Field(description="along the side, in board coordinates (x or y)")
    width_mm: Positive
    height_mm: Positive
    z_mm: Number = Field(0, description="lower edge above the board's upper face")
    name: str = ""
