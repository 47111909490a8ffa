"""Models that cannot be solved, or would be solved wrongly: told before or instead of a number."""

import re
from typing import Any

import pytest

pytestmark = pytest.mark.program("ccx", "cadquery", "gmsh")

ON_TOP = [{"face": "top", "force_n": [0, 0, -100]}]
HELD = [{"face": "bottom"}]


def refusal(server: Any, **arguments: Any) -> str:
    text: str = server.refusal("calculix.run_fea", analysis_type="static_stress", **arguments)
    return text


def test_a_model_that_nothing_holds_is_refused_with_the_motions_that_are_free(server: Any, cube: str) -> None:
    text = refusal(server, step_file=cube, material="steel-316", loads=ON_TOP)
    assert re.search("support|restrain|held|rigid", text, re.IGNORECASE)


def test_a_model_that_is_held_too_little_is_refused_too(server: Any) -> None:
    deck = _deck(nodes=_TETRAHEDRON, element="1, 1, 2, 3, 4", held="1, 1, 3\n")
    (server.workspace / "loose.inp").write_text(deck)
    text = refusal(server, mesh_file="loose.inp")
    assert re.search("rotat|rigid|free", text, re.IGNORECASE)


def test_an_elastic_modulus_in_pascal_is_taken_for_what_it_is(server: Any, cube: str) -> None:
    material = {"youngs_modulus_mpa": 1.93e11, "poissons_ratio": 0.27}
    result = server.call(
        "calculix.run_fea",
        analysis_type="static_stress",
        step_file=cube,
        material=material,
        supports=HELD,
        loads=ON_TOP,
    )
    told = result.text
    assert re.search(r"\bPa\b|unit|193 ?000|1e6|million", told), told


def test_a_density_in_tonnes_per_mm3_is_taken_for_what_it_is(server: Any, cube: str) -> None:
    material = {"youngs_modulus_mpa": 193_000, "poissons_ratio": 0.27, "density_kg_m3": 7.9e-9}
    result = server.call(
        "calculix.run_fea",
        analysis_type="modal",
        load_case="density",
        step_file=cube,
        material=material,
        supports=HELD,
        num_modes=1,
    )
    assert re.search("kg/m3|density", result.text), result.text


def test_an_inverted_element_is_named(server: Any) -> None:
    (server.workspace / "inside_out.inp").write_text(_deck(nodes=_TETRAHEDRON, element="7, 1, 3, 2, 4", held=_ALL_HELD))
    text = refusal(server, mesh_file="inside_out.inp")
    assert re.search(r"\b7\b", text), text
    assert re.search("inverted|inside out|Jacobian|negative", text, re.IGNORECASE)


def test_an_unknown_material_comes_with_the_nearest_names(server: Any, cube: str) -> None:
    text = refusal(server, step_file=cube, material="steel-361", supports=HELD, loads=ON_TOP)
    assert "steel-316" in text


def test_a_face_that_is_not_there_comes_with_the_faces_that_are(server: Any, cube: str) -> None:
    loads = [{"face": "lid", "force_n": [0, 0, -100]}]
    text = refusal(server, step_file=cube, material="steel-316", supports=HELD, loads=loads)
    assert "lid" in text
    assert "[0, 0, 10]" in text, "the upper face is listed with its centroid"


def test_a_deck_cannot_include_a_file_from_outside(server: Any) -> None:
    (server.workspace / "curious.inp").write_text("*INCLUDE, INPUT=/etc/passwd\n*STEP\n*STATIC\n*END STEP\n")
    text = refusal(server, mesh_file="curious.inp")
    assert "/etc/passwd" in text
    assert "root:" not in text


def test_nothing_of_a_refused_analysis_is_left_in_the_workspace(server: Any, cube: str) -> None:
    before = {path for path in server.workspace.rglob("*") if path.suffix in (".frd", ".inp", ".png")}
    refusal(server, step_file=cube, material="steel-316", loads=ON_TOP, output_path="out/none.frd")
    after = {path for path in server.workspace.rglob("*") if path.suffix in (".frd", ".inp", ".png")}
    assert after == before


_TETRAHEDRON = "1, 0, 0, 0\n2, 10, 0, 0\n3, 0, 10, 0\n4, 0, 0, 10\n"
_ALL_HELD = "1, 1, 3\n2, 1, 3\n3, 1, 3\n"


def _deck(nodes: str, element: str, held: str) -> str:
    """Return a complete deck of one tetrahedron that carries 10 N at its top."""
    return (
        f"*NODE\n{nodes}*ELEMENT, TYPE=C3D4, ELSET=ALL\n{element}\n"
        "*MATERIAL, NAME=STEEL\n*ELASTIC\n193000, 0.27\n*SOLID SECTION, ELSET=ALL, MATERIAL=STEEL\n"
        f"*BOUNDARY\n{held}*STEP\n*STATIC\n*CLOAD\n4, 3, -10\n"
        "*NODE FILE\nU, RF\n*EL FILE\nS\n*END STEP\n"
    )
