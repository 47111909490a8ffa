"""A call's files: judged, stored by content, placed all or none, and nothing left behind."""

import asyncio
import hashlib
import os
import stat
from pathlib import Path, PurePosixPath

import pytest

from metaforge.core.errors import OverLimit, ToolError
from metaforge.engine.collect import Collector
from metaforge.store.blobs import BlobStore


def leftovers(house) -> list[Path]:
    return [path for worker in house.source.pool.workers for path in worker.box.output.iterdir()]


async def test_files_are_hashed_stored_and_placed(house):
    outcome = await house.call("produce", files={"out/a.txt": "one", "b.txt": "two"})
    assert [file.path for file in outcome.files] == ["out/a.txt", "b.txt"]
    first = outcome.files[0]
    assert first.sha256 == hashlib.sha256(b"one").hexdigest()
    assert Path(first.absolute_path) == house.workspace / "out/a.txt"
    assert (house.workspace / "out/a.txt").read_text() == "one"
    assert (first.size_bytes, first.media_type, first.role) == (3, "text/plain", "log")
    assert BlobStore(house.home / "blobs").read(first.sha256) == b"one"
    assert leftovers(house) == []


async def test_a_placed_file_belongs_to_the_person_and_not_to_the_box(house):
    if os.geteuid() == 0:
        os.chown(house.workspace, 1234, 1234)
    await house.call("produce", files={"new/a.txt": "one"})
    owner = house.workspace.stat().st_uid
    umask = os.umask(0)
    os.umask(umask)
    for path, mode in ((house.workspace / "new", 0o777), (house.workspace / "new/a.txt", 0o666)):
        assert path.stat().st_uid == owner
        assert stat.S_IMODE(path.stat().st_mode) == mode & ~umask


async def test_the_same_content_again_is_no_conflict(any_house):
    await any_house.call("produce", files={"a.txt": "one"})
    before = (any_house.workspace / "a.txt").stat().st_ino
    await any_house.call("produce", files={"a.txt": "one"})
    assert (any_house.workspace / "a.txt").stat().st_ino == before


async def test_other_content_is_refused_and_nothing_else_is_placed(any_house):
    (any_house.workspace / "b.txt").write_text("mine")
    with pytest.raises(ToolError, match=r"b\.txt exists with other content") as caught:
        await any_house.call("produce", files={"new/a.txt": "one", "b.txt": "theirs"})
    assert caught.value.kind == "output_exists"
    assert (any_house.workspace / "b.txt").read_text() == "mine"
    assert [path.name for path in any_house.workspace.iterdir()] == ["b.txt"]
    assert leftovers(any_house) == []


async def test_overwrite_replaces(any_house):
    (any_house.workspace / "b.txt").write_text("mine")
    await any_house.call("produce", files={"b.txt": "theirs"}, overwrite=True)
    assert (any_house.workspace / "b.txt").read_text() == "theirs"


async def test_a_folder_in_the_way_is_told(any_house):
    (any_house.workspace / "a.txt").mkdir()
    with pytest.raises(ToolError, match="it is a folder"):
        await any_house.call("produce", files={"a.txt": "one"}, overwrite=True)


async def test_a_file_in_the_way_of_a_folder_is_told(any_house):
    (any_house.workspace / "out").write_text("a file")
    with pytest.raises(ToolError, match="a folder above it is a file"):
        await any_house.call("produce", files={"out/a.txt": "one"})


async def test_a_folder_that_is_a_link_out_of_the_workspace_is_refused(any_house, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (any_house.workspace / "out").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ToolError, match="outside the workspace"):
        await any_house.call("produce", files={"out/a.txt": "one"})
    assert list((tmp_path / "elsewhere").iterdir()) == []


async def test_a_file_that_was_not_written_is_a_fault_of_the_adapter(any_house):
    with pytest.raises(ToolError, match=r"missing\.txt.*not there"):
        await any_house.call("produce", files={"a.txt": "one"}, claim=["a.txt", "missing.txt"])
    assert list(any_house.workspace.iterdir()) == []
    assert leftovers(any_house) == []


@pytest.mark.parametrize("claim", ["../a.txt", "/etc/hostname", "", "a\0b"])
async def test_a_path_out_of_the_output_folder_is_refused(any_house, claim):
    with pytest.raises(ToolError) as caught:
        await any_house.call("produce", files={}, claim=[claim])
    assert caught.value.kind == "output_invalid"


@pytest.mark.parametrize("through_folder", [False, True])
async def test_a_link_is_never_followed(house, tmp_path, through_folder):
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    with pytest.raises(ToolError) as caught:
        await house.call("produce_link", target=str(secret), through_folder=through_folder)
    assert caught.value.kind == "output_invalid"
    assert list(house.workspace.iterdir()) == []
    assert secret.read_text() == "secret"
    assert leftovers(house) == []


async def test_more_than_the_tool_may_write_is_over_the_limit(any_house):
    with pytest.raises(OverLimit, match="2 MB"):
        await any_house.call("produce", files={"a.txt": "x" * 1_500_000, "b.txt": "y" * 1_500_000})
    assert list(any_house.workspace.iterdir()) == []


async def test_a_large_file_is_placed_too(any_house):
    outcome = await any_house.call("produce_big", path="big.bin", size_mb=12)
    assert (any_house.workspace / "big.bin").stat().st_size == outcome.files[0].size_bytes == 12 << 20


async def test_a_picture_is_shown_and_placed(any_house):
    outcome = await any_house.call("picture", kind="png")
    assert outcome.images[0].caption == "what it shows"
    assert outcome.images[0].png.startswith(b"\x89PNG")
    assert (any_house.workspace / "look.png").read_bytes() == outcome.images[0].png
    assert outcome.files[0].role == "picture"


@pytest.mark.parametrize(("kind", "reason"), [("text", "no PNG"), ("huge", "more than 2")])
async def test_a_bad_picture_is_refused(any_house, kind, reason):
    with pytest.raises(ToolError, match=reason):
        await any_house.call("picture", kind=kind)
    assert list(any_house.workspace.iterdir()) == []


async def test_a_full_disk_in_the_middle_places_nothing(tmp_path, monkeypatch):
    workspace, output = tmp_path / "workspace", tmp_path / "output"
    for folder in (workspace, output):
        folder.mkdir()
    (output / "a.txt").write_text("one")
    (output / "b.txt").write_text("two")
    collector = Collector(workspace, BlobStore(tmp_path / "blobs"))
    found = collector.examine({"files": [{"path": "a.txt"}, {"path": "b.txt"}]}, output, max_disk_mb=1)
    real = os.link
    linked = []

    def full(source, target, **more):
        if linked:
            raise OSError(28, "No space left on device")
        linked.append(target)
        real(source, target, **more)

    def no_rename(self, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "link", full)
    monkeypatch.setattr(Path, "rename", no_rename)
    with pytest.raises(ToolError, match="No space left") as caught:
        collector.place(found.files, overwrite=None)
    assert caught.value.kind == "output_unwritable"
    assert list(workspace.iterdir()) == []


@pytest.mark.parametrize("there", ["theirs", ""], ids=["replaced", "new"])
@pytest.mark.parametrize("begun", ["before", ""], ids=["over a file", "over nothing"])
def test_what_somebody_put_there_while_the_tool_worked_is_kept(tmp_path, begun, there):
    workspace, output = tmp_path / "workspace", tmp_path / "output"
    for folder in (workspace, output):
        folder.mkdir()
    (output / "a.txt").write_text("ours")
    if begun:
        (workspace / "a.txt").write_text(begun)
    collector = Collector(workspace, BlobStore(tmp_path / "blobs"))
    overwrite = collector.standing(PurePosixPath("a.txt"))
    (workspace / "mine.txt").write_text(there)
    (workspace / "mine.txt").replace(workspace / "a.txt")
    found = collector.examine({"files": [{"path": "a.txt"}]}, output, max_disk_mb=1)
    with pytest.raises(ToolError, match="was changed while the tool worked") as caught:
        collector.place(found.files, overwrite=overwrite)
    assert caught.value.kind == "output_changed"
    assert (workspace / "a.txt").read_text() == there
    collector.place(found.files, overwrite=collector.standing(PurePosixPath("a.txt")))
    assert (workspace / "a.txt").read_text() == "ours"


async def test_a_file_that_a_person_saves_while_a_script_works_is_not_lost(any_house):
    target = any_house.workspace / "part.txt"
    target.write_text("first")
    code = (
        "ctx.progress(0.5, 'working')\n"
        "while (ctx.workspace / 'part.txt').read_text() == 'first': pass\n"
        "ctx.output_file('part.txt').write_text('ours')\n"
        "from metaforge.tools.context import OutputFile\n"
        "files = (OutputFile('part.txt'),)\n"
    )
    call = asyncio.create_task(any_house.call("script", code=code, output_path="part.txt", overwrite=True))
    await any_house.begun.wait()
    target.write_text("a person's own")
    with pytest.raises(ToolError, match="was changed while the tool worked"):
        await call
    assert target.read_text() == "a person's own"
