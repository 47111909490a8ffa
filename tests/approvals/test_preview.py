"""What a held call would change, and how much of it is kept for the person."""

from pathlib import Path
from typing import Any

import pytest

from metaforge.approvals.digest import canonical
from metaforge.approvals.preview import Preview, Previewer, bounded
from metaforge.core.ids import sha256_bytes
from metaforge.tools.context import Artefact, Caller, Outcome
from metaforge.tools.effect import Effect
from metaforge.tools.manifest import Tool
from metaforge.twin.rehearsal import Recording


class Call:
    id, caller, project_id, run_id, effect = "c1", Caller(), "", "", Effect.DESTROY
    progress = staticmethod(lambda fraction, message: None)
    ask = None

    def __init__(self, arguments: dict[str, Any], inputs: tuple[Artefact, ...] = ()) -> None:
        self.arguments, self.inputs = arguments, inputs

    def resolved(self) -> Tool:
        return Tool("x.make", "x", "Make", "", "", {}, {}, effect=Effect.PRODUCE)


def previewer(workspace: Path, tried: Any = None) -> Previewer:
    async def rehearse(*_: Any) -> Any:
        return tried

    return Previewer(rehearse, lambda tool, arguments: (arguments["output_path"],), workspace)


async def test_files_that_would_be_replaced_are_told_with_their_digest(tmp_path: Path) -> None:
    (tmp_path / "part.step").write_bytes(b"old")
    preview = await previewer(tmp_path).preview(Call({"output_path": "part.step", "overwrite": True}))
    assert preview.now == {"part.step": {"size_bytes": 3, "sha256": sha256_bytes(b"old")}}
    assert preview.after == {"part.step": {"replaced": True}}
    assert preview.summary == "replace part.step (3 bytes)"


async def test_new_files_are_told_as_new(tmp_path: Path) -> None:
    preview = await previewer(tmp_path).preview(Call({"output_path": "part.step"}))
    assert (preview.now, preview.after) == ({"part.step": None}, {"part.step": {"new": True}})


async def test_what_is_read_is_read_again_when_it_counts(tmp_path: Path) -> None:
    (tmp_path / "in.step").write_bytes(b"one")
    given = Artefact("in.step", str(tmp_path / "in.step"), sha256_bytes(b"one"), 3, "", "input")
    call, maker = Call({"output_path": "out.step"}, (given,)), previewer(tmp_path)
    first = await maker.preview(call)
    (tmp_path / "in.step").write_bytes(b"two")
    assert (await maker.preview(call)).reads == first.reads
    assert (await maker.preview(call, again=True)).reads == {"in.step": sha256_bytes(b"two")}
    (tmp_path / "in.step").unlink()
    assert (await maker.preview(call, again=True)).reads == {"in.step": "missing"}


async def test_a_rehearsal_is_told_in_words(tmp_path: Path) -> None:
    now = {"CAD-LEG": {"ref": "CAD-LEG@2", "name": "leg"}, "BOM": None, "project p1": {"name": "Old"}}
    after = {
        "CAD-LEG": {"ref": "CAD-LEG@3", "name": "leg"}, "BOM": {"ref": "BOM@1", "name": "bom"},
        "project p1": {"deleted": True},
    }  # fmt: skip
    tried = Recording(now, after), Outcome({}, "done", ("thin wall",))
    preview = await previewer(tmp_path, tried).preview(Call({}))
    assert preview.summary == "write CAD-LEG@3 'leg' in place of CAD-LEG@2; write BOM@1 'bom'; delete project p1 'Old'"
    assert preview.change()["warnings"] == ["thin wall"]


@pytest.mark.parametrize("value", [2**60, float("nan"), float("inf"), "x" * 10_000, list(range(500)), object()])
def test_whatever_is_shown_can_be_written_down_and_read(value: Any) -> None:
    told = bounded({"value": value, "deep": _nested(30), "api_key": "s3cret", "many": {str(n): n for n in range(200)}})
    assert len(canonical(told)) < 12_000
    assert told["api_key"] == "[redacted]"


def test_however_much_is_there_the_ledger_keeps_little_of_it() -> None:
    many = {f"item {n}": {f"fact {m}": ["x" * 1000] * 40 for m in range(20)} for n in range(20)}
    preview = Preview("much", now=many, after={"one": 1})
    told = preview.change()
    assert len(canonical(told)) < 140_000
    assert told["after"] == {"one": 1}
    assert Preview("much", now=many, after=many).change()["now"] == told["now"], "each side is cut for itself"


def _nested(depth: int) -> Any:
    return {"in": _nested(depth - 1)} if depth else 1
