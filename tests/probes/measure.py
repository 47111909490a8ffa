"""Run every probe in one column and write what came of it: `python measure.py RUNNER FOLDER OUT.json`."""

import asyncio
import contextlib
import json
import os
import socket
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
from probe_table import PROBES

sys.path.insert(0, str(Path(__file__).parents[1]))
import container_image

from metaforge.core.errors import MetaForgeError, OverLimit
from metaforge.engine import container_engine, sandbox
from metaforge.engine.container import ContainerLauncher, Image
from metaforge.engine.faults import WorkerCrashed
from metaforge.engine.launch import Launcher, ProcessLauncher
from metaforge.engine.source import ProcessSource
from metaforge.settings import Settings
from metaforge.store.blobs import BlobStore
from metaforge.tools.context import Caller, Invocation
from metaforge.tools.generate import manifest_of
from metaforge.tools.manifest import AdapterManifest

ENDED_BY_A_LIMIT = {"memory", "memory_of_many", "memory_of_files", "cpu", "disk", "fork_bomb", "thread_bomb"}
"""Probes whose limit ends the call; ends of any other kind are no proof."""
SECONDS = 60.0
HERE = Path(__file__).parent
CONTAINER = "container"
MARKER = f"secret-of-the-server-{uuid.uuid4().hex}"


class Scene:
    """What the probes attack: listeners, a secret, another process, the workspace."""

    def __init__(self, folder: Path) -> None:
        self.home, self.workspace = folder / "home", folder / "workspace"
        self.home.mkdir()
        self.workspace.mkdir()
        self.secret = self.home / "secret.txt"
        self.secret.write_text(MARKER)
        (self.workspace / "link.txt").symlink_to(self.secret)
        self.tcp = socket.create_server(("127.0.0.1", 0))
        self.abstract = socket.socket(socket.AF_UNIX)
        self.abstract_name = uuid.uuid4().hex
        self.abstract.bind("\0" + self.abstract_name)
        self.abstract.listen()
        self.file = socket.socket(socket.AF_UNIX)
        self.file.bind(str(self.home / "socket"))
        self.file.listen()
        self.victim = self._victim()

    def _victim(self) -> "subprocess.Popen[bytes]":
        return subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"], env={"SECRET": MARKER})

    def arguments(self, name: str) -> dict[str, Any]:
        if self.victim.poll() is not None:
            self.victim = self._victim()
        victim = self.victim.pid
        given: dict[str, dict[str, Any]] = {
            "network": {
                "port": self.tcp.getsockname()[1], "abstract": self.abstract_name, "path": str(self.home / "socket"),
            },
            "read_outside": {
                "secret": str(self.secret), "link": "link.txt", "accounts": os.stat("/etc/passwd").st_ino,
            },
            "write_outside": {"folder": str(self.home)},
            "ptrace": {"victim": victim},
            "proc": {"victim": victim, "marker": MARKER},
            "signals": {"victim": victim},
            "outlive": {"marker": MARKER},
        }  # fmt: skip
        return given.get(name, {})

    def close(self) -> None:
        self.victim.kill()
        self.victim.wait()
        for each in (self.tcp, self.abstract, self.file):
            each.close()
        library = Path(os.__file__).parent
        for path in (Path("/usr/bin/metaforge-probe"), Path("/etc/metaforge-probe"), library / "metaforge_probe.py"):
            with contextlib.suppress(OSError):
                path.unlink()


def daemons() -> Iterator[psutil.Process]:
    for process in psutil.process_iter(["cmdline"]):
        if any(MARKER in part for part in process.info["cmdline"] or ()):
            yield process


async def outlive(source: ProcessSource, scene: Scene) -> dict[str, Any]:
    """Cancel the call once its daemons are there, and see what is alive when that has returned."""
    left = asyncio.Event()
    invocation = Invocation("outlive", Caller(), SECONDS, progress=lambda fraction, message: left.set())
    tool = next(each for each in source.manifest.tools if each.id == "prober.outlive")
    call = asyncio.create_task(source.call(tool, scene.arguments("outlive"), invocation))
    await asyncio.wait_for(left.wait(), SECONDS)
    before = len(list(daemons()))
    call.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await call
    alive = list(daemons())
    for process in alive:
        process.kill()
    return {"held": before >= 3 and not alive, "told": f"{before} daemons before the kill, {len(alive)} after it"}


async def measure(source: ProcessSource, name: str, scene: Scene) -> dict[str, Any]:
    if name == "outlive":
        return await outlive(source, scene)
    tool = next(each for each in source.manifest.tools if each.id == f"prober.{name}")
    try:
        outcome = await source.call(tool, scene.arguments(name), Invocation(name, Caller(), SECONDS))
    except OverLimit as over:
        return {"held": name in ENDED_BY_A_LIMIT, "told": f"{over.kind}: {over.message}"}
    except WorkerCrashed as crashed:
        # Ending the process is how some limits end a call; which one has to be said.
        return {"held": name in ENDED_BY_A_LIMIT, "told": crashed.message}
    except MetaForgeError as fault:
        return {"held": False, "told": f"{type(fault).__name__}: {fault.message}"}
    return {"held": outcome.data["held"], "told": outcome.data["told"]}


def described(runner: str, settings: Settings) -> dict[str, Any]:
    if runner != CONTAINER:
        return sandbox.describe(settings)
    engine = container_engine.find(settings)
    held = f"{engine.name}'s control group" if engine.limits_in_force else "watchdog"
    return {"kind": CONTAINER, "memory_limit": held}


async def main(runner: str, folder: Path) -> dict[str, Any]:
    environ = {"PATH": os.environ["PATH"], "METAFORGE_HOME": str(folder / "home")}
    if runner != CONTAINER:
        environ["METAFORGE_SANDBOX"] = runner
    # What the engine's client goes by.
    environ |= {name: os.environ[name] for name in ("HOME", "XDG_RUNTIME_DIR") if name in os.environ}
    settings = Settings.load(environ | {"METAFORGE_PRESTART": "false", "METAFORGE_MCP_API_KEY": MARKER})
    scene = Scene(folder)
    manifest = AdapterManifest.from_json(manifest_of("prober:ProberServer"))
    launcher: Launcher = ProcessLauncher(manifest, settings, scene.workspace, python_paths=(HERE,))
    if runner == CONTAINER:
        launcher = ContainerLauncher(
            manifest, settings, scene.workspace,
            Image(
                container_image.ensure(container_engine.find(settings).name),
                environment={"TARGET": "prober:ProberServer"},
                readable=(container_image.SOURCES, HERE),
            ),
        )  # fmt: skip
    source = ProcessSource(
        manifest, settings, scene.workspace, BlobStore(folder / "home" / "blobs"), launcher=launcher, max_workers=1
    )
    results: dict[str, Any] = {}
    try:
        for probe in PROBES:
            # A new process each time: no probe finds what another left.
            results[probe.name] = await measure(source, probe.name, scene)
            for worker in source.pool.idle:
                worker.spoiled = True
    finally:
        await source.close()
        scene.close()
    return {"sandbox": described(runner, settings), "user": os.geteuid(), "results": results}


if __name__ == "__main__":
    told = asyncio.run(main(sys.argv[1], Path(sys.argv[2])))
    Path(sys.argv[3]).write_text(json.dumps(told))
