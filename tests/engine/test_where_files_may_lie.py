"""What a worker says it wrote is judged by the server: a caller's own code may have written the answer."""

from pathlib import Path, PurePosixPath

import pytest

from metaforge.core.errors import ToolError
from metaforge.engine.collect import Collector
from metaforge.store.blobs import BlobStore


@pytest.fixture
def output(tmp_path: Path) -> Path:
    folder = tmp_path / "output"
    for name in (
        "out/part.step",
        "out/part.png",
        "out/other.step",
        "out/partner.step",
        "out/part-old.step",
        "conftest.py",
        ".git/hooks/post-checkout",
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    return folder


@pytest.fixture
def collector(tmp_path: Path) -> Collector:
    (tmp_path / "workspace").mkdir()
    return Collector(tmp_path / "workspace", BlobStore(tmp_path / "blobs"))


def answer(*names: str) -> dict[str, object]:
    return {"files": [{"path": name} for name in names]}


def test_hidden_places_are_never_written(collector: Collector, output: Path) -> None:
    with pytest.raises(ToolError, match="hidden"):
        collector.examine(answer(".git/hooks/post-checkout"), output, max_disk_mb=10)


@pytest.mark.parametrize("name", ["conftest.py", "out/other.step", "out/partner.step", "out/part-old.step"])
def test_code_of_a_caller_writes_beside_what_was_asked_for_and_nowhere_else(
    collector: Collector, output: Path, name: str
) -> None:
    wanted = PurePosixPath("out/part.step")
    assert (
        len(collector.examine(answer("out/part.step", "out/part.png"), output, max_disk_mb=10, beside=wanted).files)
        == 2
    )
    with pytest.raises(ToolError, match=r"asked for out/part\.step"):
        collector.examine(answer("out/part.step", name), output, max_disk_mb=10, beside=wanted)


def test_what_a_reading_tool_shows_is_kept_and_not_placed(collector: Collector, output: Path, tmp_path: Path) -> None:
    found = collector.examine(answer("out/part.png"), output, max_disk_mb=10)
    (kept,) = collector.keep(found.files)
    assert list((tmp_path / "workspace").iterdir()) == []
    assert Path(kept.absolute_path).read_text() == "out/part.png"


@pytest.mark.parametrize("name", ["out/part\n.step", "out/part.\u202estep", "out/" + "x" * 2000])
def test_names_that_nobody_can_read_are_never_written(collector: Collector, output: Path, name: str) -> None:
    with pytest.raises(ToolError, match="no name for a file") as refusal:
        collector.examine(answer(name), output, max_disk_mb=10)
    assert len(refusal.value.message) < 500


def test_a_media_type_that_is_none_is_not_passed_on(collector: Collector, output: Path) -> None:
    named = {"files": [{"path": "out/part.step", "media_type": "text/html\r\nX: y", "role": "r" * 1000}]}
    (found,) = collector.examine(named, output, max_disk_mb=10).files
    assert (found.media_type, found.role) == ("application/octet-stream", "")
