"""A path is inside the workspace or refused before anything runs."""

import os
import threading
from pathlib import Path

import pytest

from metaforge.calls import paths
from metaforge.calls.paths import PathJudge
from metaforge.core.ids import sha256_bytes
from metaforge.tools.manifest import Tool

SCHEMA = {
    "type": "object",
    "$defs": {"Part": {"type": "object", "properties": {"file": {"type": "string", "format": "input-path"}}}},
    "properties": {
        "input_file": {"type": "string", "format": "input-path"},
        "output_path": {"type": "string", "format": "output-path"},
        "parts": {"type": "array", "items": {"$ref": "#/$defs/Part"}},
        "maybe": {"anyOf": [{"type": "string", "format": "input-path"}, {"type": "integer"}]},
    },
}
TOOL = Tool("x.make", "x", "Make", "", "", SCHEMA, {})


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    root = (tmp_path / "project").resolve()
    (root / "out").mkdir(parents=True)
    (root / "out" / "bracket.step").write_bytes(b"ISO-10303-21;")
    (tmp_path / "secret.step").write_text("secret")
    return root


def problems(workspace: Path, **arguments: object) -> dict[str, str]:
    return PathJudge(workspace).judge(TOOL, arguments)[2]


def test_an_input_comes_back_relative_with_its_digest(workspace: Path) -> None:
    given = {"input_file": "/workspace/out/../out/bracket.step"}
    changed, inputs, wrong = PathJudge(workspace).judge(TOOL, given)
    assert wrong == {}
    assert changed == {"input_file": "out/bracket.step"}
    assert (inputs[0].path, inputs[0].sha256, inputs[0].size_bytes) == (
        "out/bracket.step", sha256_bytes(b"ISO-10303-21;"), 13,
    )  # fmt: skip
    assert given == {"input_file": "/workspace/out/../out/bracket.step"}


def test_the_absolute_path_of_a_file_inside_is_accepted(workspace: Path) -> None:
    changed, _, wrong = PathJudge(workspace).judge(TOOL, {"input_file": str(workspace / "out" / "bracket.step")})
    assert (changed["input_file"], wrong) == ("out/bracket.step", {})


@pytest.mark.parametrize(
    "path", ["../secret.step", "/etc/passwd", "out/../../secret.step", "/workspace/../secret.step"]
)
def test_a_path_outside_is_refused_naming_the_workspace(workspace: Path, path: str) -> None:
    wrong = problems(workspace, input_file=path)
    assert f"lies outside the workspace {workspace}" in wrong["input_file"]


def test_a_symbolic_link_out_is_refused_for_reading_and_writing(workspace: Path) -> None:
    (workspace / "link.step").symlink_to(workspace.parent / "secret.step")
    (workspace / "away").symlink_to(workspace.parent)
    wrong = problems(workspace, input_file="link.step", output_path="away/new.step")
    assert all("outside the workspace" in text for text in wrong.values())
    assert set(wrong) == {"input_file", "output_path"}


def test_a_link_that_stays_inside_is_followed(workspace: Path) -> None:
    (workspace / "link.step").symlink_to("out/bracket.step")
    changed, _, wrong = PathJudge(workspace).judge(TOOL, {"input_file": "link.step"})
    assert (changed, wrong) == ({"input_file": "out/bracket.step"}, {})


def test_a_link_in_a_circle_is_refused(workspace: Path) -> None:
    (workspace / "a.step").symlink_to("b.step")
    (workspace / "b.step").symlink_to("a.step")
    assert "input_file" in problems(workspace, input_file="a.step")


def test_a_missing_file_names_the_nearest_one(workspace: Path) -> None:
    wrong = problems(workspace, input_file="out/braket.step")
    assert "does not exist" in wrong["input_file"]
    assert "there is out/bracket.step" in wrong["input_file"]


def test_every_bad_path_is_named_at_once_with_its_place(workspace: Path) -> None:
    wrong = problems(workspace, parts=[{"file": "out/bracket.step"}, {"file": "no.step"}], maybe="/etc/hosts")
    assert set(wrong) == {"parts.1.file", "maybe"}


@pytest.mark.parametrize("path", [".git/hooks/post-checkout", "out/.hidden.step", ".", "", "out", "a\0b"])
def test_hidden_places_folders_and_nonsense_are_never_written(workspace: Path, path: str) -> None:
    assert "output_path" in problems(workspace, output_path=path)


def test_a_file_cannot_be_a_folder_of_the_output(workspace: Path) -> None:
    wrong = problems(workspace, output_path="out/bracket.step/new.step")
    assert "bracket.step is a file, not a folder" in wrong["output_path"]


def test_a_pipe_is_no_input(workspace: Path) -> None:
    os.mkfifo(workspace / "pipe.step")
    assert "not a regular file" in problems(workspace, input_file="pipe.step")["input_file"]


def test_names_with_quotes_and_emoji_are_names(workspace: Path) -> None:
    name = "out/\u00fcber 'plate' \U0001f527.step"
    (workspace / name).write_text("x")
    changed, _, wrong = PathJudge(workspace).judge(TOOL, {"input_file": name})
    assert (changed["input_file"], wrong) == (name, {})


@pytest.mark.parametrize(
    "name", ["x" * 240 + ".step", "é" * 130 + ".step", "d/" * 100 + "x.step", ("a" * 90 + "/") * 12]
)
@pytest.mark.parametrize("field", ["input_file", "output_path"])
def test_a_path_longer_than_file_systems_take_is_refused_with_the_limit(workspace: Path, name: str, field: str) -> None:
    assert "too long a path" in problems(workspace, **{field: name})[field]


@pytest.mark.parametrize(
    ("name", "words"),
    [("~/part.step", "no home folder"), ("out\\part.step", "backslash"), ("out/a\nb.step", "cannot be seen"),
     ("out/part\u202epets.step", "cannot be seen")],
)  # fmt: skip
def test_a_name_that_a_person_would_misread_is_refused_for_a_new_file(workspace: Path, name: str, words: str) -> None:
    assert words in problems(workspace, output_path=name)["output_path"]


def test_a_workspace_below_workspace_keeps_its_own_absolute_paths(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(paths, "_MOUNT", str(tmp_path))
    root = tmp_path.resolve() / "project"
    root.mkdir()
    (root / "part.step").write_text("x")
    monkeypatch.setattr(paths, "_MOUNT", str(tmp_path.resolve()))
    for name in (str(root / "part.step"), f"{tmp_path.resolve()}/part.step"):
        assert PathJudge(root).judge(TOOL, {"input_file": name})[0] == {"input_file": "part.step"}


async def test_a_large_input_is_digested_beside_the_event_loop(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[str] = []

    def digest(path: Path) -> str:
        threads.append(threading.current_thread().name)
        return sha256_bytes(path.read_bytes())

    monkeypatch.setattr(paths, "_INLINE_BYTES", 4)
    monkeypatch.setattr(paths, "sha256_file", digest)
    inputs = PathJudge(workspace).judge(TOOL, {"input_file": "out/bracket.step"})[1]
    assert threads == []
    (found,) = await paths.digest_large(inputs)
    assert found.sha256 == sha256_bytes(b"ISO-10303-21;")
    assert threads != [threading.main_thread().name]
