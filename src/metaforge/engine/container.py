"""Start an adapter's workers in containers: the same program, in an image, under limits that the kernel holds."""

import asyncio
import os
import subprocess
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import orjson

from metaforge.core.errors import ToolUnavailable
from metaforge.engine import container_engine, sandbox
from metaforge.engine.box import Box
from metaforge.engine.container_box import ContainerBox
from metaforge.engine.container_engine import ContainerEngine
from metaforge.engine.container_options import Plan, environment_lines, run_command
from metaforge.engine.container_seccomp import tightened
from metaforge.engine.container_server import server_of
from metaforge.engine.launch import DEFAULT_DISK_MB, DEFAULT_MEMORY_MB, largest, make_folder, open_box
from metaforge.engine.removal import remove_tree
from metaforge.protocol import jsonrpc
from metaforge.settings import Settings
from metaforge.tools.manifest import AdapterManifest
from metaforge.tools.source import Trouble

_UID_BASE = 0x60000000
_UIDS_PER_SERVER = 64
_PASSED_ON = ("OMP_NUM_THREADS", "TZ")
_ENGINE_FAILED = 125
_ASK_SECONDS = 60.0
_serial = count()


@dataclass(frozen=True)
class Image:
    """What an adapter's container is made of, beside what every container gets."""

    name: str
    workspace_inside: str = sandbox.WORKSPACE_INSIDE
    may_write_workspace: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)
    readable: tuple[Path, ...] = ()
    """Folders of this machine that it sees read-only, at their own place."""


class ContainerLauncher:
    """Starts an image's own program with its stdin and stdout connected to this process.

    Args:
        manifest: the adapter; its largest limits bound the container.
        workspace: root of the workspace, an existing folder.
    """

    def __init__(self, manifest: AdapterManifest, settings: Settings, workspace: Path, image: Image) -> None:
        self._manifest = manifest
        self._settings = settings
        self._workspace = workspace
        self._image = image
        self._checked: ContainerEngine | None = None
        self._trouble: Trouble | None = None

    @property
    def image(self) -> str:
        """The image its containers are made of."""
        return self._image.name

    def look(self) -> None:
        """Look in the background whether the engine works and has the image; `trouble` then tells."""

        def checking() -> None:
            with suppress(ToolUnavailable, OSError):
                self._prepare()

        threading.Thread(target=checking, daemon=True, name=f"look for {self._image.name}").start()

    def trouble(self) -> Trouble | None:
        """Return why no container could be started when it was last looked at."""
        return self._trouble

    def check(self) -> ContainerEngine:
        """Return the engine, when it works and has the image. Blocking.

        Raises:
            ToolUnavailable: no container of this adapter can be started.
        """
        try:
            engine = container_engine.find(self._settings)
            if self._checked is not engine and not engine.has_image(self._image.name):
                raise self._no_image(engine)
        except ToolUnavailable as fault:
            install = fault.data.get("install")
            self._trouble = Trouble(f"{fault.message}; to mend: {install}" if install else fault.message, 1.0)
            raise
        self._checked, self._trouble = engine, None
        return engine

    def _no_image(self, engine: ContainerEngine) -> ToolUnavailable:
        image = self._image.name
        local = image.startswith("localhost/")
        return ToolUnavailable(
            f"{self._manifest.adapter_id} runs in a container of {image}, and {engine.name} has no such image",
            reason=f"there is no image {image}",
            install=f"scripts/images {self._manifest.adapter_id}" if local else f"{engine.name} pull {image}",
        )

    def _prepare(self) -> ContainerEngine:
        engine = self.check()
        server_of(self._settings.home_path).attend(engine)
        return engine

    async def launch(self, on_stdout: Callable[[bytes], None], on_closed: Callable[[], None]) -> Box:
        engine = await asyncio.to_thread(self._prepare)
        folder = make_folder(self._settings.home_path / "workers")
        box = await open_box(
            lambda: self._start(engine, folder), folder, self._manifest.adapter_id, on_stdout, on_closed
        )
        box.exited.add_done_callback(self._note_end)
        return box

    def _note_end(self, ended: "asyncio.Future[int]") -> None:
        if ended.result() == _ENGINE_FAILED:  # look again whether the image is there
            self._checked = None

    def ask(self, *methods: str) -> list[dict[str, Any]]:
        """Start a container, ask it, and remove it; return what it answered to each method. Blocking.

        Raises:
            ToolUnavailable: it cannot be started, or does not answer.
        """
        engine = self._prepare()
        folder = make_folder(self._settings.home_path / "workers")
        asked = [jsonrpc.encode(jsonrpc.request(number, method, {})) for number, method in enumerate(methods)]
        try:
            plan = self._furnish(engine, folder)
            try:
                ran = subprocess.run(
                    run_command(engine, plan), input=b"\n".join(asked) + b"\n", capture_output=True,
                    timeout=_ASK_SECONDS, env=engine.environment, cwd=folder, check=False,
                )  # fmt: skip
            finally:
                engine.remove([plan.name])
            return _answers(ran.stdout, len(methods))
        except (OSError, subprocess.TimeoutExpired, ValueError, LookupError, TypeError) as fault:
            told = f"a container of {self.image} does not say what tools it has: {type(fault).__name__}: {fault}"
            raise ToolUnavailable(told, reason=told, install="") from None
        finally:
            remove_tree(folder)

    def _furnish(self, engine: ContainerEngine, folder: Path) -> Plan:
        output = folder / "output"
        output.mkdir()
        plan = self._plan(engine, folder, output)
        if os.geteuid() == 0 and plan.user[0] != 0:
            os.chown(output, *plan.user)
        _write_privately(plan.environment_file, environment_lines(plan))
        return plan

    def _start(self, engine: ContainerEngine, folder: Path) -> "ContainerBox":
        plan = self._furnish(engine, folder)
        popen = subprocess.Popen(
            run_command(engine, plan),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0,
            env=engine.environment, cwd=folder, start_new_session=True,
        )  # fmt: skip
        return ContainerBox(popen, engine, plan, folder)

    def _plan(self, engine: ContainerEngine, folder: Path, output: Path) -> Plan:
        server, image, theirs = server_of(self._settings.home_path), self._image, self._settings.environment
        environment = {
            "HOME": "/tmp", "TMPDIR": "/tmp", "USER": "worker", "LANG": "C.UTF-8",
            "PYTHONDONTWRITEBYTECODE": "1", "PYTHONUNBUFFERED": "1",
            "METAFORGE_WORKER_WORKSPACE": image.workspace_inside, "METAFORGE_WORKER_OUTPUT": sandbox.OUTPUT_INSIDE,
        }  # fmt: skip
        if image.readable:
            environment["PYTHONPATH"] = os.pathsep.join(map(str, image.readable))
        environment |= {name: theirs[name] for name in _PASSED_ON if name in theirs}
        return Plan(
            image=image.name,
            name=server.name_of(self._manifest.adapter_id),
            server_id=server.id,
            adapter_id=self._manifest.adapter_id,
            workspace=self._workspace,
            output=output,
            user=_user(self._workspace, writes=image.may_write_workspace),
            memory_mb=largest(self._manifest, "max_memory_mb", DEFAULT_MEMORY_MB),
            file_mb=largest(self._manifest, "max_disk_mb", DEFAULT_DISK_MB),
            workspace_inside=image.workspace_inside,
            may_write_workspace=image.may_write_workspace,
            readable=image.readable,
            environment=environment | dict(image.environment),
            pid_file=folder / "pid",
            filter_path=tightened(Path(engine.filter_path), server.folder) if engine.filter_path else None,
            environment_file=folder / "environment",
        )


def _answers(stdout: bytes, count: int) -> list[dict[str, Any]]:
    """Return the results of requests 0, 1, ... among the lines an adapter wrote."""
    found: dict[int, dict[str, Any]] = {}
    for line in stdout.splitlines():
        with suppress(ValueError):
            message = orjson.loads(line)
            if isinstance(message, dict) and isinstance(message.get("result"), dict):
                found[message["id"]] = message["result"]
    return [found[number] for number in range(count)]


def _write_privately(path: Path | None, text: str) -> None:
    if path is not None:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as stream:
            stream.write(text)


def _user(workspace: Path, *, writes: bool) -> tuple[int, int]:
    """Return whose a container's processes are: the workspace's owner, who can read it; root only to write root's own.

    A server that root runs for root gives each container a user id of its own instead.
    """
    if (mine := os.geteuid()) != 0:
        return mine, os.getegid()
    owner = workspace.stat()
    if owner.st_uid != 0 or writes:
        return owner.st_uid, owner.st_gid
    uid = _UID_BASE + (os.getpid() * _UIDS_PER_SERVER + next(_serial) % _UIDS_PER_SERVER) % 0x0FFFFFFF
    return uid, uid
