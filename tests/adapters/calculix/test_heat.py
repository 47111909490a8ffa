"""Heat conduction against closed-form answers."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.program("ccx")
CONDUCTIVITY, DENSITY, SPECIFIC_HEAT = 50.0, 7850.0, 460.0
MATERIAL = {
    "thermal_conductivity_w_mk": CONDUCTIVITY, "density_kg_m3": DENSITY, "specific_heat_j_kgk": SPECIFIC_HEAT,
}  # fmt: skip


async def test_power_through_a_bar_makes_a_linear_slope(calculix: Any, block: Callable[..., str]) -> None:
    power, length_m, area_m2, sink = 20.0, 0.2, 10e-3 * 20e-3, 25.0
    mesh = calculix.write("bar.inp", block((10, 1, 2), (200, 10, 20)))
    answer = await calculix.call(
        "run_thermal", mesh_file=mesh, material=MATERIAL, heat_source_node_set="X1", power_dissipation_w=power,
        sink_node_set="X0", sink_temp_c=sink,
    )  # fmt: skip
    data = answer["data"]
    assert data["max_temperature_c"] == pytest.approx(sink + power * length_m / (CONDUCTIVITY * area_m2), rel=1e-4)
    assert data["min_temperature_c"] == pytest.approx(sink)
    assert data["heat_in_w"] == pytest.approx(power, rel=1e-4)
    assert data["heat_out_w"] == pytest.approx(power, rel=1e-4)
    assert data["max_heat_flux_w_m2"] == pytest.approx(power / area_m2, rel=1e-3)


async def test_a_film_carries_away_what_flows_in(calculix: Any, step_box: Callable[..., Path]) -> None:
    flux, film, ambient, length_m = 2000.0, 100.0, 30.0, 0.05
    shutil.copy(step_box("slab", (0, 0, 0, 50, 20, 20)), calculix.workspace / "slab.step")
    data = await calculix.data(
        "run_thermal", step_file="slab.step", material=MATERIAL, element_size_mm=8,
        loads=[{"face": "-x", "heat_flux_w_m2": flux}, {"face": "+x", "film_w_m2k": film, "ambient_c": ambient}],
    )  # fmt: skip
    cool = ambient + flux / film
    assert data["min_temperature_c"] == pytest.approx(cool, rel=1e-4)
    assert data["max_temperature_c"] == pytest.approx(cool + flux * length_m / CONDUCTIVITY, rel=1e-4)
    assert data["heat_in_w"] == pytest.approx(flux * 20e-3 * 20e-3, rel=1e-4)
    assert data["balance_error_ratio"] < 0.01


async def test_a_quenched_slab_follows_fouriers_series(calculix: Any, block: Callable[..., str]) -> None:
    thickness, end, hot, cold = 0.02, 4.0, 200.0, 20.0
    mesh = calculix.write("slab.inp", block((20, 1, 1), (thickness * 1000, 2, 2), "C3D8"))
    data = await calculix.data(
        "run_thermal", mesh_file=mesh, material=MATERIAL, analysis_mode="transient", duration_seconds=end,
        time_step_seconds=0.04, initial_temperature_c=hot,
        loads=[{"node_set": "X0", "temperature_c": cold}, {"node_set": "X1", "temperature_c": cold}],
    )  # fmt: skip
    diffusivity = CONDUCTIVITY / (DENSITY * SPECIFIC_HEAT)
    middle = sum(
        4 / (n * np.pi) * np.sin(n * np.pi / 2) * np.exp(-((n * np.pi / thickness) ** 2) * diffusivity * end)
        for n in range(1, 40, 2)
    )
    assert data["max_temperature_c"] == pytest.approx(cold + (hot - cold) * middle, rel=0.01)
    assert data["history"][-1]["time_seconds"] == pytest.approx(end)
    assert 10 < len(data["history"]) <= 52


BAR_CONDITIONS = [
    {"X0": {"temperature_c": 25.0}, "X1": {"power_w": 20.0}},
    {"X0": 25, "X1": {"node_set": "X1", "power_w": 20.0}},
    {"heat_source_node_set": "X1", "power_dissipation_w": 20.0, "sink_node_set": "X0", "sink_temp_c": 25.0},
]


@pytest.mark.parametrize("conditions", BAR_CONDITIONS)
async def test_conditions_by_place_are_loads(calculix: Any, block: Callable[..., str], conditions: dict) -> None:
    mesh = calculix.write("bar.inp", block((10, 1, 2), (200, 10, 20)))
    data = await calculix.data("run_thermal", mesh_file=mesh, material=MATERIAL, boundary_conditions=conditions)
    assert data["max_temperature_c"] == pytest.approx(25 + 20 * 0.2 / (CONDUCTIVITY * 2e-4), rel=1e-4)
    assert data["min_temperature_c"] == pytest.approx(25)


async def test_conditions_name_faces_of_a_part(calculix: Any, step_box: Callable[..., Path]) -> None:
    shutil.copy(step_box("slab", (0, 0, 0, 50, 20, 20)), calculix.workspace / "slab.step")
    data = await calculix.data(
        "run_thermal", step_file="slab.step", material=MATERIAL, element_size_mm=8,
        boundary_conditions={"-x": {"heat_flux_w_m2": 2000}, "+x": {"film_w_m2k": 100, "ambient_c": 30}},
    )  # fmt: skip
    assert data["min_temperature_c"] == pytest.approx(50, rel=1e-4)
    assert data["max_temperature_c"] == pytest.approx(50 + 2000 * 0.05 / CONDUCTIVITY, rel=1e-4)


async def test_conditions_that_are_none_are_all_named(calculix: Any, block: Callable[..., str], refused: Any) -> None:
    mesh = calculix.write("bar.inp", block((2, 1, 1), (20, 10, 10)))
    with pytest.raises(refused) as caught:
        await calculix.data(
            "run_thermal", mesh_file=mesh, material="copper",
            boundary_conditions={
                "X0": "cold", "X1": {"temperature_k": 300}, "sink_node_set": "X0", "sink_temp_c": "warm",
            },
        )  # fmt: skip
    told = str(caught.value)
    for part in ("X0: is no condition", "boundary_conditions.X1: ", "temperature_k", "temperature_c Input should"):
        assert part in told
    with pytest.raises(refused, match="sink_temp_c needs sink_node_set"):
        await calculix.data(
            "run_thermal", mesh_file=mesh, material="copper", boundary_conditions={"sink_temp_c": 20}
        )  # fmt: skip


async def test_run_fea_computes_steady_heat_too(calculix: Any, block: Callable[..., str]) -> None:
    mesh = calculix.write("bar.inp", block((4, 1, 1), (40, 10, 10)))
    data = await calculix.data(
        "run_fea", mesh_file=mesh, analysis_type="thermal", material="copper",
        loads=[{"node_set": "X0", "temperature_c": 20}, {"node_set": "X1", "temperature_c": 80}],
    )  # fmt: skip
    assert (data["min_temperature_c"], data["max_temperature_c"]) == (20.0, 80.0)


async def test_heat_that_cannot_leave_is_refused(calculix: Any, block: Callable[..., str], refused: Any) -> None:
    mesh = calculix.write("bar.inp", block((2, 1, 1), (20, 10, 10)))
    with pytest.raises(refused, match="heat has nowhere to go") as caught:
        await calculix.data("run_thermal", mesh_file=mesh, material="copper", loads=[{"node_set": "X1", "power_w": 5}])
    assert caught.value.data["kind"] == "no_heat_sink"


async def test_a_transient_without_duration_is_refused(calculix: Any, block: Callable[..., str], refused: Any) -> None:
    mesh = calculix.write("bar.inp", block((2, 1, 1), (20, 10, 10)))
    with pytest.raises(refused, match="duration_seconds"):
        await calculix.data(
            "run_thermal", mesh_file=mesh, material="copper", analysis_mode="transient",
            loads=[{"node_set": "X1", "temperature_c": 5}],
        )  # fmt: skip
