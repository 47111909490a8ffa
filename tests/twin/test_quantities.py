"""15 g and 0.015 kg are one value; a unit nobody knows is refused; prose gives up its numbers."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metaforge.core.errors import ToolError
from metaforge.twin.quantities import Quantity, read_unit, split_name
from metaforge.twin.quantity_text import find_quantities


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((15, "g"), (0.015, "kg")),
        ((250, "MPa"), (250, "N/mm^2")),
        ((1, "N/mm²"), (1e6, "Pa")),
        ((40, "°C"), (313.15, "K")),
        ((212, "degF"), (100, "degC")),
        ((30, "%"), (0.3, "")),
        ((5, "Nm"), (5000, "Nmm")),
        ((1, "inch"), (25.4, "mm")),
        ((60, "min"), (1, "hour")),
        ((4.7, "kΩ"), (4700, "ohm")),
        ((10, "kg·m²"), (10e6, "kg*mm^2")),
    ],
)
def test_one_value_in_two_units_is_equal(one: tuple[float, str], other: tuple[float, str]) -> None:
    assert Quantity.of(*one).equals(Quantity.of(*other))


@pytest.mark.parametrize(
    ("one", "other"), [((5, "mm"), (5, "g")), ((5, "$"), (5, "EUR")), ((5, ""), (5, "mm")), ((15, "g"), (15.1, "g"))]
)
def test_values_of_other_kinds_or_sizes_are_not(one: tuple[float, str], other: tuple[float, str]) -> None:
    assert not Quantity.of(*one).equals(Quantity.of(*other))


@pytest.mark.parametrize(
    "text", ["Mpa", "foo", "__import__('os')", "m**99999", "(", "m^m", "kg kg kg kg" * 9, "\0", "'"]
)
def test_what_is_no_unit_is_refused_with_examples(text: str) -> None:
    with pytest.raises(ToolError) as refusal:
        read_unit(text)
    assert refusal.value.kind == "unknown_unit"
    assert "250 MPa" in refusal.value.fix


@given(st.text(max_size=60))
def test_no_text_makes_the_unit_reader_fail_otherwise(text: str) -> None:
    with suppress(ToolError):
        read_unit(text)


@pytest.mark.parametrize(
    ("name", "split"),
    [
        ("mass_kg", ("mass", "kg")),
        ("max_von_mises_mpa", ("max_von_mises", "MPa")),
        ("density_kg_m3", ("density", "kg/m^3")),
        ("thermal_conductivity_w_mk", ("thermal_conductivity", "W/(m*K)")),
        ("torque_nm", ("torque", "N*m")),
        ("mass", ("mass", None)),
        ("mm", ("mm", None)),
    ],
)
def test_a_names_ending_tells_its_unit(name: str, split: tuple[str, str | None]) -> None:
    assert split_name(name) == split


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("at most 15 g (0.015 kg)", ["15 g", "0.015 kg"]),
        ("costs $20 or 1,500 EUR", ["$20", "1,500 EUR"]),
        ("50 x 30 x 10 mm", ["50 mm", "30 mm", "10 mm"]),
        ("10-15 mm and -40 to 85 °C", ["10 mm", "15 mm", "-40 °C", "85 °C"]),
        ("draws 2 W at 12V, 30% margin, 2.5GHz", ["2 W", "12V", "30%", "2.5GHz"]),
        ("250 N/mm², 9.81 m/s^2, 5 kg·m²", ["250 N/mm²", "9.81 m/s^2", "5 kg·m²"]),
        ("1e-3 m, 4.7 kΩ, 10 µs", ["1e-3 m", "4.7 kΩ", "10 µs"]),
        ("a 3-in display; 4 in.", ["3-in", "4 in"]),
    ],
)
def test_numbers_with_units_are_found_in_prose(text: str, written: list[str]) -> None:
    assert [each.text for each in find_quantities(text)] == written


@pytest.mark.parametrize(
    "text", ["See section 3 in total", "M3 screws, USB 2.0, 5 parts", "at 10 am", "7 cats", "in 2024 a year", "v1.2.3"]
)
def test_numbers_without_units_are_left_alone(text: str) -> None:
    assert list(find_quantities(text)) == []


@given(st.text(max_size=300))
def test_any_prose_can_be_read(text: str) -> None:
    for each in find_quantities(text):
        assert each.text in text or len(each.text.split()) == 2
