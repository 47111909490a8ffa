"""Fields are told with their units."""

import pytest

from metaforge.cli.screen import name_and_unit, number, told


@pytest.mark.parametrize(
    ("field", "name", "unit"),
    [
        ("volume_mm3", "volume", "mm³"),
        ("max_von_mises_mpa", "max von mises", "MPa"),
        ("density_kg_m3", "density", "kg/m³"),
        ("mesh_elements", "mesh elements", ""),
        ("solids_count", "solids count", ""),
        ("n", "n", ""),
    ],
)
def test_the_unit_leaves_the_name(field, name, unit):
    assert name_and_unit(field) == (name, unit)


@pytest.mark.parametrize(
    ("value", "text"),
    [(15000.0, "15000"), (0.1 + 0.2, "0.3"), (1.23456789e-7, "1.23457e-07"), (193000000.0, "193000000"), (7, "7")],
)
def test_numbers_read_well(value, text):
    assert number(value) == text


def test_nested_fields_are_indented_and_lists_cut():
    lines = list(told({"box": {"size_mm": [50.0, 30.0, 10.0]}, "faces": [{"area_mm2": 1.5}] * 10, "ok": True}))
    assert lines[:2] == ["box:", "  size: (50, 30, 10) mm"]
    assert lines[2:4] == ["faces: 10", "  - area 1.5 mm²"]
    assert lines[-2:] == ["  ... 2 more (--json shows all)", "ok: yes"]
