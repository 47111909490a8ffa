"""The box around a worker: bubblewrap where it works, plain limits elsewhere; and how total memory is held.

Inside: the workspace read-only at /workspace, the call's output folder at /output, a small /tmp, the system's
programs and this Python read-only, and nothing else: no network, no other processes, no home folder, no /etc beyond
what programs need to load.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import metaforge
from metaforge.core.errors import ToolUnavailable
from metaforge.engine import cgroups, seccomp
from metaforge.settings import Settings

MAX_PROCESSES = 256
"""Processes and threads of one box together."""
WORKSPACE_INSIDE = "/workspace"
OUTPUT_INSIDE = "/output"
INSTALL = "apt-get install -y bubblewrap"

_TMP_BYTES = 256 << 20
_SHARED_BYTES = 64 << 20
_PROBE_SECONDS = 10.0
_SYSTEM_ROOTS = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_ETC = ("alternatives", "fonts", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime")
_CAPABILITIES = ("CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP", "CAP_DAC_READ_SEARCH")


@dataclass(frozen=True)
class Rung:
    """What holds a worker here."""

    kind: str
    """`bubblewrap` or `rlimits`."""
    memory: str
    """What bounds the memory of a whole box: `cgroup v1`, `cgroup v2`, `systemd scope` or `watchdog`."""
    as_root: bool
    """Boxes get a user id of their own instead of a user namespace."""
    filtered: bool
    """A system-call filter is in place."""
    reason: str = ""
    """Why it is not bubblewrap."""

    @property
    def boxed(self) -> bool:
        return self.kind == "bubblewrap"


def describe(settings: Settings) -> dict[str, Any]:
    """Return which isolation adapter processes get here, for `doctor` and health. Runs bubblewrap once."""
    rung = find(settings)
    told: dict[str, Any] = {
        "kind": rung.kind,
        "memory_limit": rung.memory,
        "network": not rung.boxed,
        "system_call_filter": rung.filtered,
    }
    if rung.boxed:
        told["detail"] = "adapters see the workspace read-only and their own output folder, and no network"
    else:
        told["detail"] = f"adapters run with resource limits only and can read this user's files: {rung.reason}"
        told["install"] = INSTALL if not shutil.which("bwrap", path=settings.environment.get("PATH")) else ""
    return told


def find(settings: Settings) -> Rung:
    """Return the strongest isolation that works here.

    Raises:
        ToolUnavailable: bubblewrap is demanded and does not work.
    """
    memory = _memory_rung(settings.environment.get("XDG_RUNTIME_DIR", ""))
    if settings.sandbox == "rlimits":
        return Rung("rlimits", memory, False, False, "METAFORGE_SANDBOX=rlimits asks for it")
    bwrap = shutil.which("bwrap", path=settings.environment.get("PATH")) or ""
    reason = _why_not(bwrap)
    if not reason:
        return Rung("bubblewrap", memory, os.geteuid() == 0, seccomp.program() is not None)
    if settings.sandbox == "bubblewrap":
        raise ToolUnavailable(
            f"METAFORGE_SANDBOX=bubblewrap, and {reason}", reason=reason, install="" if bwrap else INSTALL
        )
    return Rung("rlimits", memory, False, False, reason)


@cache
def _memory_rung(runtime_folder: str) -> str:
    if (hierarchy := cgroups.hierarchy()) is not None:
        return f"cgroup v{hierarchy.version}"
    manager = Path(runtime_folder or "/nonexistent") / "systemd" / "private"
    if os.geteuid() != 0 and manager.exists() and shutil.which("systemd-run"):
        return "systemd scope"
    return "watchdog"


@cache
def _why_not(bwrap: str) -> str:
    """Return why bubblewrap cannot be used, or nothing: tried with what a box really asks of it."""
    if sys.platform != "linux":
        return "bubblewrap needs Linux"
    if not bwrap:
        return "bubblewrap is not installed"
    if os.geteuid() == 0 and not shutil.which("setpriv"):
        return "setpriv (util-linux) is not installed"
    command = [bwrap, *_namespaces(os.geteuid() == 0), "--ro-bind", "/", "/", "--proc", "/proc", "/bin/true"]
    try:
        tried = subprocess.run(
            command, capture_output=True, text=True, timeout=_PROBE_SECONDS, stdin=subprocess.DEVNULL, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as fault:
        return f"bubblewrap does not run: {fault}"
    if tried.returncode == 0:
        return ""
    return f"bubblewrap does not work here: {tried.stderr.strip() or 'no reason given'}"


def _namespaces(as_root: bool) -> list[str]:
    shared = ["--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"]
    shared += ["--die-with-parent", "--new-session"]
    if not as_root:
        return ["--unshare-user", *(["--disable-userns"] if _disables_userns() else []), *shared]
    keep = [part for name in _CAPABILITIES for part in ("--cap-add", name)]
    return [*shared, "--cap-drop", "ALL", *keep]


@cache
def _disables_userns() -> bool:
    bwrap = shutil.which("bwrap")
    if bwrap is None:
        return False
    tried = subprocess.run(
        [bwrap, "--unshare-user", "--disable-userns", "--ro-bind", "/", "/", "/bin/true"],
        capture_output=True, stdin=subprocess.DEVNULL, timeout=_PROBE_SECONDS, check=False,
    )  # fmt: skip
    return tried.returncode == 0


@dataclass(frozen=True)
class View:
    """What one box shows of this machine."""

    workspace: Path
    output: Path
    readable: tuple[Path, ...]
    """Folders shown read-only at their own place, beside the system's and this Python's."""
    environment: dict[str, str]
    hidden: tuple[Path, ...] = ()
    """Folders that stay out of sight even below one that is shown."""


def command(bwrap: str, rung: Rung, view: View, uid: int, filter_descriptor: int | None, inner: list[str]) -> list[str]:
    """Return the command that runs `inner` in a box.

    Args:
        uid: the user and group id of the box where bubblewrap is run by root.
        filter_descriptor: an open descriptor holding the system-call filter.
    """
    words = [bwrap, *_namespaces(rung.as_root), "--ro-bind", "/usr", "/usr"]
    made: set[Path] = set()
    for name in _SYSTEM_ROOTS:
        root = Path("/") / name
        if root.is_symlink():
            words += ["--symlink", os.readlink(root), str(root)]
        elif root.is_dir():
            words += ["--ro-bind", str(root), str(root)]
    for name in _ETC:
        if (path := Path("/etc") / name).exists():
            words += [*_parents(path, made), "--ro-bind", str(path), str(path)]
    words += ["--proc", "/proc", "--dev", "/dev"]
    words += [*_in_memory("/tmp", _TMP_BYTES), *_in_memory("/dev/shm", _SHARED_BYTES)]
    folders = _python_folders(view.readable)
    shown = _topmost(folders)
    for path in shown:
        words += [*_parents(path, made), "--ro-bind", str(path), str(path)]
    words += _hide(view.hidden, shown, folders)
    words += ["--perms", "0755", "--dir", WORKSPACE_INSIDE, "--ro-bind", str(view.workspace), WORKSPACE_INSIDE]
    words += ["--perms", "0755", "--dir", OUTPUT_INSIDE, "--bind", str(view.output), OUTPUT_INSIDE]
    # Files in a folder without a size would take memory that is counted for no process.
    words += ["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/tmp", "--clearenv"]
    for name, value in view.environment.items():
        words += ["--setenv", name, value]
    if filter_descriptor is not None:
        words += ["--seccomp", str(filter_descriptor)]
    if rung.as_root:
        words += _as_user(uid, may_read=rung.filtered)
    return [*words, *inner]


def _in_memory(path: str, size_bytes: int) -> list[str]:
    return ["--perms", "1777", "--size", str(size_bytes), "--tmpfs", path]


def _as_user(uid: int, *, may_read: bool) -> list[str]:
    """Drop to a user id of the box's own, whose processes alone count against its limits.

    The one capability kept lets that user read whatever the box shows, so that a person's 0600 files in the
    workspace can be worked on. It would also open files by handle, outside the box: the system-call filter refuses
    that call, and without the filter the capability is not kept.
    """
    kept = "-all,+dac_read_search" if may_read else "-all"
    return [
        "setpriv", "--reuid", str(uid), "--regid", str(uid), "--clear-groups",
        "--inh-caps", kept, "--ambient-caps", kept, "--bounding-set", kept, "--no-new-privs",
    ]  # fmt: skip


def _parents(path: Path, made: set[Path]) -> Iterator[str]:
    """Make the folders above `path` enterable: bubblewrap makes missing ones 0700, and the box's user is not root."""
    for parent in reversed(path.parents):
        if parent != Path("/") and parent not in made and not str(parent).startswith("/usr"):
            made.add(parent)
            yield from ("--perms", "0755", "--dir", str(parent))


def _hide(hidden: tuple[Path, ...], shown: list[Path], folders: list[Path]) -> Iterator[str]:
    """Put an empty folder over each that must not be seen; what is needed below it is shown again."""
    for path in (each.resolve() for each in hidden if each.is_dir()):
        for above in (*shown, Path("/usr")):
            if not path.is_relative_to(above.resolve()) or path == above.resolve():
                continue
            # Where the box shows it: a folder may be shown under a name that is a link here.
            place = above / path.relative_to(above.resolve())
            yield from ("--perms", "0755", "--tmpfs", str(place))
            made = set(place.parents) | {place}
            for needed in _topmost([each for each in folders if each.is_relative_to(place)]):
                yield from (*_parents(needed, made), "--ro-bind", str(needed), str(needed))
            yield from ("--remount-ro", str(place))


def _python_folders(more: tuple[Path, ...]) -> list[Path]:
    """Return the folders this interpreter and this package live in, those above first."""
    package = Path(metaforge.__file__).resolve().parent
    wanted = [Path(sys.prefix), Path(sys.base_prefix), Path(sys.executable).resolve().parents[1], package, *more]
    return sorted({path.absolute() for path in wanted}, key=lambda path: len(path.parts))


def _topmost(folders: list[Path]) -> list[Path]:
    """Return the folders that lie neither below another nor below /usr."""
    kept: list[Path] = []
    for path in folders:
        if not path.is_relative_to("/usr") and not any(path.is_relative_to(other) for other in kept):
            kept.append(path)
    return kept
