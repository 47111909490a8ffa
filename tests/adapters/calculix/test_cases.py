"""The shared cases: published benchmarks, other people's decks, and one fault each.

How each was run, so that a reader can tell what the tools express and what needs a deck:

| case | way |
|---|---|
| fea-s01, s02, s03, s04, s10, s12, user-s01 (C3D8) | the case's own deck, `run_fea` with `mesh_file` |
| fea-s05 LE10 | arguments alone: `step_file`, supports and pressure on faces |
| fea-s06 LE1, fea-s13 T1 | arguments on a mesh written here |
| fea-s08 T4 | arguments of `run_thermal` on a mesh written here |
| fea-s07 LE11 (a temperature field), fea-s09 T3 (a temperature in time) | a deck written here |
| fea-s11, user-s01 (C3D8I), hostile-s05, small f03 f04 f09 f11 | the case's own deck; must be refused |
| small f01, f02, f07 | the case's own deck |
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from metaforge.formats.frd import Results

pytestmark = [pytest.mark.cases, pytest.mark.program("ccx")]
Mapping = Callable[[float, float, float], tuple[float, float, float]]
CORNERS = [(0, 0, 0), (2, 0, 0), (2, 2, 0), (0, 2, 0), (0, 0, 2), (2, 0, 2), (2, 2, 2), (0, 2, 2)]
MIDDLES = [
    (1, 0, 0), (2, 1, 0), (1, 2, 0), (0, 1, 0), (1, 0, 2), (2, 1, 2), (1, 2, 2), (0, 1, 2),
    (0, 0, 1), (2, 0, 1), (2, 2, 1), (0, 2, 1),
]  # fmt: skip


@pytest.fixture
def deck(calculix: Any, cases_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run a case's own deck."""
    monkeypatch.setenv("METAFORGE_WORKER_WORKSPACE", str(cases_dir))

    async def run(name: str, analysis: str = "static_stress") -> dict[str, Any]:
        found: dict[str, Any] = await calculix.call("run_fea", mesh_file=name, analysis_type=analysis)
        return found

    return run


class Grid:
    """Twenty-node bricks from mapped blocks that share the nodes where they touch."""

    def __init__(self) -> None:
        self.nodes: dict[tuple[int, int, int], int] = {}
        self.points: list[tuple[float, float, float]] = []
        self.lines: list[str] = []
        self.count = 0

    def add(self, mapping: Mapping, cells: tuple[int, int, int], elset: str) -> None:
        self.lines.append(f"*ELEMENT, TYPE=C3D20R, ELSET={elset}")
        for cell in np.ndindex(*cells):
            row = [self.node(mapping, [(2 * c + o) / (2 * n) for c, o, n in zip(cell, at, cells, strict=True)])
                   for at in CORNERS + MIDDLES]  # fmt: skip
            self.count += 1
            self.lines += [f"{self.count}, " + ", ".join(map(str, row[:10])) + ",", ", ".join(map(str, row[10:]))]

    def node(self, mapping: Mapping, at: list[float]) -> int:
        point = mapping(*at)
        key = (round(point[0] * 1e7), round(point[1] * 1e7), round(point[2] * 1e7))
        if key not in self.nodes:
            self.nodes[key] = len(self.nodes) + 1
            self.points.append(point)
        return self.nodes[key]

    def where(self, name: str, test: Callable[["np.ndarray[Any, Any]"], Any]) -> str:
        ids = [i + 1 for i, point in enumerate(self.points) if test(np.array(point))]
        return f"*NSET, NSET={name}\n" + "".join(f"{i},\n" for i in ids)

    def text(self) -> str:
        rows = [f"{i + 1}, " + ", ".join(f"{v:.12g}" for v in point) for i, point in enumerate(self.points)]
        return "*NODE, NSET=NALL\n" + "\n".join([*rows, *self.lines]) + "\n"


def value_at(results: Results, name: str, point: tuple[float, float, float], component: int) -> float:
    """Return a component at the node nearest to a point, which must be there."""
    block = results.last(name)
    assert block is not None
    gaps = np.linalg.norm(results.coordinates_mm - np.array(point), axis=1)
    node = results.node_ids[gaps.argmin()]
    assert gaps.min() < 0.02 * float(np.ptp(results.coordinates_mm, axis=0).max())
    return float(block.values[block.node_ids == node][0, component])


async def test_s01_cantilever_with_shear(calculix: Any, deck: Any, verdict: Any) -> None:
    data = (await deck("fea-s01-cantilever-shear/beamp.inp"))["data"]
    moved = calculix.results(data).last("DISP")
    case = "fea-s01-cantilever-shear"
    verdict.near(case, "tip deflection, mm", float(np.abs(moved.values[:, 1]).max()), 0.0877714, rel=0.01)
    verdict.near(case, "reaction, N", data["reactions_n"][1], -9.0, rel=1e-3)


async def test_s02_euler_buckling(deck: Any, verdict: Any) -> None:
    factors = (await deck("fea-s02-euler-buckling/beamb.inp", "buckling"))["data"]["buckling_factors"]
    verdict.near("fea-s02-euler-buckling", "first buckling factor", factors[0], 48.1914, rel=0.005)
    verdict.near("fea-s02-euler-buckling", "second buckling factor", factors[1], 106.3175, rel=0.001)


async def test_s03_cantilever_modes(deck: Any, verdict: Any) -> None:
    data = (await deck("fea-s03-cantilever-modes/beamf.inp", "modal"))["data"]
    verdict.near("fea-s03-cantilever-modes", "f1, Hz", data["frequencies_hz"][0], 13096.67, rel=0.005)


async def test_s04_body_heating(deck: Any, verdict: Any) -> None:
    data = (await deck("fea-s04-body-heating/beamhtbf.inp", "thermal"))["data"]
    verdict.near("fea-s04-body-heating", "temperature at the free end, C", data["max_temperature_c"], 217.0, abs=0.01)


@pytest.mark.slow
async def test_s05_nafems_le10_from_its_step_file(
    calculix: Any, cases_dir: Path, monkeypatch: pytest.MonkeyPatch, verdict: Any
) -> None:
    monkeypatch.setenv("METAFORGE_WORKER_WORKSPACE", str(cases_dir))
    outer = [{"near_mm": [3250 * np.cos(np.pi / 4), 2750 * np.sin(np.pi / 4), z]} for z in (150, -150)]
    wide = [-1, -1, -1e-3, 3300, 2800, 1e-3]
    answer = await calculix.call(
        "run_fea", step_file="fea-s05-nafems-le10-step/seamplex_le10.step", analysis_type="static_stress",
        material={"youngs_modulus_mpa": 210000, "poissons_ratio": 0.3}, element_size_mm=80,
        supports=[
            {"face": "-y", "directions": ["y"]}, {"face": "-x", "directions": ["x"]},
            *({"face": face, "directions": ["x", "y"]} for face in outer),
            {"face": outer[0], "directions": ["z"], "within_box_mm": wide},
        ],
        loads=[{"face": "top", "pressure_mpa": 1.0}],
    )  # fmt: skip
    sigma_yy = value_at(calculix.results(answer["data"]), "STRESS", (2000, 0, 300), 1)
    verdict.near("fea-s05-nafems-le10-step", "sigma_yy at D, MPa", sigma_yy, -5.38, rel=0.02)


async def test_s06_nafems_le1_elliptic_membrane(calculix: Any, verdict: Any) -> None:
    def membrane(u: float, v: float, w: float) -> tuple[float, float, float]:
        c, s = np.cos(v * np.pi / 2), np.sin(v * np.pi / 2)
        return ((2000 + 1250 * u) * c, (1000 + 1750 * u) * s, 5 * w)

    grid = Grid()
    grid.add(lambda u, v, w: membrane(u**1.5, v, w), (12, 24, 1), "PLATE")
    mesh = grid.text()
    mesh += grid.where("SX", lambda p: abs(p[0]) < 1e-6) + grid.where("SY", lambda p: abs(p[1]) < 1e-6)
    mesh += grid.where("SZ", lambda p: abs(p[2]) < 1e-6)
    mesh += grid.where("RIM", lambda p: abs((p[0] / 3250) ** 2 + (p[1] / 2750) ** 2 - 1) < 1e-6)
    data = await calculix.data(
        "run_fea", mesh_file=calculix.write("le1.inp", mesh), analysis_type="static_stress",
        material={"youngs_modulus_mpa": 210000, "poissons_ratio": 0.3},
        supports=[{"node_set": f"S{axis.upper()}", "directions": [axis]} for axis in "xyz"],
        loads=[{"node_set": "RIM", "pressure_mpa": -10}],
    )  # fmt: skip
    stress = value_at(calculix.results(data), "STRESS", (2000, 0, 0), 1)
    verdict.near("fea-s06-nafems-le1", "sigma_yy at D, MPa", stress, 92.7, rel=0.015)


async def test_s07_nafems_le11_temperature_field(calculix: Any, verdict: Any) -> None:
    half = np.sin(np.pi / 4)
    knee = np.array([np.sqrt(1.4**2 - half**2), half])

    def turned(r: float, z: float, w: float) -> tuple[float, float, float]:
        return (1000 * r * np.cos(w * np.pi / 2), 1000 * r * np.sin(w * np.pi / 2), 1000 * z)

    def sphere(u: float, w: float, v: float) -> tuple[float, float, float]:
        inner, outer = v * np.pi / 4, v * np.arcsin(half / 1.4)
        point = (1 - u) * np.array([np.cos(inner), np.sin(inner)]) + u * 1.4 * np.array([np.cos(outer), np.sin(outer)])
        return turned(point[0], point[1], w)

    def straight(low: Any, high: Any) -> Mapping:
        def mapped(u: float, w: float, v: float) -> tuple[float, float, float]:
            edge = [(1 - v) * np.array(a) + v * np.array(b) for a, b in zip(low, high, strict=True)]
            point = (1 - u) * edge[0] + u * edge[1]
            return turned(float(point[0]), float(point[1]), w)

        return mapped

    waist, top = half + 0.69, half + 1.09
    grid = Grid()
    grid.add(sphere, (4, 8, 6), "BODY")
    grid.add(straight(((half, half), knee), ((half, waist), (1.0, waist))), (4, 8, 6), "BODY")
    grid.add(straight(((half, waist), (1.0, waist)), ((half, top), (1.0, top))), (4, 8, 4), "BODY")
    text = grid.text() + grid.where("SX", lambda p: abs(p[0]) < 1e-6) + grid.where("SY", lambda p: abs(p[1]) < 1e-6)
    text += grid.where("SZ", lambda p: abs(p[2]) < 1e-6 or abs(p[2] - 1000 * top) < 1e-6)
    text += "*MATERIAL, NAME=M\n*ELASTIC\n210000., .3\n*EXPANSION\n2.3e-4\n*SOLID SECTION, ELSET=BODY, MATERIAL=M\n"
    text += "*INITIAL CONDITIONS, TYPE=TEMPERATURE\nNALL, 0.\n*BOUNDARY\nSX, 1\nSY, 2\nSZ, 3\n"
    text += "*STEP\n*STATIC\n*TEMPERATURE\n"
    text += "".join(f"{i + 1}, {(np.hypot(x, y) + z) / 1000:.9g}\n" for i, (x, y, z) in enumerate(grid.points))
    deck = calculix.write("le11.inp", text + "*END STEP\n")
    data = await calculix.data("run_fea", mesh_file=deck, analysis_type="static_stress")
    stress = value_at(calculix.results(data), "STRESS", (1000, 0, 0), 2)
    verdict.near("fea-s07-nafems-le11", "sigma_zz at A, MPa", stress, -105.0, rel=0.03)


async def test_s08_nafems_t4_convection(calculix: Any, block: Callable[..., str], verdict: Any) -> None:
    mesh = calculix.write("t4.inp", block((30, 50, 1), (600, 1000, 10), "C3D20"))
    data = await calculix.data(
        "run_thermal", mesh_file=mesh, material={"thermal_conductivity_w_mk": 52},
        loads=[
            {"node_set": "Y0", "temperature_c": 100},
            *({"node_set": name, "film_w_m2k": 750, "ambient_c": 0} for name in ("X1", "Y1")),
        ],
    )  # fmt: skip
    temperature = value_at(calculix.results(data), "NDTEMP", (600, 200, 0), 0)
    verdict.near("fea-s08-nafems-t4", "T at (0.6, 0.2), C", temperature, 18.3, abs=0.1)


async def test_s09_nafems_t3_transient(calculix: Any, block: Callable[..., str], verdict: Any) -> None:
    wave = "".join(f"{t:.6g}, {100 * np.sin(np.pi * t / 40):.9g}\n" for t in np.linspace(0, 32, 321))
    text = block((50, 1, 1), (100, 2, 2), "C3D8")
    text += f"*AMPLITUDE, NAME=WAVE\n{wave}*MATERIAL, NAME=M\n*CONDUCTIVITY\n35.\n*DENSITY\n7.2e-9\n"
    text += "*SPECIFIC HEAT\n4.405e8\n"
    text += "*SOLID SECTION, ELSET=BODY, MATERIAL=M\n*INITIAL CONDITIONS, TYPE=TEMPERATURE\nNALL, 0.\n"
    text += "*STEP, INC=2000\n*HEAT TRANSFER, DIRECT\n0.05, 32.\n*BOUNDARY\nX0, 11, 11, 0.\n"
    text += "*BOUNDARY, AMPLITUDE=WAVE\nX1, 11, 11, 1.\n*NODE FILE, FREQUENCY=640\nNT\n*END STEP\n"
    data = await calculix.data("run_fea", mesh_file=calculix.write("t3.inp", text), analysis_type="thermal")
    temperature = value_at(calculix.results(data), "NDTEMP", (80, 0, 0), 0)
    verdict.near("fea-s09-nafems-t3", "T at x = 0.08 m, 32 s, C", temperature, 36.6, rel=0.01)


@pytest.mark.parametrize(
    ("name", "tolerance"),
    [("ccx_cantilever_ele_hexa20", 0.015), ("ccx_cantilever_faceload", 0.015), ("ccx_cantilever_ele_seg3", 0.02)],
)
async def test_s10_freecad_cantilevers(calculix: Any, deck: Any, name: str, tolerance: float, verdict: Any) -> None:
    data = (await deck(f"fea-s10-freecad-cantilever/{name}.inp"))["data"]
    moved = calculix.results(data).last("DISP")
    tip_mm = float(np.abs(moved.values[:, 2]).max())
    verdict.near("fea-s10-freecad-cantilever", f"tip, mm, {name}", tip_mm, 87.77, rel=tolerance)


async def test_s11_two_node_beams_are_refused(deck: Any, refused: Any, verdict: Any) -> None:
    with pytest.raises(refused) as caught:
        await deck("fea-s11-freecad-b31-trap/ccx_cantilever_ele_seg2.inp")
    verdict.refused("fea-s11-freecad-b31-trap", str(caught.value), "B31R")


async def test_s12_freecad_box(deck: Any, verdict: Any) -> None:
    data = (await deck("fea-s12-box-static-expected/box_static.inp"))["data"]
    case = "fea-s12-box-static-expected"
    verdict.near(case, "max displacement, mm", data["max_displacement_mm"], 0.0937383, rel=1e-3)
    verdict.near(case, "max von Mises, MPa", data["peak"]["von_mises_mpa"], 2203.509, rel=1e-3)


async def test_s12_freecad_box_rings_free(deck: Any, verdict: Any) -> None:
    data = (await deck("fea-s12-box-static-expected/box_frequency.inp", "modal"))["data"]
    verdict.equal("fea-s12-box-static-expected", "rigid-body modes, free", data["rigid_body_mode_count"], 6)
    assert data["frequencies_hz"][0] > 1e5


async def test_s13_nafems_t1_hot_disc(calculix: Any, verdict: Any) -> None:
    grid = Grid()

    def ray(v: float) -> tuple[float, float]:
        """The square's corner direction lies at v = 0.5: sides are straight, the disc is round."""
        angle = v * np.pi / 2
        return float(np.cos(angle)), float(np.sin(angle))

    def plate(u: float, v: float, w: float) -> tuple[float, float, float]:
        c, s = ray(v)
        far = 10 / max(c, s)
        reach = 1 + (far - 1) * (1.15 ** (48 * u) - 1) / (1.15**48 - 1)
        return (reach * c, reach * s, 0.0005 * w)

    def inner(v: float) -> Any:
        right, corner, left = np.array([0.5, 0.0]), np.array([0.4, 0.4]), np.array([0.0, 0.5])
        return right + 2 * v * (corner - right) if v <= 0.5 else corner + (2 * v - 1) * (left - corner)

    def disc(u: float, v: float, w: float) -> tuple[float, float, float]:
        x, y = (1 - u) * inner(v) + u * np.array(ray(v))
        return (float(x), float(y), 0.0005 * w)

    def core(u: float, v: float, w: float) -> tuple[float, float, float]:
        """The middle, between the axes and the ring's inner side."""
        corners = (1 - u) * v * inner(1) + u * (1 - v) * inner(0) + u * v * inner(0.5)
        x, y = (1 - v) * u * inner(0) + v * inner(1 - u / 2) + (1 - u) * v * inner(1) + u * inner(v / 2) - corners
        return (float(x), float(y), 0.0005 * w)

    grid.add(plate, (48, 16, 1), "COLD")
    grid.add(disc, (8, 16, 1), "HOT")
    grid.add(core, (8, 8, 1), "HOT")
    mesh = grid.text() + grid.where("SX", lambda p: abs(p[0]) < 1e-9) + grid.where("SY", lambda p: abs(p[1]) < 1e-9)
    mesh += grid.where("SZ", lambda p: abs(p[2]) < 1e-9)
    elastic = {"youngs_modulus_mpa": 100000, "poissons_ratio": 0.3}
    data = await calculix.data(
        "run_fea", mesh_file=calculix.write("t1.inp", mesh), analysis_type="static_stress",
        materials={"COLD": {**elastic, "expansion_per_k": 0}, "HOT": {**elastic, "expansion_per_k": 1e-3}},
        supports=[{"node_set": f"S{axis.upper()}", "directions": [axis]} for axis in "xyz"],
        loads=[{"temperature_c": 1, "reference_temperature_c": 0}],
    )  # fmt: skip
    assert data["peak"]["von_mises_mpa"] > 0
    results = calculix.results(data)
    on_axis = results.coordinates_mm[(np.abs(results.coordinates_mm[:, 1]) < 1e-6)]
    outside = min((p for p in on_axis if p[0] > 1.004), key=lambda p: abs(p[0] - 1.005))
    stress = value_at(results, "STRESS", tuple(outside), 1)
    verdict.near("fea-s13-nafems-t1", "sigma_yy outside the disc, MPa", stress, 50.0, rel=0.02)


async def test_user_s01_patch_test(calculix: Any, deck: Any, refused: Any, verdict: Any) -> None:
    data = (await deck("user-s01-ccx-c3d8i-patch/mh_patch_C3D8.inp"))["data"]
    stress = calculix.results(data).last("STRESS").values
    case = "user-s01-ccx-c3d8i-patch"
    for name, component, expected in (("sigma_xx", 0, 2000.0), ("tau_xy", 3, 400.0)):
        worst = float(stress[np.abs(stress[:, component] - expected).argmax(), component])
        verdict.near(case, f"{name} everywhere, MPa, C3D8", worst, expected, rel=1e-3)
    with pytest.raises(refused) as caught:
        await deck("user-s01-ccx-c3d8i-patch/mh_patch_C3D8I.inp")
    verdict.refused(case, str(caught.value), "patch test")


async def test_f01_and_f02_bar(deck: Any, verdict: Any) -> None:
    answer = await deck("small/f01_bar_ok.inp")
    data = answer["data"]
    case = "small/f01_bar_ok"
    verdict.near(case, "u_x at the tip, mm", data["max_displacement_vector_mm"][0], 0.0047619, rel=1e-4)
    verdict.near(case, "von Mises, MPa", data["peak"]["von_mises_mpa"], 10.0, rel=1e-4)
    verdict.near(case, "reaction, N", data["reactions_n"], [-1000, 0, 0], abs=1e-3)
    assert not answer.get("warnings")
    pascal = await deck("small/f02_modulus_in_Pa.inp")
    verdict.told("small/f02_modulus_in_Pa", "warning", pascal["warnings"], r"10\^6 x steel")


async def test_f07_bar_rings(deck: Any, verdict: Any) -> None:
    data = (await deck("small/f07_modal_ok.inp", "modal"))["data"]
    verdict.near("small/f07_modal_ok", "f1, Hz", data["frequencies_hz"][0], 836.907, rel=1e-3)


@pytest.mark.parametrize(
    ("name", "words", "kind"),
    [
        ("small/f03_inverted_element", "turned inside out", "inverted_element"),
        ("small/f04_no_supports", "not restrained \\(6 rigid-body modes\\)", "not_restrained"),
        ("small/f09_no_material_on_elements", "Elements 1-5 have no section", "no_material"),
        ("small/f11_contact_gap_force", "in EB is held only by contact", "held_only_by_contact"),
        ("hostile-s05-nul-bytes/h09_nul", "NUL", "bad_deck"),
    ],
)
async def test_faults_are_refused_by_their_cause(
    deck: Any, refused: Any, name: str, words: str, kind: str, verdict: Any
) -> None:
    with pytest.raises(refused) as caught:
        await deck(f"{name}.inp")
    verdict.refused(name if name.startswith("small") else name.partition("/")[0], str(caught.value), words)
    assert caught.value.data["kind"] == kind
