"""The program that runs containers here, podman or docker, through its command line: found, asked, told to remove."""

import os
import shutil
import subprocess
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from metaforge.core.errors import ToolUnavailable
from metaforge.settings import Settings

SERVER_LABEL, ADAPTER_LABEL = "metaforge.server", "metaforge.adapter"
INSTALL = "apt-get install -y podman runc"

_ANSWER_SECONDS = 30.0
_ENGINES = ("podman", "docker")
_FACTS = {
    "podman": "{{.Version.Version}}|{{.Host.Security.Rootless}}|{{.Host.OCIRuntime.Name}}|v{{.Host.CgroupsVersion}}"
    "|{{.Host.Security.SECCOMPProfilePath}}",
    "docker": "{{.ServerVersion}}|{{.SecurityOptions}}|{{.DefaultRuntime}}|v{{.CgroupVersion}}|",
}
CLIENT_VARIABLES = (
    "PATH", "HOME", "LANG", "TMPDIR", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME",
    "DBUS_SESSION_BUS_ADDRESS", "CONTAINERS_CONF", "CONTAINERS_STORAGE_CONF", "DOCKER_CONFIG", "DOCKER_CONTEXT",
    "DOCKER_HOST", "DOCKER_CERT_PATH", "DOCKER_TLS_VERIFY",
)  # fmt: skip
"""What an engine's client may need; the server's keys are none of its business."""

_looking = threading.Lock()


@dataclass(frozen=True)
class ContainerEngine:
    """One engine, as it told about itself."""

    name: str
    """`podman` or `docker`."""
    program: str
    version: str
    rootless: bool
    """It runs without root: its containers' root is the user who runs them."""
    runtime: str
    """The OCI runtime that is asked for; empty for the engine's own."""
    cgroup: str
    """`v1` or `v2`."""
    filter_path: str = ""
    """Where its own system-call filter is written down; empty where it is built in."""
    environment: dict[str, str] = field(default_factory=dict, repr=False, hash=False)

    @property
    def limits_in_force(self) -> bool:
        """Whether its control groups bound memory, processes and CPU: without root they need cgroup v2."""
        return not (self.rootless and self.cgroup == "v1")

    def command(self, *words: str) -> list[str]:
        return [self.program, *words]

    def ask(self, *words: str, seconds: float = _ANSWER_SECONDS) -> "subprocess.CompletedProcess[str]":
        """Run one of its commands to the end. Blocking.

        Raises:
            ToolUnavailable: it does not answer.
        """
        return _ask(self.program, words, self.environment, seconds)

    def has_image(self, image: str) -> bool:
        """Return whether an image is here; none is ever fetched. Blocking."""
        return self.ask("image", "inspect", "--format", "{{.Id}}", image).returncode == 0

    def remove(self, names: Iterable[str]) -> None:
        """End containers and remove them; those that are gone are no fault. Blocking."""
        if named := list(names):
            self.ask("rm", "--force", *(["--time", "0"] if self.name == "podman" else []), *named)

    def of_server(self, server_id: str) -> list[str]:
        """Return the ids of a server's containers, in whatever state. Blocking."""
        told = self.ask("ps", "--all", "--quiet", "--no-trunc", "--filter", f"label={SERVER_LABEL}={server_id}")
        return told.stdout.split()

    def process_of(self, name: str) -> int:
        """Return the id of a container's first process on the engine's machine, or zero. Blocking."""
        told = self.ask("inspect", "--format", "{{.State.Pid}}", name).stdout.strip()
        return int(told) if told.isdigit() else 0


def find(settings: Settings) -> ContainerEngine:
    """Return the engine that the settings name, or the first that works. Blocking once, then remembered.

    Raises:
        ToolUnavailable: there is none; the reason and the command that mends it are told.
    """
    environ = settings.environment
    kept = tuple((name, environ[name]) for name in CLIENT_VARIABLES if name in environ)
    with _looking:
        found = _find(settings.container_engine, settings.container_runtime, kept)
    if isinstance(found, str):
        first = settings.container_engine if settings.container_engine != "auto" else _ENGINES[0]
        there = shutil.which(first, path=environ.get("PATH"))
        _find.cache_clear()  # whoever installs one need not start the server again
        raise ToolUnavailable(
            f"No container can be started here: {found}", reason=found, install="" if there else INSTALL
        )
    return found


@cache
def _find(wanted: str, runtime: str, kept: tuple[tuple[str, str], ...]) -> ContainerEngine | str:
    environment = dict(kept)
    problems = []
    for name in _ENGINES if wanted == "auto" else (wanted,):
        program = shutil.which(name, path=environment.get("PATH"))
        if program is None:
            problems.append(f"{name} is not installed")
            continue
        try:
            told = _ask(program, ("info", "--format", _FACTS[name]), environment, _ANSWER_SECONDS)
        except ToolUnavailable as fault:
            problems.append(fault.message)
            continue
        parts = told.stdout.strip().split("|")
        if told.returncode or len(parts) != 5 or not parts[0]:
            problems.append(f"{name} does not work: {_last_line(told.stderr) or 'it told nothing of itself'}")
            continue
        version, security, own_runtime, cgroup, filter_path = parts
        return ContainerEngine(
            name, program, version,
            rootless=security == "true" or "rootless" in security,
            runtime=runtime or _better_runtime(name, own_runtime, environment.get("PATH")),
            cgroup=cgroup.replace("vv", "v"),
            filter_path=filter_path,
            environment=environment,
        )  # fmt: skip
    return "; ".join(problems)


def _better_runtime(engine: str, own: str, search_path: str | None) -> str:
    """Return `runc` where the engine would take crun, which refuses a machine with both cgroup versions mounted."""
    is_hybrid = Path("/sys/fs/cgroup/unified").is_dir()
    found = shutil.which("runc", path=f"{search_path or os.defpath}:/usr/sbin:/sbin")
    return "runc" if engine == "podman" and own == "crun" and is_hybrid and found else ""


def _ask(
    program: str, words: Sequence[str], environment: dict[str, str], seconds: float
) -> "subprocess.CompletedProcess[str]":
    name = Path(program).name
    try:
        return subprocess.run(
            [program, *words], capture_output=True, text=True, errors="replace", timeout=seconds, check=False,
            stdin=subprocess.DEVNULL, env=environment, cwd="/",
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        told = f"{name} did not answer `{name} {words[0]}` within {seconds:g} s"
        raise ToolUnavailable(told, reason=told, install="") from None
    except OSError as fault:
        raise ToolUnavailable(f"{name} does not run: {fault}", reason=str(fault), install="") from None


def _last_line(text: str) -> str:
    return next((line for line in reversed(text.strip().splitlines()) if line.strip()), "")


def describe(settings: Settings) -> dict[str, Any]:
    """Return which engine there is and what holds its containers, for `doctor` and health. Blocking."""
    try:
        engine = find(settings)
    except ToolUnavailable as fault:
        return {"engine": "", "error": fault.message, "install": fault.data.get("install", "")}
    told: dict[str, Any] = {
        "engine": engine.name,
        "version": engine.version,
        "rootless": engine.rootless,
        "cgroup": engine.cgroup,
        "limits": "kernel" if engine.limits_in_force else "watched",
    }
    if engine.runtime:
        told["runtime"] = engine.runtime
    return told
