"""Start a worker. A launcher says where one runs: a sandboxed process here; containers have the same shape."""

import asyncio
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Protocol

from metaforge.core.errors import ToolUnavailable
from metaforge.engine import cgroups, sandbox, seccomp
from metaforge.engine.box import Box
from metaforge.engine.processes import is_alive
from metaforge.engine.removal import remove_tree
from metaforge.settings import Settings
from metaforge.tools.manifest import AdapterManifest

NICE = 10
DEFAULT_MEMORY_MB = 2048
DEFAULT_CPU_SECONDS = 600
DEFAULT_DISK_MB = 512

_ADDRESS_HEADROOM_MB = 4096
"""Kernels and thread stacks reserve far more addresses than they use; this stops only what is out of all proportion."""
_OPEN_FILES = 1024
_UID_BASE = 0x70000000
_BOXES_PER_SERVER = 64
_FOLDER = re.compile(r"(\d+)-\d+")
_ENTER = 'n=$1; shift; while [ "$n" -gt 0 ]; do echo $$ >"$1" || exit 125; shift; n=$((n-1)); done; exec "$@"'
_PASSED_ON = ("OMP_NUM_THREADS", "TZ")
_serial = count()


class Launcher(Protocol):
    """Starts workers of one adapter."""

    async def launch(self, on_stdout: Callable[[bytes], None], on_closed: Callable[[], None]) -> Box:
        """Start one; bytes of its stdout go to `on_stdout`.

        Raises:
            ToolUnavailable: it cannot be started here.
        """
        ...


@dataclass(frozen=True)
class ProcessLauncher:
    """Starts `metaforge.tools.run` in a process of this machine, boxed as the settings say.

    Args:
        manifest: the adapter; its largest limits bound the process.
        workspace: root of the workspace, an existing folder.
        python_paths: folders with modules of adapters that are not installed.
        environment: variables for the worker, beside the few every worker gets.
    """

    manifest: AdapterManifest
    settings: Settings
    workspace: Path
    python_paths: tuple[Path, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)

    async def launch(self, on_stdout: Callable[[bytes], None], on_closed: Callable[[], None]) -> Box:
        # The first look runs bubblewrap, some 40 ms; afterwards it is remembered.
        rung = await asyncio.to_thread(sandbox.find, self.settings)
        folder = make_folder(self.settings.home_path / "workers")
        return await open_box(lambda: self._spawn(rung, folder), folder, self.manifest.adapter_id, on_stdout, on_closed)

    def _spawn(self, rung: sandbox.Rung, folder: Path) -> Box:
        output, temporary = folder / "output", folder / "tmp"
        output.mkdir()
        memory_mb = largest(self.manifest, "max_memory_mb", DEFAULT_MEMORY_MB)
        group = _group(rung, memory_mb)
        filtering = seccomp.descriptor() if rung.boxed else None
        try:
            if rung.boxed:
                uid = _uid() if rung.as_root else os.getuid()
                if rung.as_root:
                    os.chown(output, uid, uid)
                hidden = (self.settings.home_path,)
                view = sandbox.View(self.workspace, output, self._readable(), self._environment(None, None), hidden)
                bwrap = shutil.which("bwrap", path=self.settings.environment.get("PATH")) or "bwrap"
                command = sandbox.command(bwrap, rung, view, uid, filtering, self._python(rung))
                environment = {"PATH": os.defpath}
            else:
                temporary.mkdir()
                command = self._python(rung)
                environment = self._environment(output, temporary)
            popen = subprocess.Popen(
                _wrapped(command, rung, group, memory_mb),
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0,
                env=environment | self._session_bus(rung), cwd=folder, start_new_session=True,
                pass_fds=() if filtering is None else (filtering,),
            )  # fmt: skip
        except BaseException:
            if group is not None:
                group.remove()
            raise
        finally:
            if filtering is not None:
                os.close(filtering)
        return Box(
            popen, folder=folder, output=output,
            output_inside=sandbox.OUTPUT_INSIDE if rung.boxed else str(output), boxed=rung.boxed, group=group,
            memory_mb=memory_mb, max_processes=sandbox.MAX_PROCESSES,
        )  # fmt: skip

    def _session_bus(self, rung: sandbox.Rung) -> dict[str, str]:
        wanted = ("XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS") if rung.memory == "systemd scope" else ()
        return {name: self.settings.environment[name] for name in wanted if name in self.settings.environment}

    def _python(self, rung: sandbox.Rung) -> list[str]:
        limits = {
            "address_mb": largest(self.manifest, "max_memory_mb", DEFAULT_MEMORY_MB) + _ADDRESS_HEADROOM_MB,
            "file_mb": largest(self.manifest, "max_disk_mb", DEFAULT_DISK_MB),
            # Outside a box this would count every process of the user.
            "processes": sandbox.MAX_PROCESSES if rung.boxed else 0,
            "open_files": _OPEN_FILES,
            "nice": NICE,
        }
        guard = [] if rung.boxed else ["--guard", str(os.getpid())]
        return [
            sys.executable, "-P", "-s", "-X", "faulthandler", "-m", "metaforge.tools.run", self.manifest.target,
            *guard, *(f"--limit={name}={value}" for name, value in limits.items() if value),
        ]  # fmt: skip

    def _environment(self, output: Path | None, temporary: Path | None) -> dict[str, str]:
        home = str(temporary or "/tmp")
        theirs = self.settings.environment
        search_path = theirs.get("PATH", os.defpath)
        if output is None:
            folders = [str(folder) for folder in self._program_folders()]
            search_path = ":".join([*folders, "/usr/local/bin", "/usr/bin", "/bin", "/usr/local/sbin", "/usr/sbin"])
        environment = {
            "PATH": search_path, "HOME": home, "TMPDIR": home, "USER": "worker", "LANG": "C.UTF-8",
            "PYTHONDONTWRITEBYTECODE": "1", "PYTHONUNBUFFERED": "1",
            "METAFORGE_WORKER_WORKSPACE": str(self.workspace) if output else sandbox.WORKSPACE_INSIDE,
            "METAFORGE_WORKER_OUTPUT": str(output) if output else sandbox.OUTPUT_INSIDE,
        }  # fmt: skip
        if self.python_paths:
            environment["PYTHONPATH"] = os.pathsep.join(map(str, self.python_paths))
        environment |= {name: theirs[name] for name in _PASSED_ON if name in theirs}
        return environment | dict(self.environment)

    def _readable(self) -> tuple[Path, ...]:
        # A program of a prefix loads its libraries from there too.
        there = self._programs()
        prefixes = (
            prefix for prefix in self.settings.program_prefixes if any(path.is_relative_to(prefix) for path in there)
        )
        return (*self.python_paths, *self._program_folders(), *prefixes)

    def _program_folders(self) -> list[Path]:
        """Return the folders of needed programs that are not among the system's."""
        folders = {path.resolve().parent for path in self._programs()}
        return sorted(folder for folder in folders if not folder.is_relative_to("/usr"))

    def _programs(self) -> list[Path]:
        needs = {need.name for tool in self.manifest.tools for need in tool.needs if need.kind == "program"}
        found = {shutil.which(name, path=self.settings.environment.get("PATH")) for name in sorted(needs)}
        return [Path(path) for path in found if path]


def largest(manifest: AdapterManifest, limit: str, default: int) -> int:
    """Return the largest of one limit over an adapter's tools; zero means the default."""
    return max((getattr(tool.limits, limit) or default for tool in manifest.tools), default=default)


async def open_box(
    spawn: Callable[[], Box],
    folder: Path,
    name: str,
    on_stdout: Callable[[bytes], None],
    on_closed: Callable[[], None],
) -> Box:
    """Start a process and open its box; nothing of it is left where that fails.

    Args:
        spawn: starts it. It returns at exec, so it may run in the event loop.
        folder: its own folder, as `make_folder` made it.
        name: what is started, for the error.

    Raises:
        ToolUnavailable: it cannot be started.
    """
    try:
        box = spawn()
    except (OSError, ValueError) as fault:
        remove_tree(folder)
        raise ToolUnavailable(f"{name} cannot be started: {fault}", reason=str(fault), install="") from fault
    try:
        await box.open(on_stdout, on_closed)
    except BaseException:
        await box.kill()
        raise
    return box


def make_folder(root: Path) -> Path:
    """Make a worker's own folder, and remove those of servers that were killed."""
    root.mkdir(parents=True, exist_ok=True)
    serial = next(_serial)
    if serial == 0:
        for left in root.iterdir():
            found = _FOLDER.fullmatch(left.name)
            if found and not is_alive(int(found[1])):
                remove_tree(left)
    folder = root / f"{os.getpid()}-{serial}"
    remove_tree(folder)
    folder.mkdir()
    return folder


def _uid() -> int:
    """Return a user id that no other box has: processes are counted per user."""
    return _UID_BASE + (os.getpid() * _BOXES_PER_SERVER + next(_serial) % _BOXES_PER_SERVER) % 0x0FFFFFFF


def _group(rung: sandbox.Rung, memory_mb: int) -> cgroups.Group | None:
    found = cgroups.hierarchy() if rung.memory.startswith("cgroup") else None
    if found is None:
        return None
    try:
        group = cgroups.Group(found)
    except OSError:
        return None
    with suppress(OSError):
        group.limit(memory_mb=memory_mb, processes=sandbox.MAX_PROCESSES)
    return group


def _wrapped(command: list[str], rung: sandbox.Rung, group: cgroups.Group | None, memory_mb: int) -> list[str]:
    if group is not None:
        # The process enters by itself, before it can fork: moved from outside, what it forked first would stay out.
        entrances = group.entrances
        return ["/bin/sh", "-c", _ENTER, "sh", str(len(entrances)), *entrances, *command]
    if rung.memory == "systemd scope":
        limits = ["-p", f"MemoryMax={memory_mb}M", "-p", f"TasksMax={sandbox.MAX_PROCESSES}"]
        return ["systemd-run", "--user", "--scope", "--quiet", "--collect", *limits, "--", *command]
    return command


@dataclass(frozen=True)
class CommandLauncher:
    """Starts a worker by a command of its own, without a box: an adapter of another make, or a container's client.

    Args:
        command: the program and its arguments; it speaks the legacy dialect on stdin and stdout.
        environment: all its variables.
        folder: below which its own folder is made; it starts there.
        memory_mb: the memory its processes may use together, in MiB.
    """

    command: tuple[str, ...]
    folder: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    memory_mb: int = DEFAULT_MEMORY_MB

    async def launch(self, on_stdout: Callable[[bytes], None], on_closed: Callable[[], None]) -> Box:
        folder = make_folder(self.folder)
        return await open_box(lambda: self._spawn(folder), folder, self.command[0], on_stdout, on_closed)

    def _spawn(self, folder: Path) -> Box:
        output = folder / "output"
        output.mkdir()
        popen = subprocess.Popen(
            self.command,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0,
            env=dict(self.environment), cwd=folder, start_new_session=True,
        )  # fmt: skip
        return Box(
            popen, folder=folder, output=output, output_inside=str(output), boxed=False, group=None,
            memory_mb=self.memory_mb, max_processes=sandbox.MAX_PROCESSES,
        )  # fmt: skip
