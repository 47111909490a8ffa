"""The deck reader: cards, includes, and what they mean."""

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metaforge.core.errors import ToolError
from metaforge.formats.deck_model import DeckModel
from metaforge.formats.inp import BadDeck, read_cards
from metaforge.formats.inp_model import read_model

TETS = "*NODE, NSET=ALL\n1,0,0,0\n2,1.d0,0,0\n3,0,1\n4,0,0,1\n*ELEMENT, TYPE=C3D4, ELSET=E\n1,1,2,3,4\n"


def model(text: str) -> DeckModel:
    return read_model(read_cards(text))


def test_keywords_and_parameters_are_read_whatever_their_case_and_blanks() -> None:
    card = read_cards("*solid  Section , ElSet = Eall, material=Steel\n1.\n")[0]
    assert card.keyword == "SOLID SECTION"
    assert card.name("ELSET") == "EALL"
    assert card.rows == ["1."]


def test_comments_and_blank_lines_are_left_out_and_lines_counted() -> None:
    card = read_cards("** made by hand\n\n*NODE\n** first\n1,0,0,0\n\n2,1,0,0\n")[0]
    assert (card.line, card.rows, card.row_lines) == (3, ["1,0,0,0", "2,1,0,0"], [5, 7])


def test_a_keyword_line_that_ends_with_a_comma_goes_on() -> None:
    assert read_cards("*ELEMENT, TYPE=C3D4,\nELSET=E\n1,1,2,3,4\n")[0].name("ELSET") == "E"


def test_includes_are_put_in_place() -> None:
    cards = read_cards("*HEADING\n*INCLUDE, INPUT=a,b.inp\n".replace("a,b", '"a,b'.rstrip()), lambda name, line: TETS)
    assert [card.keyword for card in cards] == ["HEADING", "NODE", "ELEMENT"]


def test_fortran_numbers_and_missing_coordinates_are_read() -> None:
    found = model(TETS)
    assert found.coordinates.tolist() == [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]
    assert found.node_sets["ALL"].tolist() == [1, 2, 3, 4]


def test_elements_run_on_over_lines() -> None:
    found = model("*ELEMENT, TYPE=C3D10, ELSET=E\n7,1,2,3,4,5,6,\n7,8,9,10\n8,1,2,3,4,5,6,\n7,8,9,11\n")
    assert found.elements[0].ids.tolist() == [7, 8]
    assert found.elements[0].nodes[1].tolist() == [1, 2, 3, 4, 5, 6, 7, 8, 9, 11]


def test_sets_are_joined_generated_and_built_of_sets() -> None:
    found = model(TETS + "*NSET, NSET=A, GENERATE\n1,9,4\n*NSET, NSET=B\nA, 2,\n*NSET, NSET=B\n3\n")
    assert found.node_sets["A"].tolist() == [1, 5, 9]
    assert found.node_sets["B"].tolist() == [1, 2, 3, 5, 9]


def test_materials_sections_supports_and_loads_are_understood() -> None:
    text = TETS + (
        "*MATERIAL, NAME=S\n*ELASTIC\n2.1e5, .3\n*DENSITY\n7.8e-9\n*EXPANSION\n1.2e-5\n*CONDUCTIVITY\n50.\n"
        "*SOLID SECTION, ELSET=E, MATERIAL=s\n*BOUNDARY\nALL, 1, 3\n4, 2\n"
        "*STEP\n*STATIC\n*CLOAD\n4, 3, -5.\n*END STEP\n"
    )
    found = model(text)
    material = found.materials["S"]
    assert (material.youngs_modulus, material.poissons_ratio, material.density) == (2.1e5, 0.3, 7.8e-9)
    assert (found.sections[0].elset, found.sections[0].material) == ("E", "S")
    assert [(f.first, f.last, len(f.nodes)) for f in found.fixings] == [(1, 3, 4), (2, 2, 1)]
    assert found.point_loads[0].value == -5
    assert [keyword for keyword, _ in found.procedures] == ["STATIC"]


def test_surfaces_of_element_sets_and_single_elements_are_faces() -> None:
    found = model(TETS + "*SURFACE, NAME=TOP\nE, S2\n1, S4\n")
    assert found.surfaces["TOP"] == [(1, 2), (1, 4)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("hello\n*NODE\n", "before the first keyword"),
        ("nothing here", "before the first keyword"),
        ("", "no keyword"),
        ("*NODE\n1,a,b,c\n", "Not numbers"),
        ("*NODE\n4000000000,0,0,0\n", "4,000,000,000"),
        ("*ELEMENT, TYPE=C3D4\n1,1,2,3\n", "4 nodes"),
        ("*ELEMENT, TYPE=C3D4\n1,1,2,3,x\n", "no node number"),
        ("*ELEMENT\n1,1,2\n", "without TYPE"),
        (TETS + "*BOUNDARY\nNOWHERE, 1\n", "NOWHERE"),
        (TETS + "*CLOAD\n1, 3, many\n", "Not a number"),
        (TETS + "*NSET, NSET=A, GENERATE\n1, 99999999999\n", "not usable"),
        (TETS + "*NSET, NSET=A, GENERATE\n-99999999999999, 5\n", "not usable"),
        ("*NODE\n1e300,0,0,0\n", "outside 1 to"),
        ("*NODE\n-1e300,0,0,0\n", "outside 1 to"),
    ],
)
def test_what_cannot_be_read_is_named(text: str, words: str) -> None:
    with pytest.raises(BadDeck, match=words):
        model(text)


@pytest.mark.parametrize("lines", [", \n", "", ",,\n1,2,3\n4,5,6\n"])
def test_elements_of_a_type_nobody_knows_have_the_nodes_of_their_first_line_that_has_any(lines: str) -> None:
    (elements,) = model("*ELEMENT, TYPE=C3X\n" + lines).elements
    assert elements.nodes.tolist() == ([[2, 3], [5, 6]] if "1" in lines else [])


@given(st.lists(st.sampled_from([
    "*NODE\n", "*NODE, NSET=A\n", "1,0,0,0\n", "2,1,0\n", "*ELEMENT, TYPE=C3D4\n", "1,1,2,3,4\n", "*NSET, NSET=B\n",
    "*BOUNDARY\n", "A,1,3\n", "*STEP\n", "*STATIC\n", "*CLOAD\n", "*EQUATION\n", "2\n", "1,1,1.,2,1,-1.\n", "*TIE\n",
    "*SURFACE, NAME=S\n", "1,S1\n", "*MATERIAL, NAME=M\n", "*ELASTIC\n", ",,,\n", "*\n", "*,\n", "GENERATE\n", "-1\n",
    "1e400,nan\n", "*ELSET, ELSET=E, GENERATE\n", "\n", "**\n", "*SOLID SECTION, ELSET=E, MATERIAL=M\n",
]), max_size=25))  # fmt: skip
@settings(max_examples=300, deadline=None)
def test_no_order_of_lines_breaks_the_reader(lines: list[str]) -> None:
    with contextlib.suppress(ToolError):
        model("".join(lines))


@given(st.text(max_size=300))
@settings(max_examples=150, deadline=None)
def test_no_text_breaks_the_reader(text: str) -> None:
    with contextlib.suppress(ToolError):
        model(TETS + text)
