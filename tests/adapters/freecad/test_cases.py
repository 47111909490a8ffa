"""The shared cases beside the checkout, read by FreeCAD: other people's files with known answers."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from metaforge.tools.server import OUTPUT, WORKSPACE

pytestmark = [pytest.mark.program("freecadcmd"), pytest.mark.cases]

CASES = Path(__file__).resolve().parents[4] / "shared" / "cases"
UNDEFINED = {"cad-s07-shells-not-solids-SOT23", "cad-s10-no-geometry", "cad-s12-mixed-units-segfault"}
QUANTITY = "FreeCAD: {}"


def library() -> list[dict[str, Any]]:
    if not CASES.is_dir():
        return []
    listed: list[dict[str, Any]] = json.loads((CASES / "cases.json").read_text())["cases"]
    return [case for case in listed if case["kind"] == "cad"]


@pytest.fixture
def bench_of_cases(files: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """A bench that reads the cases and writes elsewhere."""
    monkeypatch.setenv(WORKSPACE, str(CASES))
    monkeypatch.setenv(OUTPUT, str(tmp_path))
    return files


def tolerance(text: str) -> float:
    number = re.match(r"\d[\d.e-]*", text)
    return float(number[0]) / (100 if "%" in text else 1) if number else 1e-8


def check(case: str, expected: dict[str, Any], found: dict[str, Any], verdict: Any) -> bool:
    """Compare one expected value; False when it is not one that is measured."""
    quantity, value = expected["quantity"], expected["value"]
    # FreeCAD's figures are told to nine digits.
    relative = max(tolerance(expected["tolerance"]), 2e-9)
    if quantity.startswith("volume") and isinstance(value, int | float):
        verdict.near(case, QUANTITY.format("volume, mm3"), found["volume_mm3"], value, rel=relative)
    elif quantity.startswith("area"):
        verdict.near(case, QUANTITY.format("area, mm2"), found["surface_area_mm2"], value, rel=relative)
    elif quantity.startswith("bbox"):
        box = found["bounding_box_mm"]
        verdict.near(case, QUANTITY.format("box, mm"), [*box["min_mm"], *box["max_mm"]], value, abs=0.01)
    elif quantity == "solids":
        verdict.equal(case, QUANTITY.format("solids"), found["solids_count"], value)
    elif quantity == "BRep valid":
        verdict.equal(case, QUANTITY.format("valid"), found["is_valid"], value)
    else:
        return False
    return True


@pytest.mark.parametrize("case", [c for c in library() if c["id"] not in UNDEFINED], ids=lambda case: case["id"])
def test_every_expected_value_is_met(case: dict[str, Any], bench_of_cases: Any, verdict: Any) -> None:
    found = bench_of_cases.data("get_properties", input_file=case["files"][0])["properties"]
    assert [each["quantity"] for each in case["expected"] if check(case["id"], each, found, verdict)]


def test_the_parts_of_the_as1_assembly_and_their_colours(bench_of_cases: Any, verdict: Any) -> None:
    case = "cad-s01-as1-ac-214"
    told = bench_of_cases.data("describe_step_file", input_file=f"{case}/as1-ac-214.stp")
    verdict.equal(case, QUANTITY.format("parts"), told["component_count"], 18)
    colours = {each["label"]: each["color"] for each in told["components"]}
    verdict.equal(case, QUANTITY.format("every part has its colour"), None in colours.values(), False)
    nuts = {tuple(colour) for label, colour in colours.items() if label.startswith("NUT")}
    verdict.equal(case, QUANTITY.format("all nuts green"), nuts, {(0.0, 1.0, 0.0)})


def test_red_cube_and_blue_cylinder_are_red_and_blue(bench_of_cases: Any, verdict: Any) -> None:
    case = "cad-s02-red-cube-blue-cylinder"
    file = next((CASES / case).glob("*.step")).relative_to(CASES)
    told = bench_of_cases.data("describe_step_file", input_file=str(file))
    colours = {each["label"]: each["color"] for each in told["components"]}
    red, blue = colours["red_cube"], colours["blue_cylinder"]
    right = red[0] > 2 * max(red[1:]) and blue[2] > 1.5 * max(blue[:2])
    verdict.holds(case, QUANTITY.format("colours"), right, "red cube, blue cylinder", [red, blue])


def test_shells_without_solids_have_no_volume(bench_of_cases: Any, verdict: Any) -> None:
    case = "cad-s07-shells-not-solids-SOT23"
    answer = bench_of_cases.call("get_properties", input_file=f"{case}/SOT23.stp")
    found = answer["data"]["properties"]
    verdict.equal(case, QUANTITY.format("solids"), found["solids_count"], 0)
    verdict.holds(case, QUANTITY.format("volume"), "volume_mm3" not in found, "none", found.get("volume_mm3"))
    verdict.near(case, QUANTITY.format("area, mm2"), found["surface_area_mm2"], 17.487746, rel=1e-6)
    verdict.told(case, QUANTITY.format("warning"), answer["warnings"], "no solid")


def test_a_file_without_geometry_is_refused(bench_of_cases: Any, verdict: Any) -> None:
    error = bench_of_cases.refused("get_properties", input_file="cad-s10-no-geometry/Aufspannung.stp")
    verdict.equal("cad-s10-no-geometry", QUANTITY.format("refused as"), error["data"]["kind"], "no_geometry")


def test_mixed_units_neither_reach_the_reader_nor_would_they_hurt_a_session(bench_of_cases: Any, verdict: Any) -> None:
    bench, case, path = bench_of_cases, "cad-s12-mixed-units-segfault", "cad-s12-mixed-units-segfault/U008.stp"
    error = bench.refused("get_properties", input_file=path)
    verdict.equal(case, QUANTITY.format("refused as"), error["data"]["kind"], "mixed_units")
    session = bench.server.workbench.open("Mixed")
    with pytest.raises(Exception, match="crashes FreeCAD's STEP reader"):
        session.ask(
            "import_step", path=str(CASES / path), scratch=str(bench.workspace), shown=path, name="x", named=False
        )
    alive = session.ask("describe_session")["objects"] == []
    verdict.holds(case, QUANTITY.format("session after its crash"), alive, "alive", "alive" if alive else "gone")
    bench.server.workbench.close(session.session_id)


@pytest.mark.parametrize("name", ["u01_block_inch", "u03_block_mm"])
def test_a_block_of_one_by_two_by_three_inches(bench_of_cases: Any, verdict: Any, name: str) -> None:
    # Both files in the library declare millimetres.
    told = bench_of_cases.data("get_properties", input_file=f"small/{name}.step")
    found = told["properties"]["bounding_box_mm"]["size_mm"]
    verdict.near(f"small/{name}", QUANTITY.format("size, mm"), found, [25.4, 50.8, 76.2], rel=1e-6)


def test_a_block_that_says_metres_is_doubted(bench_of_cases: Any, verdict: Any) -> None:
    answer = bench_of_cases.call("get_properties", input_file="small/u04_block_mislabelled_metre.step")
    told = answer.get("warnings", [])
    verdict.told("small/u04_block_mislabelled_metre", QUANTITY.format("warning"), told, "look like millimetres")


def test_a_file_that_is_no_step_is_refused(bench_of_cases: Any, verdict: Any) -> None:
    error = bench_of_cases.refused("get_properties", input_file="small/u05_not_a_step.step")
    verdict.refused("small/u05_not_a_step", error["message"], "no STEP|not STEP|not a STEP")


def test_two_colours_stay_apart(bench_of_cases: Any, verdict: Any) -> None:
    told = bench_of_cases.data("describe_step_file", input_file="small/k_two_colours.step")
    colours = {each["label"]: each["color"] for each in told["components"]}
    verdict.near("small/k_two_colours", QUANTITY.format("red"), colours["red"], [0.8, 0.1, 0.1], abs=1e-6)
    verdict.near("small/k_two_colours", QUANTITY.format("blue"), colours["blue"], [0.1, 0.1, 0.8], abs=1e-6)


def test_a_byte_order_mark_is_read_over(bench_of_cases: Any, verdict: Any) -> None:
    told = bench_of_cases.data("get_properties", input_file="hostile-s06-encodings/h10_utf8bom_crlf.step")
    found = told["properties"]["volume_mm3"]
    verdict.near("hostile-s06-encodings", QUANTITY.format("volume with BOM"), found, 1785.3981633974483, rel=1e-6)


def test_an_assembly_bomb_is_refused_before_it_unfolds(bench_of_cases: Any, verdict: Any) -> None:
    case = "hostile-s01-assembly-bomb"
    files: list[Path] = sorted((CASES / case).glob("*.st*p"))
    reader: Callable[..., Any] = bench_of_cases.refused
    error = reader("get_properties", input_file=str(files[0].relative_to(CASES)))
    verdict.equal(case, QUANTITY.format("refused as"), error["data"]["kind"], "assembly_too_large")
