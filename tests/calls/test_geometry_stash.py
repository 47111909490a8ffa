"""What a session exported is what is committed, however it was carried back, and after a restart too."""

import base64
import logging
from pathlib import Path
from typing import Any

import pytest

from metaforge.calls import geometry_stash
from metaforge.calls.call import Call
from metaforge.calls.geometry_stash import Stash
from metaforge.store.blobs import BlobStore
from metaforge.store.stash import GeometryStash
from metaforge.tools.context import Artefact, Caller, Outcome
from metaforge.tools.effect import Effect
from metaforge.tools.manifest import Tool

NAMES = {"session_id": "s1", "obj_id": "Body"}
EXPORT = Tool("freecad.export_model", "freecad", "", "", "", {}, {}, effect=Effect.PRODUCE)
COMMIT = Tool("twin.commit_geometry", "twin", "", "", "", {}, {}, effect=Effect.WRITE)
STEP = b"ISO-10303-21; NAMED_UNIT(*)"


def encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()


class Line:
    """The stage, and what reached the tool behind it."""

    def __init__(self, folder: Path) -> None:
        self.blobs = BlobStore(folder / "blobs")
        self.folder = folder
        self.arrived: list[dict[str, Any]] = []
        self.events: list[tuple[str, dict[str, Any]]] = []

    async def run(self, tool: Tool, arguments: dict[str, Any], outcome: Outcome | None = None) -> Outcome:
        async def proceed(call: Call) -> Outcome:
            self.arrived.append(call.arguments)
            return outcome or Outcome({}, "done")

        # A new stage each time: nothing may live in its memory.
        stage = Stash(GeometryStash(self.folder / "stash"), self.blobs)
        return await stage(Call("c1", tool.id, arguments, Caller(), tool=tool), proceed)


@pytest.fixture
def line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Line:
    made = Line(tmp_path)
    monkeypatch.setattr(geometry_stash, "event", lambda name, level, **about: made.events.append((name, about)))
    return made


async def test_an_export_carried_as_text_fills_a_commit_that_names_it(line: Line) -> None:
    await line.run(EXPORT, NAMES, Outcome({"step_base64": encoded(STEP)}, "exported"))
    await line.run(COMMIT, {"name": "x", **NAMES})
    assert base64.b64decode(line.arrived[-1]["step_base64"]) == STEP
    assert line.events == []


async def test_an_export_given_as_a_file_does_too(line: Line) -> None:
    file = Artefact("b.step", "/w/b.step", line.blobs.put_bytes(STEP), len(STEP), "model/step", "geometry")
    await line.run(EXPORT, NAMES, Outcome({}, "exported", files=(file,)))
    await line.run(COMMIT, {"name": "x", **NAMES, "file_path": "other.step"})
    assert base64.b64decode(line.arrived[-1]["step_base64"]) == STEP
    assert "file_path" not in line.arrived[-1]


@pytest.mark.parametrize("carried", [encoded(STEP.replace(b"UNIT", b"URIT")), "not base64 at all!"])
async def test_a_copy_that_differs_is_repaired_logged_and_told(line: Line, carried: str) -> None:
    await line.run(EXPORT, NAMES, Outcome({"step_base64": encoded(STEP)}, "exported"))
    outcome = await line.run(COMMIT, {"name": "x", **NAMES, "step_base64": carried})
    assert base64.b64decode(line.arrived[-1]["step_base64"]) == STEP
    ((name, about),) = line.events
    assert (name, about["session_id"], about["obj_id"]) == ("geometry_commit_blob_diverged", "s1", "Body")
    assert "differs" in outcome.warnings[0]


async def test_an_equal_copy_with_line_breaks_is_no_divergence(line: Line) -> None:
    await line.run(EXPORT, NAMES, Outcome({"step_base64": encoded(STEP)}, "exported"))
    broken = encoded(STEP)[:10] + "\n" + encoded(STEP)[10:]
    outcome = await line.run(COMMIT, {"name": "x", **NAMES, "step_base64": broken})
    assert (line.events, outcome.warnings) == ([], ())


async def test_without_a_kept_export_what_was_given_stays(line: Line) -> None:
    given = {"name": "x", **NAMES, "step_base64": "abcd"}
    await line.run(COMMIT, given)
    assert line.arrived[-1] == given


async def test_other_calls_pass_untouched(line: Line) -> None:
    await line.run(EXPORT, {"session_id": "s1"}, Outcome({"step_base64": encoded(STEP)}, ""))
    await line.run(COMMIT, {"name": "x", "file_path": "a.step"})
    assert line.arrived[-1] == {"name": "x", "file_path": "a.step"}
    assert not (line.folder / "stash").exists()


async def test_a_full_disk_costs_the_stash_and_not_the_export(
    line: Line, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)

    def refuse(*_: object) -> bool:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(GeometryStash, "put", refuse)
    outcome = await line.run(EXPORT, NAMES, Outcome({"step_base64": encoded(STEP)}, "exported"))
    assert outcome.summary == "exported"
    assert line.events[0][0] == "geometry_stash_failed"
