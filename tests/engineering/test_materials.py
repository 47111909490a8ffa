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
