"""Requests that solve without a word and answer another question than was meant: each says so."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.program("ccx")
STEEL = {
    "youngs_modulus_mpa": 210000.0, "poissons_ratio": 0.3, "density_kg_m3": 7850.0, "expansion_per_k": 1.2e-5,
    "thermal_conductivity_w_mk": 50.0,
}  # fmt: skip
LENGTH, WIDTH, HEIGHT = 100.0, 10.0, 10.0


@pytest.fixture
def bar(calculix: Any, block: Callable[..., str]) -> str:
    name: str = calculix.write("bar.inp", block((10, 1, 1), (LENGTH, WIDTH, HEIGHT)))
    return name


def said(answer: dict[str, Any]) -> str:
    return "\n".join(answer.get("warnings", ()))


async def static(calculix: Any, mesh: str, *loads: dict[str, Any], **more: Any) -> dict[str, Any]:
    arguments = {"material": STEEL, "supports": [{"node_set": "X0"}], **more}
    answer: dict[str, Any] = await calculix.call(
        "run_fea", mesh_file=mesh, analysis_type="static_stress", loads=list(loads), **arguments
    )
    return answer


async def test_loads_that_cancel_out_are_told_from_a_strong_part(calculix: Any, bar: str) -> None:
    up, down = ({"node_set": "X1", "force_n": [0, 0, force]} for force in (50, -50))
    assert "cancel out" in said(await static(calculix, bar, up, down))
    assert "every load is zero" in said(await static(calculix, bar, {"node_set": "X1", "force_n": [0, 0, 0]}))


async def test_loads_that_only_sum_to_zero_strain_the_part_and_are_not_warned_of(calculix: Any, bar: str) -> None:
    pull = [{"node_set": name, "force_n": [force, 0, 0]} for name, force in (("X1", 1000), ("X0", -1000))]
    held = [{"node_set": "X0", "directions": ["x"]}, {"node_set": "Y0", "directions": ["y"]},
            {"node_set": "Z0", "directions": ["z"]}]  # fmt: skip
    answer = await static(calculix, bar, *pull, supports=held)
    assert answer["data"]["peak"]["von_mises_mpa"] == pytest.approx(1000 / (WIDTH * HEIGHT), rel=1e-3)
    assert "Nothing is loaded" not in said(answer)


async def test_gravity_in_mm_is_called_by_its_name(calculix: Any, bar: str) -> None:
    assert "mm/s2" in said(await static(calculix, bar, {"acceleration_m_s2": [0, 0, -9810]}))
    assert "mm/s2" not in said(await static(calculix, bar, {"acceleration_m_s2": [0, 0, -9.81]}))


async def test_loads_of_a_modal_analysis_are_said_to_be_left_out(calculix: Any, bar: str) -> None:
    arguments = {"mesh_file": bar, "analysis_type": "modal", "material": STEEL, "fixed_node_set": "X0"}
    loaded = await calculix.call("run_fea", **arguments, loads=[{"node_set": "X1", "force_n": [1000, 0, 0]}])
    assert "1 load left out" in said(loaded)
    assert said(await calculix.call("run_fea", **arguments)) == ""


async def test_a_load_that_pulls_is_refused_as_a_buckling_load(calculix: Any, bar: str, refused: Any) -> None:
    with pytest.raises(refused, match="does not buckle the part") as fault:
        await calculix.data(
            "run_fea", mesh_file=bar, analysis_type="buckling", material=STEEL, fixed_node_set="X0",
            load_node_set="X1", load_force_n=[1, 0, 0],
        )  # fmt: skip
    assert "reverse it" in fault.value.data["fix"]


async def test_a_density_in_g_cm3_is_called_by_its_name(calculix: Any, bar: str) -> None:
    answer = await calculix.call(
        "run_fea", mesh_file=bar, analysis_type="modal", fixed_node_set="X0", material=STEEL | {"density_kg_m3": 7.85}
    )
    assert "g/cm3" in said(answer)


async def test_a_modulus_in_gpa_is_called_by_its_name(calculix: Any, bar: str) -> None:
    load = {"node_set": "X1", "force_n": [0, 0, -1]}
    assert "GPa" in said(await static(calculix, bar, load, material=STEEL | {"youngs_modulus_mpa": 210.0}))
    bare = {"youngs_modulus_mpa": 69.0, "poissons_ratio": 0.33}
    assert "GPa" in said(await static(calculix, bar, load, material=bare))
    polyethylene = {"youngs_modulus_mpa": 200.0, "poissons_ratio": 0.46, "density_kg_m3": 920.0}
    assert "GPa" not in said(await static(calculix, bar, load, material=polyethylene))


async def test_elements_larger_than_the_part_are_warned_of(calculix: Any, step_box: Callable[..., Path]) -> None:
    pytest.importorskip("gmsh")
    shutil.copy(step_box("slender", (0, 0, 0, LENGTH, WIDTH, HEIGHT)), calculix.workspace / "slender.step")
    deflection = 100 * LENGTH**3 / (3 * 210000 * WIDTH * HEIGHT**3 / 12)
    told = {}
    for size in (500, 5):
        answer = await calculix.call(
            "run_fea", step_file="slender.step", analysis_type="static_stress", material=STEEL, element_size_mm=size,
            supports=[{"face": "-x"}], loads=[{"face": "+x", "force_n": [0, 0, -100]}], overwrite=True,
        )  # fmt: skip
        told[size] = (answer["data"]["max_displacement_mm"] / deflection, "element_size_mm 500" in said(answer))
    assert told[500][0] < 0.95
    assert told[500][1]
    assert told[5][0] == pytest.approx(1, rel=0.02)
    assert not told[5][1]


async def test_heat_put_where_the_temperature_is_held_is_warned_of(calculix: Any, bar: str) -> None:
    answer = await calculix.call(
        "run_thermal", mesh_file=bar, material=STEEL,
        loads=[{"node_set": "X0", "power_w": 10}, {"node_set": "X0", "temperature_c": 20}],
    )  # fmt: skip
    assert "100% of the heat on node set X0" in said(answer)


async def test_two_temperatures_for_the_same_nodes_are_warned_of(calculix: Any, bar: str) -> None:
    held = [{"node_set": "X0", "temperature_c": 100}, {"node_set": "Z1", "temperature_c": 0}]
    answer = await calculix.call("run_thermal", mesh_file=bar, material=STEEL, loads=held)
    assert "3 nodes belong to both" in said(answer)
    assert "singular" in said(answer)
    same = [{**load, "temperature_c": 50} for load in held]
    warm = await calculix.call("run_thermal", mesh_file=bar, material=STEEL, loads=same, overwrite=True)
    assert "belong to both" not in said(warm)
    assert warm["data"]["max_temperature_c"] == pytest.approx(50)


async def test_a_part_as_warm_as_the_air_around_it_is_not_out_of_balance(calculix: Any, bar: str) -> None:
    loads = [{"node_set": "X0", "temperature_c": 20}, {"node_set": "X1", "film_w_m2k": 100, "ambient_c": 20}]
    data = await calculix.data("run_thermal", mesh_file=bar, material=STEEL, loads=loads)
    assert data["max_temperature_c"] == pytest.approx(20)
    assert data["heat_in_w"] == pytest.approx(0, abs=1e-3)


@pytest.mark.parametrize("load", [{"temperature_c": -400}, {"film_w_m2k": 10, "ambient_c": -300}])
async def test_temperatures_below_absolute_zero_are_refused(
    calculix: Any, bar: str, refused: Any, load: dict[str, float]
) -> None:
    with pytest.raises(refused, match="absolute zero"):
        await calculix.data("run_thermal", mesh_file=bar, material=STEEL, loads=[{"node_set": "X0", **load}])


async def test_one_support_that_moves_where_another_holds_is_warned_of(calculix: Any, bar: str) -> None:
    pushed = {"node_set": "Z1", "displacement_mm": {"z": 0.01}}
    answer = await static(calculix, bar, supports=[{"node_set": "X0"}, pushed])
    assert "3 nodes belong to both" in said(answer)
    assert np.isfinite(answer["data"]["max_displacement_mm"])
