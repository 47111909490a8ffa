"""What a caller's code writes is bounded in sum while it runs, not only file by file."""

import mmap
import os
import sys
from pathlib import Path

import pytest

from metaforge.core.errors import OverLimit
from metaforge.engine import disk

ENDLESS_BYTES = """
number = 0
while True:
    with open(f"{ctx.output}/{number}", "wb") as target:
        for _ in range(64):
            target.write(bytes(1 << 20))
    number += 1
"""
ENDLESS_FILES = """
number = 0
while True:
    os.close(os.open(f"{ctx.output}/{number}", os.O_CREAT | os.O_WRONLY))
    number += 1
"""
ENDLESS_DELETED = """
held = []
while True:
    held.append(open(f"{ctx.output}/gone", "wb"))
    os.unlink(f"{ctx.output}/gone")
    for _ in range(64):
        held[-1].write(bytes(1 << 20))
"""


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (ENDLESS_BYTES, "512 MB it may write"),
        (ENDLESS_FILES, "10000 files"),
        (ENDLESS_DELETED, "512 MB it may write"),
    ],
)
async def test_a_script_that_writes_without_end_is_ended_at_the_limit(house, code, words):
    with pytest.raises(OverLimit, match=words):
        await house.call("script", code=code, seconds=120)
    assert (await house.call("script", code="text = 'well'", output_path="a.txt")).data["text"] == "well"


def test_what_passes_a_limit_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "file").write_bytes(os.urandom(300_000))
    (tmp_path / "link").symlink_to("/usr")
    assert disk.passes(str(tmp_path), 1 << 20) == ""
    assert disk.passes(str(tmp_path), 100_000) == "bytes"
    monkeypatch.setattr(disk, "MAX_FILES", 2)
    assert disk.passes(str(tmp_path), 1 << 20) == "files"


def test_folders_nested_out_of_sight_pass_the_limit(tmp_path: Path) -> None:
    deep = tmp_path.joinpath(*["d"] * (disk.MAX_DEPTH + 1))
    deep.mkdir(parents=True)
    assert disk.passes(str(tmp_path), 1 << 30) == "files"


def test_a_sparse_file_counts_for_what_it_takes(tmp_path: Path) -> None:
    with (tmp_path / "sparse").open("wb") as target:
        target.truncate(1 << 40)
    assert disk.passes(str(tmp_path), 1 << 20) == ""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes are looked at through /proc")
@pytest.mark.parametrize("holding", ["open", "mapped"])
def test_a_deleted_file_counts_for_as_long_as_a_process_holds_it(tmp_path: Path, holding: str) -> None:
    path = tmp_path / "gone"
    target = path.open("w+b")
    target.write(os.urandom(1 << 20))
    target.flush()
    held = mmap.mmap(target.fileno(), 1 << 20)
    if holding == "mapped":
        target.close()
    path.unlink()
    assert disk.passes(str(tmp_path), 500_000, [os.getpid()]) == "bytes"
    assert disk.passes(str(tmp_path), 2 << 20, [os.getpid(), os.getpid()]) == ""
    held.close()
    target.close()
    assert disk.passes(str(tmp_path), 500_000, [os.getpid()]) == ""
