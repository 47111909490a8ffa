"""Adapters in containers: calls and limits as in a box, and every container gone with its work or its server."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from metaforge.app import App
from metaforge.core.errors import OverLimit, ToolCrashed, ToolError, ToolTimedOut, ToolUnavailable
from metaforge.engine import container_engine
from metaforge.engine.container import ContainerBox, ContainerLauncher, Image
from metaforge.engine.container_engine import ADAPTER_LABEL, SERVER_LABEL, ContainerEngine
from metaforge.engine.container_server import server_of
from metaforge.engine.source import ProcessSource
from metaforge.settings import Settings
from metaforge.store.blobs import BlobStore
from metaforge.tools.context import Caller, Invocation
from metaforge.tools.generate import manifest_of
from metaforge.tools.manifest import AdapterManifest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))
import container_image  # noqa: E402

sys.path.pop(0)

TARGET = "misbehaving:MisbehavingServer"
REAPED_SECONDS = 5.0
ENVIRONMENT = {
    name: os.environ[name]
    for name in ("PATH", "HOME", "XDG_RUNTIME_DIR", "METAFORGE_CONTAINER_ENGINE", "DOCKER_HOST")
    if name in os.environ
}
"""What chooses the engine; podman alone is required."""
pytestmark = pytest.mark.program("podman")


@pytest.fixture(scope="session")
def engine() -> ContainerEngine:
    """What runs containers here; the test is skipped where nothing does."""
    try:
        found = container_engine.find(Settings.load(ENVIRONMENT))
    except ToolUnavailable as fault:
        pytest.skip(fault.message)
    return found


@pytest.fixture(scope="session")
def image(engine: ContainerEngine) -> str:
    """The tests' image, built once on a machine."""
    try:
        return container_image.ensure(engine.name)
    except container_image.CannotBuild as fault:
        pytest.skip(str(fault))


@pytest.fixture
def make(tmp_path: Path, image: str, make_house: Callable[..., Any]) -> Callable[..., Any]:
    """The misbehaving adapter in containers."""

    def making(**more: Any) -> Any:
        options = {name: value for name, value in more.items() if name in Image.__annotations__}
        environment = {"TARGET": TARGET, "HOUSE": str(tmp_path / "home")} | options.pop("environment", {})
        workspace = tmp_path / "workspace"
        workspace.mkdir(exist_ok=True)
        settings = Settings.load(ENVIRONMENT | {"METAFORGE_HOME": str(tmp_path / "home")})
        launcher = ContainerLauncher(
            AdapterManifest.from_json(manifest_of(TARGET)), settings, workspace,
            Image(image, environment=environment, readable=(container_image.SOURCES, HERE), **options),
        )  # fmt: skip
        return make_house("auto", launcher=launcher)

    return making


@pytest.fixture
async def house(make: Callable[..., Any], engine: ContainerEngine) -> AsyncIterator[Any]:
    made = make()
    yield made
    await made.source.close()
    assert engine.of_server(server_of(made.home).id) == []
    assert made.strangers() == []
    assert not list((made.home / "workers").iterdir())


def box_of(house: Any) -> ContainerBox:
    (worker,) = house.source.pool.workers
    return worker.box


async def processes_of(house: Any) -> list[int]:
    """Wait until a container's processes are known here; docker has to be asked for them."""
    while not (found := box_of(house).processes()):  # noqa: ASYNC110 - a thread is asking
        await asyncio.sleep(0)
    return found


def inspected(engine: ContainerEngine, name: str, what: str) -> str:
    return engine.ask("inspect", "--format", what, name).stdout.strip()


async def works(house: Any) -> bool:
    return (await house.call("echo", text="still here")).data["text"] == "still here"


async def test_a_container_has_the_documented_limits_and_says_whose_it_is(house: Any, engine: ContainerEngine) -> None:
    assert await works(house)
    name, server = box_of(house).name, server_of(house.home)
    wanted = {
        "HostConfig.NetworkMode": "none",
        "HostConfig.ReadonlyRootfs": "true",
        "HostConfig.Memory": str(2 << 30),
        "HostConfig.MemorySwap": str(2 << 30),
        "HostConfig.CpuPeriod": "100000",
        "HostConfig.CpuQuota": "200000",
        "HostConfig.PidsLimit": "100",
        "HostConfig.ShmSize": str(64 << 20),
        "HostConfig.Privileged": "false",
    }
    told = inspected(engine, name, "|".join(f"{{{{.{field}}}}}" for field in wanted)).split("|")
    assert dict(zip(wanted, told, strict=True)) == wanted
    assert "no-new-privileges" in inspected(engine, name, "{{.HostConfig.SecurityOpt}}")
    first = (await processes_of(house))[0]
    for namespace in ("ipc", "pid", "net", "mnt", "uts"):
        own = f"/proc/self/ns/{namespace}"
        assert os.readlink(f"/proc/{first}/ns/{namespace}") != os.readlink(own)
    assert "size=256m" in inspected(engine, name, "{{.HostConfig.Tmpfs}}")
    assert inspected(engine, name, f'{{{{index .Config.Labels "{SERVER_LABEL}"}}}}') == server.id
    assert inspected(engine, name, f'{{{{index .Config.Labels "{ADAPTER_LABEL}"}}}}') == "misbehaving"


async def test_inside_there_are_no_capabilities_and_the_workspace_is_only_read(house: Any) -> None:
    (house.workspace / "part.txt").write_text("a part")
    assert (await house.call("read", path="part.txt")).data["text"] == "a part"
    assert "Read-only file system" in (await house.call("write", path="part.txt")).data["text"]
    status = (await house.call("read", path="/proc/self/status")).data["text"]
    fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert {int(fields[name], 16) for name in ("CapEff", "CapPrm", "CapInh", "CapAmb", "CapBnd")} == {0}
    assert (fields["NoNewPrivs"], fields["Seccomp"]) == ("1", "2")
    assert fields["Uid"].split()[0] != "0"
    limits = (await house.call("read", path="/proc/self/limits")).data["text"]
    assert any(
        line.startswith("Max open files") and line.split()[3:5] == ["1024", "4096"] for line in limits.splitlines()
    )


async def test_files_are_collected_into_the_workspace_and_the_container_serves_the_next_call(house: Any) -> None:
    outcome = await house.call("produce", files={"out/a.txt": "alpha"})
    assert [artefact.path for artefact in outcome.files] == ["out/a.txt"]
    assert (house.workspace / "out" / "a.txt").read_text() == "alpha"
    first = box_of(house).name
    assert await works(house)
    assert box_of(house).name == first
    assert not list(box_of(house).output.iterdir())


async def test_a_container_that_ran_a_callers_code_serves_no_other_call(house: Any) -> None:
    names = []
    for text in ("one", "two"):
        code = "from metaforge.tools.context import OutputFile\nctx.output_file(name).write_text('x')\n"
        code = f"name = 'out/{text}.txt'\n{code}files = (OutputFile(name),); text = os.uname().nodename"
        names.append((await house.call("script", code=code, output_path=f"out/{text}.txt")).data["text"])
    assert len(set(names)) == 2
    assert (house.workspace / "out" / "two.txt").read_text() == "x"


async def test_writing_the_workspace_is_for_adapters_whose_configuration_says_so(make: Callable[..., Any]) -> None:
    house = make(may_write_workspace=True, workspace_inside="/parts")
    try:
        assert (await house.call("write", path="made.txt")).data["text"] == "written"
        assert (house.workspace / "made.txt").read_text() == "written"
        assert (house.workspace / "made.txt").stat().st_uid == house.workspace.stat().st_uid
    finally:
        await house.source.close()


async def test_memory_ends_at_the_tools_own_limit_and_the_next_call_works(house: Any) -> None:
    with pytest.raises(OverLimit, match="256 MB") as caught:
        await house.call("hoard", size_mb=1024)
    assert caught.value.kind == "memory_limit"
    assert await works(house)


async def test_cpu_time_ends_at_the_tools_own_limit(house: Any) -> None:
    with pytest.raises(OverLimit, match="CPU time"):
        await house.call("burn")
    assert await works(house)


async def test_a_crash_tells_its_status_and_last_words(house: Any) -> None:
    with pytest.raises(ToolCrashed, match=r"exit status 3.*the kernel says goodbye"):
        await house.call("crash")
    with pytest.raises(ToolCrashed, match="signal 11"):
        await house.call("segfault")
    assert await works(house)


async def test_a_deadline_removes_the_container(house: Any, engine: ContainerEngine) -> None:
    assert await works(house)
    with pytest.raises(ToolTimedOut):
        await house.call("loop", seconds=0.5)
    assert engine.of_server(server_of(house.home).id) == []


async def test_cancelling_removes_the_container_and_what_ignores_every_signal(
    house: Any, engine: ContainerEngine
) -> None:
    marker = uuid.uuid4().hex
    call = asyncio.create_task(house.call("linger", marker=marker, answer=False))
    await asyncio.wait_for(house.begun.wait(), 30)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert not [each for each in psutil.process_iter(["cmdline"]) if marker in " ".join(each.info["cmdline"] or ())]
    assert engine.of_server(server_of(house.home).id) == []


async def test_a_start_that_is_cancelled_leaves_no_container(house: Any, engine: ContainerEngine) -> None:
    call = asyncio.create_task(house.call("echo", text="never"))
    workers = house.home / "workers"
    while not (workers.is_dir() and list(workers.iterdir())):  # noqa: ASYNC110 - the task has only to run
        await asyncio.sleep(0)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await house.source.close()
    assert engine.of_server(server_of(house.home).id) == []


async def test_an_image_that_is_not_there_is_told_with_the_command_that_builds_it(
    tmp_path: Path, engine: ContainerEngine
) -> None:
    settings = Settings.load(ENVIRONMENT | {"METAFORGE_HOME": str(tmp_path / "home")})
    manifest = AdapterManifest.from_json(manifest_of(TARGET))
    launcher = ContainerLauncher(manifest, settings, tmp_path, Image("localhost/metaforge-nothing:0"))
    source = ProcessSource(manifest, settings, tmp_path, BlobStore(tmp_path / "blobs"), launcher=launcher)
    tool = next(tool for tool in manifest.tools if tool.id == "misbehaving.echo")
    with pytest.raises(ToolUnavailable, match="has no such image") as caught:
        await source.call(tool, {"text": "x"}, Invocation("call-1", Caller(), 30.0))
    assert caught.value.data["install"] == "scripts/images misbehaving"
    trouble = source.trouble()
    assert trouble is not None
    assert "localhost/metaforge-nothing:0" in trouble.reason
    health = await source.health(3.0)
    assert (health.reachable, health.install) == (False, "scripts/images misbehaving")
    await source.close()


async def test_the_end_of_the_engines_client_is_a_crash_of_that_call_alone(house: Any, engine: ContainerEngine) -> None:
    call = asyncio.create_task(house.call("slow", duration_seconds=600))
    await asyncio.wait_for(house.begun.wait(), 30)
    os.kill(box_of(house).pid, signal.SIGKILL)
    with pytest.raises(ToolCrashed):
        await call
    assert await works(house)
    assert len(engine.of_server(server_of(house.home).id)) == 1


@pytest.mark.parametrize("is_here", [True, False], ids=["here", "elsewhere"])
async def test_a_container_stands_still_and_goes_on(
    house: Any, engine: ContainerEngine, monkeypatch: pytest.MonkeyPatch, is_here: bool
) -> None:
    if not is_here:
        monkeypatch.setattr(ContainerBox, "_meet", lambda box, pid: None)
    assert await works(house)
    box = box_of(house)
    box.freeze()
    pid = engine.process_of(box.name)
    stopped = psutil.STATUS_STOPPED if is_here else psutil.STATUS_DISK_SLEEP
    assert psutil.Process(pid).status() == stopped or inspected(engine, box.name, "{{.State.Status}}") == "paused"
    box.thaw()
    assert await works(house)
    box.freeze()


async def test_a_container_whose_processes_are_not_this_machines_ends_as_surely(
    house: Any, engine: ContainerEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ContainerBox, "_meet", lambda box, pid: None)
    assert await works(house)
    assert box_of(house).processes() == []
    with pytest.raises(ToolTimedOut):
        await house.call("loop", seconds=0.5)
    assert engine.of_server(server_of(house.home).id) == []
    assert await works(house)


@pytest.mark.usefixtures("image")
async def test_an_adapter_of_another_make_says_itself_what_tools_its_image_has(
    tmp_path: Path, engine: ContainerEngine
) -> None:
    image = container_image.ensure_with_package(engine.name, "notebook:NotebookServer", HERE / "notebook.py")
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "metaforge.toml").write_text(f'[adapters.notebook]\nimage = "{image}"\n')
    settings = Settings.load(
        ENVIRONMENT | {"METAFORGE_HOME": str(tmp_path / "home"), "METAFORGE_WORKSPACE": str(workspace)}
    )
    app = App(settings, over_stdio=True)
    try:
        while not any(tool.adapter_id == "notebook" for tool in app.listed_tools()):  # noqa: ASYNC110 - a thread asks
            await asyncio.sleep(0)

        async def call(name: str, **arguments: Any) -> dict[str, Any]:
            source = app.registry.source("notebook")
            tool = next(tool for tool in source.manifest.tools if tool.id == f"notebook.{name}")
            outcome = await source.call(tool, arguments, Invocation("call-1", Caller(), 60.0))
            return dict(outcome.data or {})

        session_id = (await call("open_session"))["session_id"]
        await call("write", session_id=session_id, line="first")
        assert (await call("write", session_id=session_id, line="second"))["lines"] == ["first", "second"]
        await call("save", session_id=session_id, path="notes.txt")
        assert (workspace / "notes.txt").read_text() == "first\nsecond"
        # What the session's code left running stands still while its files are looked at.
        await call("run", session_id=session_id)
        with contextlib.suppress(ToolError):
            await call("save", session_id=session_id, path="more.txt")
            assert (workspace / "more.txt").read_text() == "first\nsecond"
    finally:
        await app.close()
    assert engine.of_server(server_of(settings.home_path).id) == []


SERVER = """
import asyncio, os, sys
from pathlib import Path
sys.path[:0] = [{tests!r}, {here!r}]
import container_image
from metaforge.engine.container import ContainerLauncher, Image
from metaforge.engine.container_server import server_of
from metaforge.engine.source import ProcessSource
from metaforge.settings import Settings
from metaforge.store.blobs import BlobStore
from metaforge.tools.context import Caller, Invocation
from metaforge.tools.generate import manifest_of
from metaforge.tools.manifest import AdapterManifest

async def main():
    home, workspace = Path({home!r}), Path({workspace!r})
    settings = Settings.load(dict(os.environ) | {{"METAFORGE_HOME": str(home)}})
    manifest = AdapterManifest.from_json(manifest_of({target!r}))
    image = Image({image!r}, environment={{"TARGET": {target!r}}}, readable=(container_image.SOURCES, Path({here!r})))
    launcher = ContainerLauncher(manifest, settings, workspace, image)
    source = ProcessSource(manifest, settings, workspace, BlobStore(home / "blobs"), launcher=launcher)
    tool = next(tool for tool in manifest.tools if tool.id == "misbehaving.loop")
    begun = lambda fraction, message: print(server_of(home).id, flush=True)
    await source.call(tool, {{}}, Invocation("call-1", Caller(), 300.0, progress=begun))

asyncio.run(main())
"""


@pytest.fixture
def server(tmp_path: Path, image: str) -> Iterator[Callable[[], tuple["subprocess.Popen[str]", str]]]:
    """Start a server in a process of its own, with a container that never answers; return it and its id."""
    started: list[subprocess.Popen[str]] = []
    (tmp_path / "workspace").mkdir()

    def starting() -> tuple["subprocess.Popen[str]", str]:
        code = SERVER.format(
            tests=str(HERE.parent), here=str(HERE), home=str(tmp_path / "home"), image=image, target=TARGET,
            workspace=str(tmp_path / "workspace"),
        )  # fmt: skip
        process = subprocess.Popen(
            [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        started.append(process)
        assert process.stdout is not None
        return process, process.stdout.readline().strip()

    yield starting
    for process in started:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def wait_until_gone(engine: ContainerEngine, server_id: str) -> bool:
    """Look for a server's containers until there is none; false when they outlast what a dead server's may."""
    until = time.monotonic() + REAPED_SECONDS
    while left := engine.of_server(server_id):
        if time.monotonic() > until:
            break
    return not left


def test_five_seconds_after_a_server_was_killed_its_containers_are_gone(
    server: Callable[[], tuple["subprocess.Popen[str]", str]], engine: ContainerEngine
) -> None:
    process, server_id = server()
    assert len(engine.of_server(server_id)) == 1
    os.killpg(process.pid, signal.SIGKILL)
    assert wait_until_gone(engine, server_id)


def test_a_server_that_starts_removes_what_others_left_and_nothing_of_those_that_live(
    server: Callable[[], tuple["subprocess.Popen[str]", str]], engine: ContainerEngine
) -> None:
    _, alive = server()
    dead, dead_id = server()
    # The reaper goes first: nobody removes what this server leaves.
    for child in psutil.Process(dead.pid).children():
        if any("container_reaper" in part for part in child.cmdline()):
            child.kill()
    os.killpg(dead.pid, signal.SIGKILL)
    dead.wait()
    assert len(engine.of_server(dead_id)) == 1
    _, third = server()
    assert wait_until_gone(engine, dead_id)
    assert (len(engine.of_server(alive)), len(engine.of_server(third))) == (1, 1)
