"""What must not be solved, and what must not be believed: each refused in the field's words, with the way out."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.program("ccx")
STEEL = {"youngs_modulus_mpa": 210000.0, "poissons_ratio": 0.3, "density_kg_m3": 7850.0}
MATERIAL = "*MATERIAL, NAME=STEEL\n*ELASTIC\n210000., 0.3\n*SOLID SECTION, ELSET=BODY, MATERIAL=STEEL\n"
FIXED = "*BOUNDARY\nX0, 1, 3\n"
STEP = "*STEP\n*STATIC\n*CLOAD\nX1, 1, 10.\n*NODE FILE\nU\n*EL FILE\nS\n*END STEP\n"


@pytest.fixture
def bar(block: Callable[..., str]) -> str:
    """A mesh of five brick elements along x."""
    return block((5, 1, 1), (50, 10, 10), "C3D8")


async def solve(calculix: Any, deck: str, analysis: str = "static_stress") -> dict[str, Any]:
    name = calculix.write("deck.inp", deck)
    found: dict[str, Any] = await calculix.call("run_fea", mesh_file=name, analysis_type=analysis)
    return found


async def test_a_complete_deck_is_solved_as_it_stands(calculix: Any, bar: str) -> None:
    answer = await solve(calculix, bar + MATERIAL + FIXED + STEP)
    data = answer["data"]
    assert data["input_kind"] == "deck"
    assert data["reactions_n"][0] == pytest.approx(-40, rel=1e-4)
    assert data["applied_n"] == pytest.approx([40, 0, 0])
    assert data["max_von_mises_mpa"].keys() == {"BODY", "NEAR", "FAR"}


async def test_results_that_the_deck_does_not_ask_for_are_added(calculix: Any, bar: str) -> None:
    step = "*STEP\n*STATIC\n*CLOAD\nX1, 1, 10.\n*END STEP\n"
    data = (await solve(calculix, bar + MATERIAL + FIXED + step))["data"]
    assert data["balance_error_ratio"] < 0.01
    assert data["peak"]["von_mises_mpa"] > 0


async def test_an_unrestrained_model_is_refused_with_its_free_motions(calculix: Any, bar: str, refused: Any) -> None:
    with pytest.raises(refused, match="not restrained \\(6 rigid-body modes\\)") as caught:
        await solve(calculix, bar + MATERIAL + STEP)
    assert caught.value.data["kind"] == "not_restrained"


async def test_a_hinge_is_counted_as_one_free_rotation(calculix: Any, bar: str, refused: Any) -> None:
    hinge = "*NSET, NSET=EDGE\n" + "".join(f"{n},\n" for n in (1, 5))
    with pytest.raises(refused, match="1 rigid-body mode\\)"):
        await solve(calculix, bar + hinge + MATERIAL + "*BOUNDARY\nEDGE, 1, 3\n" + STEP)


async def test_an_unrestrained_part_names_the_faces_it_could_be_held_at(
    calculix: Any, step_box: Callable[..., Path], refused: Any
) -> None:
    shutil.copy(step_box("cube", (0, 0, 0, 10, 10, 10)), calculix.workspace / "cube.step")
    with pytest.raises(refused, match="not restrained") as caught:
        await calculix.data(
            "run_fea", step_file="cube.step", analysis_type="static_stress", material="steel-316",
            loads=[{"face": "top", "force_n": [0, 0, -10]}],
        )  # fmt: skip
    assert "face_1" in caught.value.data["fix"]


async def test_a_modulus_in_pascal_is_called_by_its_name(calculix: Any, bar: str) -> None:
    answer = await solve(calculix, bar + MATERIAL.replace("210000.", "2.1e11") + FIXED + STEP)
    assert any("10^6 x steel" in warning and "Pa" in warning for warning in answer["warnings"])


async def test_a_density_in_kg_m3_is_called_by_its_name(calculix: Any, bar: str) -> None:
    material = MATERIAL.replace("*SOLID", "*DENSITY\n7850.\n*SOLID")
    answer = await solve(calculix, bar + material + FIXED + "*STEP\n*FREQUENCY\n2\n*END STEP\n", "modal")
    assert any("10^12 x steel" in warning and "kg/m3" in warning for warning in answer["warnings"])


async def test_an_inverted_element_is_named_with_its_place(calculix: Any, bar: str, refused: Any) -> None:
    lines = bar.split("\n")
    row = next(i for i, line in enumerate(lines) if line.startswith("3,") and line.count(",") == 8)
    ident, *nodes = lines[row].split(",")
    lines[row] = ",".join([ident, *nodes[4:], *nodes[:4]])
    with pytest.raises(refused, match="turned inside out") as caught:
        await solve(calculix, "\n".join(lines) + MATERIAL + FIXED + STEP)
    assert caught.value.data["where"] == "element 3 (C3D8), centroid [25, 5, 5] mm"


async def test_elements_without_material_are_listed(calculix: Any, bar: str, refused: Any) -> None:
    with pytest.raises(refused, match="Elements 3-5 have no section"):
        await solve(calculix, bar + MATERIAL.replace("BODY", "NEAR") + FIXED + STEP)


async def test_two_node_beams_are_refused(calculix: Any, refused: Any) -> None:
    deck = "*NODE\n1,0,0,0\n2,100,0,0\n*ELEMENT, TYPE=B31, ELSET=BODY\n1,1,2\n*NSET, NSET=X0\n1\n*NSET, NSET=X1\n2\n"
    section = (
        "*MATERIAL, NAME=S\n*ELASTIC\n210000.,.3\n*BEAM SECTION, ELSET=BODY, MATERIAL=S, SECTION=RECT\n5.,5.\n0,1,0\n"
    )
    with pytest.raises(refused, match="B31") as caught:
        await solve(calculix, deck + section + "*BOUNDARY\nX0,1,6\n" + STEP)
    assert "B32R" in caught.value.data["fix"]


async def test_skewed_incompatible_bricks_are_refused(calculix: Any, block: Callable[..., str], refused: Any) -> None:
    mesh = block((5, 1, 1), (50, 10, 10), "C3D8I").replace("20, 0, 0", "26, 0, 0")
    with pytest.raises(refused, match="patch test"):
        await solve(calculix, mesh + MATERIAL + FIXED + STEP)


async def test_linear_tetrahedra_are_warned_of(calculix: Any) -> None:
    deck = "*NODE, NSET=NALL\n1,0,0,0\n2,10,0,0\n3,0,10,0\n4,0,0,10\n*ELEMENT, TYPE=C3D4, ELSET=BODY\n1,1,2,3,4\n"
    sets = "*NSET, NSET=X0\n1,3,4\n*NSET, NSET=X1\n2\n"
    answer = await solve(calculix, deck + sets + MATERIAL + FIXED + STEP)
    assert any("C3D4" in warning and "C3D10" in warning for warning in answer["warnings"])


async def test_thick_plane_stress_is_warned_of(calculix: Any) -> None:
    deck = "*NODE\n1,0,0\n2,1,0\n3,1,1\n4,0,1\n*ELEMENT, TYPE=CPS4, ELSET=BODY\n1,1,2,3,4\n"
    sets = "*NSET, NSET=X0\n1,4\n*NSET, NSET=X1\n2,3\n"
    material = MATERIAL + "1.\n"
    answer = await solve(calculix, deck + sets + material + "*BOUNDARY\nX0,1,2\n" + STEP)
    assert any("thickness 1 mm" in warning for warning in answer["warnings"])


async def test_a_body_held_only_by_contact_is_named_when_the_solve_fails(calculix: Any, refused: Any) -> None:
    cube = [(0, 0), (10, 0), (10, 10), (0, 10)]
    nodes = [
        f"{1 + i + 4 * level},{x},{y},{z}"
        for level, z in enumerate((0, 10, 10.2, 20.2))
        for i, (x, y) in enumerate(cube)
    ]
    deck = "*NODE\n" + "\n".join(nodes) + "\n*ELEMENT, TYPE=C3D8, ELSET=LOWER\n1,1,2,3,4,5,6,7,8\n"
    deck += "*ELEMENT, TYPE=C3D8, ELSET=UPPER\n2,9,10,11,12,13,14,15,16\n"
    deck += "*NSET, NSET=X0\n1,2,3,4\n*NSET, NSET=X1\n13,14,15,16\n"
    deck += "*SURFACE, NAME=MA\n1, S2\n*SURFACE, NAME=SL\n2, S1\n*SURFACE INTERACTION, NAME=SI\n"
    deck += "*SURFACE BEHAVIOR, PRESSURE-OVERCLOSURE=LINEAR\n1.e6, 1.\n"
    deck += "*CONTACT PAIR, INTERACTION=SI, TYPE=SURFACE TO SURFACE\nSL, MA\n"
    deck += "*ELSET, ELSET=BODY\nLOWER, UPPER\n" + MATERIAL + FIXED
    deck += "*STEP, NLGEOM, INC=50\n*STATIC\n0.1, 1.\n*CLOAD\nX1, 3, -300.\n*END STEP\n"
    with pytest.raises(refused, match="UPPER is held only by contact") as caught:
        await solve(calculix, deck)
    assert "soft spring" in caught.value.data["fix"]


@pytest.mark.parametrize(
    ("card", "kind"),
    [
        ("*INCLUDE, INPUT=../secret.inp\n", "path_outside_workspace"),
        ("*INCLUDE, INPUT=/etc/passwd\n", "path_outside_workspace"),
        ("*INCLUDE, INPUT=nowhere.inp\n", "missing_include"),
        ("*NODE, INPUT=/etc/passwd\n", "deck_reads_files"),
        ("*RESTART, READ\n", "deck_reads_files"),
        ("*SUBMODEL, TYPE=NODE, INPUT=/etc/passwd\n", "deck_reads_files"),
        ("* in clude, in put=/etc/passwd\n", "path_outside_workspace"),
        ("*INCLUDED,INPUT=/etc/passwd\n", "path_outside_workspace"),
        ("*RE START,READ,STEP=1\n", "deck_reads_files"),
        ("*NSET, NSET=A,\n*INCLUDE, INPUT=/etc/passwd\n1,\n", "deck_reads_files"),
        ("*NSET, NSET=A\n1," + " " * 1316 + "*INCLUDE, INPUT=/etc/passwd\n", "bad_deck"),
    ],
)
async def test_a_deck_may_not_open_other_files(calculix: Any, bar: str, refused: Any, card: str, kind: str) -> None:
    (calculix.workspace.parent / "secret.inp").write_text("*NODE\n99,1,2,3\n")
    with pytest.raises(refused) as caught:
        await solve(calculix, bar + card + MATERIAL + FIXED + STEP)
    assert caught.value.data["kind"] == kind
    assert "root:" not in str(caught.value.data)


async def test_an_include_inside_the_workspace_is_read(calculix: Any, bar: str) -> None:
    calculix.write("parts/mesh.inp", bar)
    answer = await solve(calculix, "*INCLUDE, INPUT=parts/mesh.inp\n" + MATERIAL + FIXED + STEP)
    assert answer["data"]["mesh_elements"] == 5


@pytest.mark.parametrize("name", ["n" * 300 + ".inp", "circle.inp"], ids=["long", "circle"])
async def test_an_include_that_names_no_possible_file_is_a_missing_one(calculix: Any, refused: Any, name: str) -> None:
    (calculix.workspace / "circle.inp").symlink_to("circle.inp")
    with pytest.raises(refused) as caught:
        await solve(calculix, f"*INCLUDE, INPUT={name}\n*NODE\n1,0,0,0\n")
    assert caught.value.data["kind"] == "missing_include"


async def test_an_include_of_itself_ends(calculix: Any, refused: Any) -> None:
    with pytest.raises(refused, match="nested"):
        await solve(calculix, "*INCLUDE, INPUT=deck.inp\n*NODE\n1,0,0,0\n")


async def test_a_huge_node_number_is_refused_before_memory_is_reserved(calculix: Any, bar: str, refused: Any) -> None:
    with pytest.raises(refused, match=r"2,000,000,000") as caught:
        await solve(calculix, bar.replace("*NODE, NSET=NALL\n", "*NODE, NSET=NALL\n2000000000, 0, 0, 0\n") + STEP)
    assert "renumber" in caught.value.data["fix"]


async def test_nul_bytes_are_refused(calculix: Any, bar: str, refused: Any) -> None:
    with pytest.raises(refused, match="NUL"):
        await solve(calculix, bar + MATERIAL.replace("STEEL", "ST\0EEL") + FIXED + STEP)


async def test_the_wrong_analysis_type_for_a_deck_is_told_the_right_one(calculix: Any, bar: str, refused: Any) -> None:
    with pytest.raises(refused, match="analysis_type static_stress, not modal"):
        await solve(calculix, bar + MATERIAL + FIXED + STEP, "modal")


async def test_a_face_that_is_not_there_lists_those_that_are(
    calculix: Any, step_box: Callable[..., Path], refused: Any
) -> None:
    shutil.copy(step_box("cube", (0, 0, 0, 10, 10, 10)), calculix.workspace / "cube.step")
    with pytest.raises(refused, match="face_1: plane, centroid"):
        await calculix.data(
            "run_fea", step_file="cube.step", analysis_type="static_stress", material="steel-316",
            supports=[{"face": "botom"}], loads=[{"face": "top", "force_n": [0, 0, -10]}],
        )  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"material": "stel-316"}, "did you mean steel-316"),
        ({"material": {"youngs_modulus_mpa": 2e5}}, "poissons_ratio"),
        ({"material": {"youngs_modulus_mpa": -1, "poissons_ratio": 0.3}}, "greater than 0"),
        ({}, "No material"),
        ({"material": "steel-316", "fixed_node_set": "X9"}, "no node set 'X9'"),
        ({"material": "steel-316", "load_force_n": None}, "load_node_set needs load_force_n"),
        ({"material": "steel-316", "loads": [{"face": "top"}]}, "give exactly one of"),
        ({"material": "steel-316", "loads": [{"node_set": "X1", "power_w": 5}]}, "run_thermal"),
        ({"material": "steel-316", "mesh_file": None}, "Give step_file"),
    ],
)
async def test_bad_arguments_say_what_is_wrong(
    calculix: Any, bar: str, refused: Any, arguments: dict[str, Any], message: str
) -> None:
    right = {
        "mesh_file": calculix.write("bar.inp", bar), "analysis_type": "static_stress", "fixed_node_set": "X0",
        "load_node_set": "X1", "load_force_n": [10, 0, 0],
    }  # fmt: skip
    with pytest.raises(refused, match=message):
        await calculix.data("run_fea", **{**right, **arguments})


async def test_large_displacements_are_warned_of(calculix: Any, bar: str) -> None:
    calculix.write("bar.inp", bar)
    answer = await calculix.call(
        "run_fea", mesh_file="bar.inp", analysis_type="static_stress", fixed_node_set="X0", load_node_set="X1",
        load_force_n=[0, 0, -100], material={"youngs_modulus_mpa": 50, "poissons_ratio": 0.3},
    )  # fmt: skip
    assert any("linear theory does not hold" in warning for warning in answer["warnings"])


async def test_a_model_that_flies_away_is_not_reported(calculix: Any, bar: str, refused: Any) -> None:
    calculix.write("bar.inp", bar)
    with pytest.raises(refused, match="times its own size") as caught:
        await calculix.data(
            "run_fea", mesh_file="bar.inp", analysis_type="static_stress", fixed_node_set="X0", load_node_set="X1",
            load_force_n=[0, 0, -100], material={"youngs_modulus_mpa": 0.01, "poissons_ratio": 0.3},
        )  # fmt: skip
    assert caught.value.data["kind"] == "flown_away"
