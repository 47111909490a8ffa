"""The picture of a part: the right size, something on it, in the part's colours."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

pytestmark = pytest.mark.program("cadquery")


def pixels(path: Path) -> NDArray[np.uint8]:
    """Read a PNG as rows of RGB, top first."""
    from vtkmodules.util.numpy_support import vtk_to_numpy
    from vtkmodules.vtkIOImage import vtkPNGReader

    reader = vtkPNGReader()
    reader.SetFileName(str(path))
    reader.Update()
    width, height, _ = reader.GetOutput().GetDimensions()
    flat = vtk_to_numpy(reader.GetOutput().GetPointData().GetScalars())
    return flat.reshape(height, width, -1)[::-1, :, :3]


def magenta(image: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Find the part; axes and words have other colours."""
    red, green, blue = (image[..., n].astype(int) for n in range(3))
    return (red > 60) & (red > 3 * green) & (2 * blue > red)


@pytest.fixture
def drawn(bench: Any) -> NDArray[np.uint8]:
    answer = bench.call(
        "execute_script", output_path="out/red.step", picture=True,
        script="result = cq.Assembly().add(cq.Workplane().box(60, 30, 20), name='bar', color=cq.Color(0.8, 0, 0.7))",
    )  # fmt: skip
    assert answer["pictures"][0]["path"] == "out/red.png"
    assert "60 x 30 x 20 mm" in answer["pictures"][0]["caption"]
    assert "out/red.png" in answer["output_files"]
    return pixels(bench.workspace / "out/red.png")


def test_the_sheet_is_768_pixels_and_shows_the_part_in_all_four_views(drawn: NDArray[np.uint8]) -> None:
    assert drawn.shape == (768, 768, 3)
    part = magenta(drawn)
    for rows, columns in ((s, t) for s in (slice(58, 390), slice(394, 726)) for t in (slice(0, 384), slice(384, 768))):
        assert part[rows, columns].sum() > 3000


def test_the_views_are_true_to_one_scale(drawn: NDArray[np.uint8]) -> None:
    part = magenta(drawn)
    top, front, right = part[58:390, :384], part[394:726, :384], part[394:726, 384:]

    def extent(view: NDArray[np.bool_]) -> tuple[int, int]:
        rows, columns = np.where(view.any(1))[0], np.where(view.any(0))[0]
        return columns[-1] - columns[0] + 1, rows[-1] - rows[0] + 1

    (x_top, y_top), (x_front, z_front), (y_right, z_right) = extent(top), extent(front), extent(right)
    scale = x_top / 60
    assert abs(x_front - x_top) <= 2
    assert abs(z_front - z_right) <= 2
    assert abs(y_right - y_top) <= 2
    assert y_top / 30 == pytest.approx(scale, rel=0.03)
    assert z_front / 20 == pytest.approx(scale, rel=0.04)


def test_nothing_of_the_part_is_cut_off(drawn: NDArray[np.uint8]) -> None:
    part = magenta(drawn)
    assert not part[:, :20].any()
    assert not part[:, -20:].any()
    assert not part[:58].any()


def test_a_picture_needs_no_display(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DISPLAY", raising=False)
    bench.call("create_parametric", shape_type="sphere", parameters={"radius": 3}, output_path="s.step", picture=True)
    assert (pixels(bench.workspace / "s.png") < 250).any()


def test_a_machine_without_a_renderer_says_what_to_install(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from metaforge.engineering import picture_vtk

    monkeypatch.setattr(picture_vtk, "_loads", lambda library: False)
    error = bench.refused(
        "create_parametric", shape_type="sphere", parameters={"radius": 3}, output_path="s.step", picture=True
    )
    assert error["data"]["kind"] == "picture_failed"
    assert "apt-get install -y libosmesa6" in error["data"]["fix"]
