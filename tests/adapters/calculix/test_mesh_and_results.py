"""`validate_mesh` and `extract_results`, and what the solver leaves when it lies."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from metaforge.adapters.calculix.solver import Watcher, solve
from metaforge.core.errors import ToolCrashed, ToolError
from metaforge.engineering.mesh import ElementBlock, Mesh
from metaforge.engineering.programs import ProgramResult

TET = Mesh(
    np.arange(1, 5), np.array([[0, 0, 0], [10.0, 0, 0], [0, 10, 0], [0, 0, 10]]),
    (ElementBlock("C3D4", np.array([7]), np.array([[1, 2, 3, 4]])),),
)  # fmt: skip


async def test_a_good_mesh_is_valid(calculix: Any, block: Callable[..., str]) -> None:
    name = calculix.write("bar.inp", block((5, 2, 2), (50, 10, 10)))
    answer = await calculix.call("validate_mesh", mesh_file=name)
    data = answer["data"]
    assert data["valid"]
    assert data["issues"] == []
    assert data["element_types"] == {"C3D20": 20}
    assert data["volume_mm3"] == pytest.approx(5000)
    assert data["max_aspect_ratio"] == pytest.approx(2.0)
    assert data["node_sets"]["X0"] == 21
    assert "valid" in answer["summary"]


async def test_every_fault_of_a_mesh_is_listed(calculix: Any, block: Callable[..., str]) -> None:
    mesh = block((5, 1, 1), (50, 10, 10), "C3D8")
    mesh += "*NODE\n900, 5, 5, 99\n901, 0, 0, 0\n902, 10, 0, 0\n903, 0, 10, 0\n904, 0, 0, 10\n"
    mesh += "*ELEMENT, TYPE=C3D4, ELSET=LOOSE\n900, 901, 902, 903, 904\n901, 902, 901, 903, 904\n"
    data = await calculix.data("validate_mesh", mesh_file=calculix.write("bad.inp", mesh))
    told = " | ".join(data["issues"])
    assert not data["valid"]
    assert data["bad_elements"][0]["element_id"] == 901
    for words in ("1 of 7 elements are turned inside out", "same nodes", "1 nodes belong to no element: 900",
                  "2 bodies", "lie exactly on another node", "C3D10"):  # fmt: skip
        assert words in told


async def test_stretched_elements_fail_the_callers_own_limit(calculix: Any, block: Callable[..., str]) -> None:
    name = calculix.write("bar.inp", block((1, 1, 1), (80, 10, 10)))
    data = await calculix.data("validate_mesh", mesh_file=name, max_aspect_ratio=5)
    assert not data["valid"]
    assert "above 5" in data["issues"][0]
    assert (await calculix.data("validate_mesh", mesh_file=name))["valid"]


@pytest.mark.program("ccx")
async def test_results_are_read_back_from_the_file(calculix: Any, block: Callable[..., str]) -> None:
    mesh = calculix.write("bar.inp", block((6, 2, 2), (60, 10, 10)))
    solved = await calculix.data(
        "run_fea", mesh_file=mesh, analysis_type="static_stress", material="steel-316", fixed_node_set="X0",
        load_node_set="X1", load_force_n=[0, 0, -100], output_path="out/bar.frd",
    )  # fmt: skip
    content = (calculix.output / "out/bar.frd").read_bytes()
    (calculix.workspace / "bar.frd").write_bytes(content)
    data = await calculix.data("extract_results", frd_path="bar.frd", include_node_data=True)
    assert data["stress"]["max_mpa"] == pytest.approx(solved["peak"]["von_mises_mpa"])
    assert data["displacement"]["max_mm"] == pytest.approx(solved["max_displacement_mm"])
    assert data["displacement"]["max_vector_mm"][2] < 0
    assert data["metadata"]["complete"]
    assert data["metadata"]["element_count"] == 24
    assert data["node_data"][0]["von_mises_mpa"] == data["stress"]["max_mpa"]
    assert data["stress"]["accuracy"]["max_to_median_ratio"] > 1
    half = calculix.workspace / "half.frd"
    half.write_bytes(content[: int(len(content) * 0.7)])
    answer = await calculix.call("extract_results", frd_path="half.frd")
    assert not answer["data"]["metadata"]["complete"]
    assert any("ends early" in warning for warning in answer["warnings"])


@pytest.mark.program("ccx")
async def test_a_spike_in_the_stress_is_called_suspicious(calculix: Any, block: Callable[..., str]) -> None:
    mesh = block((20, 4, 4), (100, 20, 20), "C3D8") + "*NSET, NSET=POINT\n105\n"
    solved = await calculix.data(
        "run_fea", mesh_file=calculix.write("bar.inp", mesh), analysis_type="static_stress", material="steel-316",
        fixed_node_set="X0", load_node_set="POINT", load_force_n=[0, 0, -1000],
    )  # fmt: skip
    (calculix.workspace / "r.frd").write_bytes((calculix.output / solved["frd_file"]).read_bytes())
    answer = await calculix.call("extract_results", frd_path="r.frd")
    assert answer["data"]["stress"]["accuracy"]["suspicious"]
    assert "times the median" in answer["warnings"][0]


async def test_a_file_without_results_says_so(calculix: Any, refused: Any) -> None:
    mesh = "    1C\n    2C                             1                                     1\n"
    calculix.write("mesh_only.frd", mesh + " -1         1 0.00000E+00 0.00000E+00 0.00000E+00\n -3\n 9999\n")
    with pytest.raises(refused, match="stopped before it wrote results"):
        await calculix.data("extract_results", frd_path="mesh_only.frd")
    calculix.write("solid.frd", "solid cube\n facet normal 0 0 1\n")
    with pytest.raises(refused, match="Not a CalculiX result file: it starts with 'solid"):
        await calculix.data("extract_results", frd_path="solid.frd")


def replay(output: str, frd: str = "", exit_code: int | None = 0, signal: int = 0) -> Callable[..., ProgramResult]:
    """Answer with what a real ccx left behind."""

    def run(
        command: Sequence[str], *, cwd: Path, timeout_seconds: float, environment: Mapping[str, str] | None = None,
        watch: Any = None, heartbeat: Any = None,
    ) -> ProgramResult:  # fmt: skip
        if frd:
            (cwd / "job.frd").write_text(frd)
        return ProgramResult(tuple(command), exit_code, signal, output, 0.1)

    return run


RECORDED = [
    (" *ERROR in e_c3d: nonpositive jacobian\n        determinant in element           7\n\n", 201, "inverted_element",
     "Element 7 is turned inside out"),
    (" *ERROR in calinput: no material was assigned\n        to element            7\n", 201, "no_material",
     "Element 7 has no material"),
    (" *ERROR: too many cutbacks\n best solution and residuals are in the frd file\n", 201, "no_convergence",
     "does not converge"),
    (" *ERROR reading *ELASTIC. Card image:\n                       *ELASTIC,TYPE=FOO\n", 201, "solver_refused",
     "reading *ELASTIC"),
    ("", 0, "no_results", "stopped before it finished"),
    (" *ERROR in u_calloc: error allocating memory\nvariable=mast1, file=ccx_2.20.c, line=1150\n", 16, "memory_limit",
     "out of memory on 4 nodes"),
    ("\n ALLOCATE failure : bytes 1200, line 78, file DV.c\n", 255, "memory_limit", "out of memory"),
    (" Job finished\n", 0, "no_results", "without writing a result file"),
]  # fmt: skip


@pytest.mark.program("ccx")
@pytest.mark.parametrize(("output", "exit_code", "kind", "message"), RECORDED)
def test_what_ccx_says_is_told_in_the_fields_words(
    tmp_path: Path, output: str, exit_code: int, kind: str, message: str
) -> None:
    with pytest.raises(ToolError) as caught:
        solve(
            "*NODE\n", tmp_path, TET, needs=("DISP",), timeout_seconds=5, progress=lambda f, t: None,
            run=replay(output, exit_code=exit_code),
        )  # fmt: skip
    assert caught.value.kind == kind
    assert message in caught.value.message
    if "Element 7" in message:
        assert caught.value.where == "element 7 (C3D4), centroid [2.5, 2.5, 2.5] mm"


@pytest.mark.program("ccx")
def test_a_crash_of_ccx_is_told_by_its_signal(tmp_path: Path) -> None:
    with pytest.raises(ToolCrashed, match="signal 11"):
        solve(
            "*NODE\n", tmp_path, TET, needs=(), timeout_seconds=5, progress=lambda f, t: None,
            run=replay("STEP 1\n", exit_code=None, signal=11),
        )  # fmt: skip


@pytest.mark.program("ccx")
def test_numbers_that_are_not_finite_are_refused(tmp_path: Path) -> None:
    frd = (
        "    1C\n    2C                             1                                     1\n"
        " -1         1 0.00000E+00 0.00000E+00 0.00000E+00\n -3\n"
        "  100CL  101 1.000000000           1                     0    1           1\n"
        " -4  DISP        4    1\n -5  D1          1    2    1    0\n -5  D2          1    2    2    0\n"
        " -5  D3          1    2    3    0\n -5  ALL         1    2    0    0    1ALL\n"
        " -1         1         nan         nan         nan\n -3\n 9999\n"
    )
    with pytest.raises(ToolError, match="not finite") as caught:
        solve(
            "*NODE\n", tmp_path, TET, needs=("DISP",), timeout_seconds=5, progress=lambda f, t: None,
            run=replay(" Job finished\n", frd),
        )  # fmt: skip
    assert caught.value.kind == "not_finite"


def test_the_solvers_chatter_becomes_progress() -> None:
    watch = Watcher()
    said = [watch(line) for line in ("STEP            2", "increment           3 attempt           1",
                                     "iteration            4")]  # fmt: skip
    assert said[-1] == "step 2, increment 3: iteration 4"


async def test_a_file_without_nodes_is_no_mesh(calculix, refused) -> None:
    with pytest.raises(refused, match="holds no nodes"):
        await calculix.call("validate_mesh", mesh_file=calculix.write("empty.inp", "*HEADING\nnothing\n"))
