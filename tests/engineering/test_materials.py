"""Materials by name, with sources; wrong units by their ratio."""

import dataclasses

import pytest

from metaforge.core.errors import InvalidArguments
from metaforge.engineering.materials import _ALIASES, TABLE, find_material, with_overrides
from metaforge.engineering.unit_plausibility import check_material, check_size


@pytest.mark.parametrize("name", ["steel-316", "Steel 316", "SS316", "AISI-316", "1.4401"])
def test_a_material_is_found_by_its_names(name: str) -> None:
    assert find_material(name).name == "steel-316"


def test_a_near_miss_is_answered_with_the_nearest_names() -> None:
    with pytest.raises(InvalidArguments, match="did you mean steel-316") as caught:
        find_material("steel-361")
    assert "steel-316" in caught.value.data["did_you_mean"]


def test_every_alias_leads_to_a_material() -> None:
    assert set(_ALIASES.values()) <= set(TABLE)


@pytest.mark.parametrize("name", list(TABLE))
def test_every_material_is_plausible_complete_and_sourced(name: str) -> None:
    material = TABLE[name]
    assert material.source
    assert material.density_kg_m3 is not None
    assert check_material(
        youngs_modulus_mpa=material.youngs_modulus_mpa, poissons_ratio=material.poissons_ratio,
        density_t_mm3=material.density_kg_m3 * 1e-12, conductivity_w_mk=material.thermal_conductivity_w_mk,
        expansion_per_k=material.expansion_per_k,
    ) == []  # fmt: skip
    missing = [f.name for f in dataclasses.fields(material) if getattr(material, f.name) is None]
    assert missing in ([], ["yield_strength_mpa"])


FAMILIES = {
    "steel": ((7700, 8100), (185e3, 215e3), (0.27, 0.31), (12, 55), (430, 520), (10e-6, 18e-6)),
    "cast iron": ((6800, 7400), (66e3, 180e3), (0.21, 0.30), (40, 60), (440, 520), (10e-6, 12.5e-6)),
    "aluminium": ((2640, 2850), (68e3, 75e3), (0.32, 0.34), (110, 240), (850, 1000), (21.5e-6, 24.5e-6)),
    "magnesium": ((1730, 1850), (42e3, 46e3), (0.33, 0.36), (50, 160), (950, 1100), (24e-6, 28e-6)),
    "titanium": ((4400, 4600), (100e3, 120e3), (0.30, 0.35), (6, 22), (500, 570), (8e-6, 10e-6)),
    "copper": ((8300, 9000), (90e3, 135e3), (0.30, 0.36), (30, 400), (370, 420), (16e-6, 21.5e-6)),
    "polymer": ((850, 1500), (700, 4500), (0.33, 0.45), (0.1, 0.45), (900, 2500), (4e-5, 2e-4)),
    "composite": ((1700, 2000), (15e3, 30e3), (0.10, 0.30), (0.25, 1.0), (600, 1200), (10e-6, 20e-6)),
    "glass": ((2400, 2600), (60e3, 75e3), (0.20, 0.25), (0.8, 1.2), (700, 900), (8e-6, 10e-6)),
}
"""What any textbook gives for a family: density, modulus, Poisson's ratio, conductivity, specific heat, expansion."""
PROPERTIES = (
    "density_kg_m3", "youngs_modulus_mpa", "poissons_ratio", "thermal_conductivity_w_mk", "specific_heat_j_kgk",
    "expansion_per_k",
)  # fmt: skip


@pytest.mark.parametrize("name", list(TABLE))
def test_every_property_lies_where_its_family_does(name: str) -> None:
    material = TABLE[name]
    for field, (low, high) in zip(PROPERTIES, FAMILIES[material.kind], strict=True):
        assert low <= getattr(material, field) <= high, field
    # Solids of any kind store 1.2 to 4.2 MJ of heat in a cubic metre and kelvin.
    assert 1.2e6 <= material.density_kg_m3 * material.specific_heat_j_kgk <= 4.2e6
    assert (
        material.yield_strength_mpa is None or 5e-4 <= material.yield_strength_mpa / material.youngs_modulus_mpa < 0.04
    )


PUBLISHED = [
    ("steel-316", "youngs_modulus_mpa", 28.0e6 * 6.894757e-3, 0.002),
    ("aluminium-6061-t6", "youngs_modulus_mpa", 9.9e6 * 6.894757e-3, 0.002),
    ("aluminium-6061-t6", "expansion_per_k", 13.1e-6 * 1.8, 0.005),
    ("aluminium-6061-t6", "thermal_conductivity_w_mk", 1160 * 0.1442279, 0.005),
    ("aluminium-7075-t6", "density_kg_m3", 0.101 * 27679.9, 0.002),
    ("aluminium-7075-t6", "expansion_per_k", 13.1e-6 * 1.8, 0.005),
    ("aluminium-2024-t3", "expansion_per_k", 12.9e-6 * 1.8, 0.005),
    ("aluminium-2024-t3", "thermal_conductivity_w_mk", 840 * 0.1442279, 0.005),
    ("titanium-ti6al4v", "density_kg_m3", 0.160 * 27679.9, 0.002),
    ("titanium-ti6al4v", "youngs_modulus_mpa", 16.0e6 * 6.894757e-3, 0.002),
    ("bronze-c93200", "density_kg_m3", 0.322 * 27679.9, 0.002),
    ("bronze-c93200", "thermal_conductivity_w_mk", 33.6 * 1.730735, 0.005),
    ("brass-c36000", "poissons_ratio", 97 / (2 * 37) - 1, 0.005),
    ("steel-s235", "thermal_conductivity_w_mk", 54 - 3.33e-2 * 20, 0.002),
    ("steel-s235", "specific_heat_j_kgk", 425 + 0.773 * 20 - 1.69e-3 * 20**2 + 2.22e-6 * 20**3, 0.002),
]
"""Values as their documents print them, most in US units: psi, lb/in3, 1/deg F, Btu in/(h ft2 deg F)."""


@pytest.mark.parametrize(("name", "field", "value", "tolerance_ratio"), PUBLISHED)
def test_a_value_is_the_published_one(name: str, field: str, value: float, tolerance_ratio: float) -> None:
    assert getattr(TABLE[name], field) == pytest.approx(value, rel=tolerance_ratio)


def test_numbers_given_beside_a_name_replace_its_own_and_are_said() -> None:
    changed = with_overrides(find_material("steel-316"), youngs_modulus_mpa=190000.0, density_kg_m3=None)
    assert (changed.youngs_modulus_mpa, changed.density_kg_m3) == (190000.0, 8000)
    assert "given by the caller: youngs_modulus_mpa" in changed.source


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"youngs_modulus_mpa": 2.1e11}, "10^6 x steel: was it given in Pa"),
        ({"youngs_modulus_mpa": 7.0e10}, "was it given in Pa"),
        ({"density_t_mm3": 7850.0}, "10^12 x steel: was it given in kg/m3"),
        ({"density_t_mm3": 7.85e-6}, "was it given in kg/mm3"),
        ({"density_t_mm3": 7.85}, "g/cm3"),
        ({"expansion_per_k": 12.0}, "1e-6/K"),
        ({"poissons_ratio": 0.4999}, "lock"),
        ({"youngs_modulus_mpa": 2.1e11, "density_t_mm3": 7850.0}, "consistent SI"),
    ],
)
def test_a_wrong_unit_is_named(given: dict[str, float], words: str) -> None:
    warnings = check_material(**given)
    assert len(warnings) == 1
    assert words in warnings[0]


def test_rubber_and_diamond_are_left_alone() -> None:
    assert check_material(youngs_modulus_mpa=1.0, poissons_ratio=0.48, density_t_mm3=1.1e-9) == []
    assert check_material(youngs_modulus_mpa=1.05e6, density_t_mm3=3.5e-9, conductivity_w_mk=2200) == []


def test_a_part_in_metres_is_noticed() -> None:
    assert "in m" in check_size(0.2)[0]
    assert check_size(120) == []
