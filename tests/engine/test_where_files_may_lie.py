"""What a worker says it wrote is judged by the server: a caller's own code may have written the answer."""

from pathlib import Path, PurePosixPath

import pytest

from metaforge.core.errors import ToolError
from metaforge.engine.collect import Collector
from metaforge.store.blobs import BlobStore


@pytest.fixture
def output(tmp_path: Path) -> Path:
    folder = tmp_path / "output"
    for name in ("out/part.step", "out/part.png", "out/other.step", "conftest.py", ".git/hooks/post-checkout"):
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


@pytest.mark.parametrize("name", ["conftest.py", "out/other.step"])
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
