"""What callers may say of materials, supports and loads: the JSON side, free of numpy."""

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from metaforge.engineering.faces import Box, FaceSelector
from metaforge.engineering.materials import Material, find_material, with_overrides

Vector = Annotated[list[float], Field(min_length=3, max_length=3)]
Positive = Annotated[float, Field(gt=0)]
NodeSet = Annotated[str, Field(description="instead of face")]


class MaterialChoice(BaseModel):
    """Name, numbers, or both."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[str | None, Field(description="such as aluminium-6061-t6")] = None
    youngs_modulus_mpa: Positive | None = None
    poissons_ratio: Annotated[float, Field(ge=0, lt=0.5)] | None = None
    density_kg_m3: Positive | None = None
    yield_strength_mpa: Positive | None = None
    thermal_conductivity_w_mk: Positive | None = None
    specific_heat_j_kgk: Positive | None = None
    expansion_per_k: float | None = None

    def resolve(self) -> Material:
        """Return the material with its source.

        Raises:
            InvalidArguments: the name is not in the table.
        """
        base = find_material(self.name) if self.name else Material("given")
        return with_overrides(base, **self.model_dump(exclude={"name"}))


class Place(BaseModel):
    """Where on the part: a face or a node set."""

    model_config = ConfigDict(extra="forbid")

    face: FaceSelector | None = None
    node_set: NodeSet | None = None

    def described(self) -> str:
        """Return the place in a few words, for labels and messages."""
        if self.node_set is not None:
            return f"node set {self.node_set}"
        if isinstance(self.face, str):
            return self.face
        return str(self.face.model_dump()) if self.face is not None else "the whole part"


class Support(Place):
    """A held place."""

    directions: Annotated[list[Literal["x", "y", "z"]] | None, Field(description="held; default all")] = None
    displacement_mm: Annotated[
        dict[Literal["x", "y", "z"], float] | None,
        Field(description='{"z": 0.1}: prescribed, others free'),
    ] = None
    within_box_mm: Annotated[Box | None, Field(description="only nodes of the face in it")] = None

    @model_validator(mode="after")
    def _placed(self) -> "Support":
        if (self.face is None) == (self.node_set is None):
            raise ValueError("give face or node_set, one of them")
        if self.directions is not None and self.displacement_mm is not None:
            raise ValueError("give directions or displacement_mm, not both")
        return self


class HeatLoad(Place):
    """One quantity on a face or node set."""

    temperature_c: float | None = None
    power_w: Annotated[float | None, Field(description="in all")] = None
    heat_flux_w_m2: Annotated[float | None, Field(description="into the face")] = None
    film_w_m2k: Annotated[Positive | None, Field(description="convection, with ambient_c")] = None
    ambient_c: float | None = None

    def given(self) -> list[str]:
        """Return the names of the quantities that are given."""
        return [name for name in _QUANTITIES if getattr(self, name, None) is not None]

    @model_validator(mode="after")
    def _complete(self) -> Self:
        given = self.given()
        if len(given) != 1:
            known = [name for name in _QUANTITIES if name in type(self).model_fields]
            raise ValueError(f"give exactly one of {', '.join(known)}; found {', '.join(given) or 'none'}")
        if self.film_w_m2k is not None and self.ambient_c is None:
            raise ValueError("film_w_m2k needs ambient_c")
        placed = (self.face is not None) + (self.node_set is not None)
        if given == ["acceleration_m_s2"] and placed:
            raise ValueError("an acceleration acts on the whole part: leave out face and node_set")
        if placed > 1 or (not placed and given[0] not in ("acceleration_m_s2", "temperature_c")):
            raise ValueError("give face or node_set, one of them")
        return self


class Load(HeatLoad):
    """One quantity. In a static analysis temperature_c is of the whole part, without a face."""

    force_n: Annotated[Vector | None, Field(description="in all, x y z")] = None
    pressure_mpa: Annotated[float | None, Field(description="positive presses")] = None
    acceleration_m_s2: Annotated[Vector | None, Field(description="of the whole part: [0, 0, -9.81]")] = None
    reference_temperature_c: Annotated[float, Field(description="stress-free")] = 20.0


_QUANTITIES = (
    "force_n", "pressure_mpa", "acceleration_m_s2", "temperature_c", "power_w", "heat_flux_w_m2", "film_w_m2k",
)  # fmt: skip
