"""What one container may see and use: the options of `run`, the same for podman and docker."""

import re
import resource
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from metaforge.engine.container_engine import ADAPTER_LABEL, SERVER_LABEL, ContainerEngine
from metaforge.engine.sandbox import OUTPUT_INSIDE

MAX_PROCESSES = 100
CPUS_COUNT = 2
TMP_MB = 256
SHARED_MB = 64
NAME_VARIABLE = "METAFORGE_WORKER_NAME"
"""Tells a container's first process from any other that has its number."""

_CPU_PERIOD_US = 100_000
_OPEN_FILES = (1024, 4096)
_PROCESSES = (4096, 4096)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SELINUX = Path("/sys/fs/selinux/enforce")


@dataclass(frozen=True)
class Plan:
    """One container that is to be."""

    image: str
    name: str
    server_id: str
    adapter_id: str
    workspace: Path
    output: Path
    user: tuple[int, int]
    """User and group id its processes have, as the engine's machine knows them."""
    memory_mb: int
    file_mb: int
    """The largest file it may write, in MiB."""
    workspace_inside: str = "/workspace"
    may_write_workspace: bool = False
    readable: tuple[Path, ...] = ()
    """Folders shown read-only at their own place."""
    environment: Mapping[str, str] = field(default_factory=dict)
    pid_file: Path | None = None
    filter_path: Path | None = None
    """The system-call filter; None for the engine's own."""
    environment_file: Path | None = None
    """Where the variables are written down for the engine's client: every user of this machine can read its command."""


def run_command(engine: ContainerEngine, plan: Plan) -> list[str]:
    """Return the command that creates and starts a container and stays connected to its stdin, stdout and stderr."""
    words = [*_runtime(engine), "run", "--rm", "--interactive", "--pull=never", f"--name={plan.name}"]
    words += [f"--label={SERVER_LABEL}={plan.server_id}", f"--label={ADAPTER_LABEL}={plan.adapter_id}"]
    words += _isolation(engine, plan)
    words += _limits(engine, plan)
    mode = "rw" if plan.may_write_workspace else "ro"
    words += [f"--volume={plan.workspace}:{plan.workspace_inside}:{mode}"]
    words += [f"--volume={plan.output}:{OUTPUT_INSIDE}:rw"]
    words += [f"--volume={folder}:{folder}:ro" for folder in plan.readable]
    if plan.environment_file is not None:
        words += [f"--env-file={plan.environment_file}"]
    return engine.command(*words, f"--env={NAME_VARIABLE}={plan.name}", plan.image)


def environment_lines(plan: Plan) -> str:
    """Return the container's variables as the file that an engine's client reads; values of one line each.

    Raises:
        ValueError: a value has several lines, or a name is none.
    """
    for name, value in plan.environment.items():
        if not _VARIABLE.fullmatch(name) or "\n" in value or "\0" in value:
            raise ValueError(f"the variable {name!r} cannot be given to a container: names are words, values one line")
    return "".join(f"{name}={value}\n" for name, value in plan.environment.items())


def _runtime(engine: ContainerEngine) -> list[str]:
    # podman takes it before its subcommand, docker after it.
    return [f"--runtime={engine.runtime}"] if engine.runtime and engine.name == "podman" else []


def _isolation(engine: ContainerEngine, plan: Plan) -> list[str]:
    words = ["--network=none", "--read-only", "--ipc=private", "--cap-drop=all", "--security-opt=no-new-privileges"]
    if engine.name == "podman":
        # Else it puts folders of any size over /run and /var/tmp, and looks for a way out of the stream.
        words += ["--read-only-tmpfs=false", "--log-driver=none", "--detach-keys="]
        if plan.pid_file is not None:
            words += [f"--pidfile={plan.pid_file}"]
        if engine.rootless:
            # Without it the container's user would be another one here, who can neither read nor write the folders.
            words += ["--userns=keep-id"]
    else:
        words += ["--log-driver=none"]
        if engine.runtime:
            words += [f"--runtime={engine.runtime}"]
    if plan.filter_path is not None:
        words += [f"--security-opt=seccomp={plan.filter_path}"]
    if _SELINUX.exists():
        # The other way is to relabel a person's own files.
        words += ["--security-opt=label=disable"]
    user = (0, 0) if engine.rootless and engine.name == "docker" else plan.user
    return [*words, f"--user={user[0]}:{user[1]}", "--workdir=/tmp"]


def _limits(engine: ContainerEngine, plan: Plan) -> list[str]:
    file_bytes = plan.file_mb << 20
    # Where no control group counts processes, their number per user does: without root a container has its own users.
    processes = _PROCESSES if engine.limits_in_force else (MAX_PROCESSES, MAX_PROCESSES)
    return [
        f"--tmpfs=/tmp:rw,noexec,nosuid,nodev,size={TMP_MB}m,mode=1777",
        f"--shm-size={SHARED_MB}m",
        f"--memory={plan.memory_mb}m",
        f"--memory-swap={plan.memory_mb}m",
        f"--cpu-period={_CPU_PERIOD_US}",
        f"--cpu-quota={_CPU_PERIOD_US * CPUS_COUNT}",
        f"--pids-limit={MAX_PROCESSES}",
        # Explicit, and never above this machine's own: an engine's defaults may be more than its caller may set.
        f"--ulimit=nofile={_within(resource.RLIMIT_NOFILE, _OPEN_FILES)}",
        f"--ulimit=nproc={_within(resource.RLIMIT_NPROC, processes)}",
        f"--ulimit=fsize={_within(resource.RLIMIT_FSIZE, (file_bytes, file_bytes))}",
        "--ulimit=core=0:0",
    ]


def _within(which: int, wanted: tuple[int, int]) -> str:
    hard = resource.getrlimit(which)[1]
    most = wanted[1] if hard == resource.RLIM_INFINITY else min(wanted[1], hard)
    return f"{min(wanted[0], most)}:{most}"
