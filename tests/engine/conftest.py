"""What the engine's tests share: the misbehaving adapter behind a source, in each kind of box."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest

from metaforge.engine import sandbox
from metaforge.engine.launch import CommandLauncher, Launcher, ProcessLauncher
from metaforge.engine.source import ProcessSource
from metaforge.settings import Settings
from metaforge.store.blobs import BlobStore
from metaforge.tools.context import Caller, Invocation, Outcome
from metaforge.tools.generate import manifest_of
from metaforge.tools.manifest import AdapterManifest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))


def manifest(target: str = "misbehaving:MisbehavingServer") -> AdapterManifest:
    return AdapterManifest.from_json(manifest_of(target))


def settings_for(home: Path, kind: str, **more: str) -> Settings:
    environ = {"PATH": os.environ["PATH"], "METAFORGE_HOME": str(home), "METAFORGE_SANDBOX": kind}
    return Settings.load(environ | {"METAFORGE_PRESTART": "false"} | more)


@dataclass
class House:
    """A source and what is around it."""

    source: ProcessSource
    workspace: Path
    home: Path
    blobs: BlobStore
    told: list[tuple[float, str]] = field(default_factory=list)
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    """Set at the first progress of any call."""

    async def call(self, name: str, /, *, seconds: float = 30.0, overwrite: bool = False, **arguments: Any) -> Outcome:
        tool = next(tool for tool in self.source.manifest.tools if tool.id.endswith("." + name))
        invocation = Invocation("call-1", Caller(), seconds, progress=self.note, overwrite=overwrite)
        return await self.source.call(tool, arguments, invocation)

    def note(self, fraction: float, message: str) -> None:
        self.told.append((fraction, message))
        self.begun.set()

    def strangers(self) -> list[str]:
        """Processes of this adapter that belong to no worker of the pool."""
        known = {pid for worker in self.source.pool.workers for pid in worker.box.processes()}
        return [
            f"{process.pid} {process.info['name']}"
            for process in psutil.process_iter(["pid", "name", "environ"])
            if (process.info["environ"] or {}).get("HOUSE") == str(self.home) and process.pid not in known
        ]


@pytest.fixture(scope="session")
def bubblewrap(tmp_path_factory: pytest.TempPathFactory) -> None:
    rung = sandbox.find(settings_for(tmp_path_factory.mktemp("probe"), "auto"))
    if not rung.boxed:
        pytest.skip(f"no bubblewrap here: {rung.reason}")


@pytest.fixture
def make_house(tmp_path: Path) -> Callable[..., House]:
    def make(
        kind: str, *, target: str = "misbehaving:MisbehavingServer", launcher: Any = None,
        python_paths: tuple[Path, ...] = (HERE,), **more: Any,
    ) -> House:  # fmt: skip
        workspace, home = tmp_path / "workspace", tmp_path / "home"
        workspace.mkdir(exist_ok=True)
        extra = {name: str(value) for name, value in more.items() if name.startswith("METAFORGE_")}
        options = {name: value for name, value in more.items() if not name.startswith("METAFORGE_")}
        settings = settings_for(home, kind, **extra)
        described = manifest(target)
        if launcher is None:
            launcher = ProcessLauncher(
                described, settings, workspace, python_paths=python_paths, environment={"HOUSE": str(home)}
            )
        blobs = BlobStore(home / "blobs")
        source = ProcessSource(described, settings, workspace, blobs, launcher=launcher, **options)
        return House(source, workspace, home, blobs)

    return make


@pytest.fixture(params=["bubblewrap", "rlimits"])
async def house(request: pytest.FixtureRequest, make_house: Callable[..., House]) -> AsyncIterator[House]:
    """The misbehaving adapter, boxed and unboxed; nothing of it may be left afterwards."""
    if request.param == "bubblewrap":
        request.getfixturevalue("bubblewrap")
    made = make_house(request.param)
    yield made
    await made.source.close()
    assert made.strangers() == []
    assert not list((made.home / "workers").iterdir())


@pytest.fixture
async def any_house(make_house: Callable[..., House]) -> AsyncIterator[House]:
    """The misbehaving adapter in whatever box there is here, for tests to which that makes no difference."""
    made = make_house("auto")
    yield made
    await made.source.close()
    assert made.strangers() == []


@pytest.fixture
async def box(bubblewrap: None, make_house: Callable[..., House]) -> AsyncIterator[House]:
    """The misbehaving adapter in bubblewrap."""
    made = make_house("bubblewrap")
    yield made
    await made.source.close()


@pytest.fixture
def script_house(tmp_path: Path, make_house: Callable[..., House]) -> Callable[..., House]:
    """An adapter that is a plain script: it gets every request line and writes what it likes."""

    def make(body: str, **more: Any) -> House:
        path = tmp_path / "adapter.py"
        path.write_text(
            "import json, sys, time, os\n"
            "out = sys.stdout.buffer\n"
            "def send(raw):\n    out.write(raw); out.flush()\n"
            "def answer(request, data):\n"
            "    result = {'tool_id': request['params'].get('tool_id'), 'status': 'success', 'data': data}\n"
            "    return json.dumps({'jsonrpc': '2.0', 'id': request['id'], 'result': result}).encode()\n"
            'send(b\'{"jsonrpc": "2.0", "method": "worker/ready", "params": {}}\\n\')\n'
            "for line in sys.stdin.buffer:\n    request = json.loads(line)\n"
            + "".join(f"    {each}\n" for each in body.splitlines())
        )
        launcher: Launcher = CommandLauncher((sys.executable, str(path)), tmp_path / "home" / "workers", os.environ)
        return make_house("rlimits", launcher=launcher, **more)

    return make
