"""Arguments and paths that cannot be: told all at once, in the field's words, before anything runs."""

from pathlib import Path
from typing import Any

import pytest


def test_every_missing_and_wrong_argument_is_named_at_once(server: Any) -> None:
    text = server.refusal("cadquery.export_geometry", output_format="stp", tolerance_mm="fine", quality=3)
    assert "input_file" in text
    assert "output_format" in text
    assert "step" in text
    assert "tolerance_mm" in text
    assert "quality" in text


@pytest.mark.program("cadquery")
def test_a_width_of_minus_five_is_refused_by_name_and_value(server: Any) -> None:
    parameters = {"width": -5, "length": 30, "height": 10}
    text = server.refusal(
        "cadquery.create_parametric", shape_type="box", parameters=parameters, output_path="out/negative.step"
    )
    assert "width" in text
    assert "-5" in text
    assert not (server.workspace / "out/negative.step").exists()


@pytest.mark.parametrize("path", ["/etc/passwd", "../secret.step", "parts/../../secret.step"])
def test_a_path_outside_the_workspace_is_refused_with_the_root_it_must_stay_in(server: Any, path: str) -> None:
    text = server.refusal("cadquery.get_properties", input_file=path)
    assert path in text
    assert str(server.workspace) in text


def test_an_output_path_outside_the_workspace_is_refused_and_nothing_is_written(server: Any, tmp_path: Path) -> None:
    target = tmp_path / "stolen.txt"
    text = server.refusal("fixtureproc.write", text="mine", output_path=str(target))
    assert str(server.workspace) in text
    assert not target.exists()


def test_a_symbolic_link_out_of_the_workspace_is_no_way_out(server: Any, tmp_path: Path) -> None:
    secret = tmp_path / "secret.step"
    secret.write_text("ISO-10303-21; the secret")
    (server.workspace / "link.step").symlink_to(secret)
    (server.workspace / "linked").symlink_to(tmp_path)
    try:
        read = server.refusal("cadquery.get_properties", input_file="link.step")
        written = server.refusal("fixtureproc.write", text="x", output_path="linked/new.txt")
    finally:
        (server.workspace / "link.step").unlink()
        (server.workspace / "linked").unlink()
    for text in (read, written):
        assert str(server.workspace) in text
    assert not (tmp_path / "new.txt").exists()


def test_a_missing_file_is_named_with_what_is_there_instead(server: Any) -> None:
    (server.workspace / "bracket.step").write_text("ISO-10303-21;")
    text = server.refusal("cadquery.get_properties", input_file="braket.step")
    (server.workspace / "bracket.step").unlink()
    assert "braket.step" in text
    assert "bracket.step" in text


def test_a_file_with_other_content_is_not_replaced_unless_asked(server: Any) -> None:
    first = server.call("fixtureproc.write", text="one", output_path="kept.txt")
    assert not first.refused
    text = server.refusal("fixtureproc.write", text="two", output_path="kept.txt")
    assert "kept.txt" in text
    assert (server.workspace / "kept.txt").read_text() == "one"
