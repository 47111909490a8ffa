"""Natural frequencies and buckling loads against beam theory."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.program("ccx")
E_MPA, DENSITY = 210000.0, 7850.0
STEEL = {"youngs_modulus_mpa": E_MPA, "poissons_ratio": 0.3, "density_kg_m3": DENSITY}
LENGTH, WIDTH, HEIGHT = 200.0, 10.0, 20.0


def bending_hz(root: float, inertia: float) -> float:
    """Euler-Bernoulli: f = root^2 / 2 pi sqrt(E I / rho A L^4)."""
    return root**2 / (2 * np.pi) * np.sqrt(E_MPA * inertia / (DENSITY * 1e-12 * WIDTH * HEIGHT * LENGTH**4))


async def test_a_cantilever_rings_at_its_bending_frequencies(calculix: Any, block: Callable[..., str]) -> None:
    mesh = calculix.write("bar.inp", block((20, 2, 2), (LENGTH, WIDTH, HEIGHT)))
    answer = await calculix.call(
        "run_fea", mesh_file=mesh, analysis_type="modal", material=STEEL, fixed_node_set="X0", num_modes=3
    )
    data = answer["data"]
    weak, strong = HEIGHT * WIDTH**3 / 12, WIDTH * HEIGHT**3 / 12
    assert data["frequencies_hz"][0] == pytest.approx(bending_hz(1.87510, weak), rel=0.01)
    assert data["frequencies_hz"][1] == pytest.approx(bending_hz(1.87510, strong), rel=0.015)
    assert data["frequencies_hz"][2] == pytest.approx(bending_hz(4.69409, weak), rel=0.02)
    assert data["rigid_body_mode_count"] == 0
    assert "Hz" in answer["summary"]


async def test_a_free_bar_has_six_rigid_body_modes_left_out(calculix: Any, block: Callable[..., str]) -> None:
    mesh = calculix.write("bar.inp", block((20, 2, 2), (LENGTH, WIDTH, HEIGHT)))
    data = await calculix.data("run_fea", mesh_file=mesh, analysis_type="modal", material=STEEL, num_modes=2)
    assert data["rigid_body_mode_count"] == 6
    assert len(data["frequencies_hz"]) == 2
    assert data["frequencies_hz"][0] == pytest.approx(bending_hz(4.73004, HEIGHT * WIDTH**3 / 12), rel=0.015)


async def test_a_column_buckles_at_eulers_load(calculix: Any, block: Callable[..., str]) -> None:
    mesh = calculix.write("bar.inp", block((20, 2, 2), (LENGTH, WIDTH, HEIGHT)))
    data = await calculix.data(
        "run_fea", mesh_file=mesh, analysis_type="buckling", material=STEEL, fixed_node_set="X0", load_node_set="X1",
        load_force_n=[-1000, 0, 0], num_modes=2,
    )  # fmt: skip
    critical = np.pi**2 * E_MPA * (HEIGHT * WIDTH**3 / 12) / (4 * LENGTH**2)
    assert data["buckling_factors"][0] == pytest.approx(critical / 1000, rel=0.01)


async def test_a_mode_shape_is_drawn(calculix: Any, block: Callable[..., str]) -> None:
    pytest.importorskip("vtkmodules")
    mesh = calculix.write("bar.inp", block((10, 1, 1), (LENGTH, WIDTH, HEIGHT)))
    answer = await calculix.call(
        "run_fea", mesh_file=mesh, analysis_type="modal", material=STEEL, fixed_node_set="X0", picture=True
    )
    assert (calculix.output / answer["data"]["picture_file"]).read_bytes().startswith(b"\x89PNG")
    assert "Hz" in answer["pictures"][0]["caption"]


async def test_modes_need_a_density(calculix: Any, block: Callable[..., str], refused: Any) -> None:
    mesh = calculix.write("bar.inp", block((2, 1, 1), (20, 10, 10)))
    with pytest.raises(refused, match="density_kg_m3"):
        await calculix.data(
            "run_fea", mesh_file=mesh, analysis_type="modal", fixed_node_set="X0",
            material={"youngs_modulus_mpa": E_MPA, "poissons_ratio": 0.3},
        )  # fmt: skip
