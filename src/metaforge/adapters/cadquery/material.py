"""Density of a material by name."""

from metaforge.core.errors import InvalidArguments
from metaforge.engineering.materials import find_material


def density_of(name: str | None) -> float | None:
    """Return kg/m3; None when no material is named.

    Raises:
        InvalidArguments: an unknown name, or a material whose density is not known.
    """
    if not name:
        return None
    density = find_material(name).density_kg_m3
    if density is None:
        raise InvalidArguments(f"material: the density of {name} is not in the table", fields={"material": "another"})
    return density
