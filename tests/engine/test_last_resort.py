"""The server is killed, or told to end: nothing of its workers lives on."""

import asyncio
import signal
import subprocess
import sys
import textwrap
import uuid
from pathlib import Path

import psutil
import pytest

from metaforge.engine import cgroups

SERVER = """
import asyncio, os, sys
from pathlib import Path
sys.path.insert(0, {here!r})
import conftest
async def main():
    home, workspace = Path({home!r}), Path({workspace!r})
    settings = conftest.settings_for(home, {kind!r})
    described = conftest.manifest()
    launcher = conftest.ProcessLauncher(described, settings, workspace, python_paths=(conftest.HERE,))
    blobs = conftest.BlobStore(home / "blobs")
    source = conftest.ProcessSource(described, settings, workspace, blobs, launcher=launcher)
    house = conftest.House(source, workspace, home, blobs)
    await house.call("linger", marker={marker!r}, answer=True)
    print("ready", source.pool.workers[0].box.pid, flush=True)
    await asyncio.Event().wait()
if {uvloop!r}:
    import uvloop
    uvloop.install()
asyncio.run(main())
"""


def left_over(marker: str) -> list[psutil.Process]:
    found = psutil.process_iter(["cmdline"])
    return [each for each in found if any(f"# {marker}" in word for word in each.info["cmdline"] or ())]


@pytest.mark.parametrize("uvloop", [False, True])
@pytest.mark.parametrize("kind", ["bubblewrap", "rlimits"])
def test_nothing_is_alive_after_the_server_was_killed(tmp_path, request, kind, uvloop):
    if kind == "bubblewrap":
        request.getfixturevalue("bubblewrap")
    marker = uuid.uuid4().hex
    folders = {name: str(tmp_path / name) for name in ("home", "workspace")}
    Path(folders["workspace"]).mkdir()
    code = SERVER.format(here=str(Path(__file__).parent), kind=kind, marker=marker, uvloop=uvloop, **folders)
    server = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, text=True)
    with server:
        word, pid = server.stdout.readline().split()
        assert word == "ready"
        worker = psutil.Process(int(pid))
        processes = [worker, *worker.children(recursive=True), *left_over(marker)]
        assert len(left_over(marker)) == 3
        server.send_signal(signal.SIGKILL)
        server.wait()
        _, alive = psutil.wait_procs(processes, timeout=5)
    assert alive == []
    assert left_over(marker) == []


async def test_what_killed_servers_left_on_disk_is_removed_by_the_next(tmp_path, monkeypatch):
    from itertools import count

    from metaforge.engine import launch

    monkeypatch.setattr(launch, "_serial", count())
    ended = await asyncio.create_subprocess_exec(sys.executable, "-c", "pass")
    await ended.wait()
    left = tmp_path / f"{ended.pid}-0"
    locked = left / "output" / "locked"
    locked.mkdir(parents=True)
    (locked / "file").write_text("x")
    locked.chmod(0)
    other = tmp_path / f"{psutil.Process().ppid()}-0"
    other.mkdir()
    made = launch.make_folder(tmp_path)
    assert sorted(tmp_path.iterdir()) == sorted([made, other])


def test_a_version_2_group_is_made_below_the_folder_that_limits_already(tmp_path, monkeypatch):
    own = tmp_path / "user.slice" / "session.scope"
    own.mkdir(parents=True)
    for folder, controllers in ((tmp_path, "cpu"), (tmp_path / "user.slice", "memory pids"), (own, "")):
        (folder / "cgroup.subtree_control").write_text(controllers)
    monkeypatch.setattr(cgroups, "_ROOT", tmp_path)
    (found,) = cgroups._candidates(["0::/user.slice/session.scope"])
    assert (found.version, found.memory, found.pids) == (2, tmp_path / "user.slice", tmp_path / "user.slice")
    group = cgroups.Group(found)
    group.limit(memory_mb=64, processes=8)
    (folder,) = (tmp_path / "user.slice").glob("metaforge-*")
    assert group.entrances == [str(folder / "cgroup.procs")]
    assert (folder / "memory.max").read_text() == str(64 << 20)
    assert (folder / "pids.max").read_text() == "8"
    (folder / "memory.events").write_text("low 0\noom 1\noom_kill 2\n")
    assert group.memory_kills() == 2


def test_version_1_hierarchies_are_found_apart(tmp_path, monkeypatch):
    monkeypatch.setattr(cgroups, "_ROOT", tmp_path)
    (found,) = cgroups._candidates(["8:pids:/a", "4:memory:/b", "1:cpu,cpuacct:/", "0::/"])
    assert (found.version, found.memory, found.pids) == (1, tmp_path / "memory" / "b", tmp_path / "pids" / "a")
