"""The program that builds and keeps images here, podman or docker, and the base that images are built on.

Standard library only.
"""

import json
import os
import resource
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

DEBIAN = "bookworm"
"""The Debian release of a base that is made here. Its Python is 3.11."""
DEBIAN_BASE = f"localhost/metaforge-base:{DEBIAN}"
_PACKAGES = "python3,python3-venv,ca-certificates"
_LEFT_OUT = ("/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*")
_ANSWER_SECONDS = 20
_MOST_FILES = _MOST_PROCESSES = 4096


class Stop(Exception):
    """An image cannot be built; the message says what to do."""


@dataclass(frozen=True)
class Engine:
    """Podman or docker, and the options this machine needs before and after the command's name."""

    name: str
    before: tuple[str, ...] = ()
    building: tuple[str, ...] = ()

    def command(self, *words: str) -> list[str]:
        return [self.name, *self.before, *words]

    def run(self, *words: str, seconds: float | None = None) -> subprocess.CompletedProcess[str]:
        """Run one of its commands, and return what it said."""
        try:
            return subprocess.run(
                self.command(*words), stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
                timeout=seconds, check=False,
            )  # fmt: skip
        except (FileNotFoundError, subprocess.TimeoutExpired) as fault:
            return subprocess.CompletedProcess([], 1, "", str(fault))

    def has(self, image: str) -> bool:
        return self.run("image", "inspect", image).returncode == 0

    def id_of(self, image: str) -> str:
        """Return an image's id, or nothing where there is none."""
        told = self.run("image", "inspect", "--format", "{{.Id}}", image)
        return told.stdout.strip() if told.returncode == 0 else ""

    def forget(self, image_id: str) -> None:
        """Remove an image that has lost its last name; one that still has one, or is in use, stays."""
        told = self.run("image", "inspect", "--format", "{{len .RepoTags}}", image_id)
        if told.stdout.strip() == "0":
            self.run("rmi", image_id)

    def size_bytes(self, image: str) -> int:
        return int(json.loads(self.run("image", "inspect", image).stdout)[0]["Size"])


def find_engine(wanted: str = "") -> Engine:
    """Return the engine that answers here.

    Args:
        wanted: podman or docker; by default the first of them that answers, as the server's launcher chooses.

    Raises:
        Stop: none does.
    """
    tried = []
    for name in ["podman", "docker"] if wanted in ("", "auto") else [wanted]:
        engine = Engine(name, *(_of_podman() if name == "podman" else ((), ())))
        # An image's listing needs the engine itself, where `version` may be content with the client.
        told = engine.run("images", "--quiet", seconds=_ANSWER_SECONDS)
        if told.returncode == 0:
            return engine
        tried.append(f"  {name}: {(told.stderr.strip().splitlines() or ['no answer'])[-1][:160]}")
    raise Stop(
        "No container engine answers:\n" + "\n".join(tried) + "\n"
        "Install podman (apt-get install -y --no-install-recommends podman runc), or start docker"
    )


def _of_podman() -> tuple[tuple[str, ...], tuple[str, ...]]:
    before = ["--events-backend", "file"]
    if shutil.which("runc") and not Path("/sys/fs/cgroup/cgroup.controllers").exists():
        # crun refuses where version 1 of control groups is mounted beside version 2.
        before += ["--runtime", "runc"]
    # Its defaults lie above what a process may raise its own limits to where it is not entirely root.
    files, processes = _at_most(resource.RLIMIT_NOFILE, _MOST_FILES), _at_most(resource.RLIMIT_NPROC, _MOST_PROCESSES)
    limits = ("--ulimit", f"nofile={files}:{files}", "--ulimit", f"nproc={processes}:{processes}")
    return tuple(before), limits


def _at_most(limit: int, number: int) -> int:
    hard = resource.getrlimit(limit)[1]
    return number if hard == resource.RLIM_INFINITY else min(hard, number)


def base_for(engine: Engine, wanted: str, default: str, *, anew: bool = False) -> tuple[str, str]:
    """Return the image to build on, and a word on it.

    Args:
        engine: where it is kept.
        wanted: an image; `debian` for one made here from Debian's packages; empty for the Dockerfile's own from its
            registry, or Debian's where no registry answers.
        default: the Dockerfile's own.
        anew: fetch or make it again, though it is here.

    Raises:
        Stop: there is none.
    """
    if wanted == "debian":
        return _made_here(engine, anew=anew)
    image = wanted or default
    if engine.has(image) and not anew:
        return image, "at hand"
    failed = _fetch(engine, image)
    if not failed:
        return image, "fetched"
    if not wanted and shutil.which("mmdebstrap"):
        return _made_here(engine, anew=anew)
    hint = (
        "install mmdebstrap (apt-get install -y mmdebstrap) to make a base from Debian's packages, or name one: --base"
    )
    raise Stop(f"The base image {image} cannot be fetched: {failed}\n{hint}")


def _fetch(engine: Engine, image: str) -> str:
    """Pull an image; return what went wrong. Whether its registry answers is asked first: a pull tries for long."""
    for words, seconds in ((("manifest", "inspect", image), _ANSWER_SECONDS), (("pull", "--quiet", image), None)):
        told = engine.run(*words, seconds=seconds)
        if told.returncode:
            return (told.stderr.strip().splitlines() or ["no answer"])[-1][-300:]
    return ""


def _made_here(engine: Engine, *, anew: bool) -> tuple[str, str]:
    if engine.has(DEBIAN_BASE) and not anew:
        return DEBIAN_BASE, "at hand"
    if not shutil.which("mmdebstrap"):
        raise Stop("mmdebstrap is missing:  apt-get install -y mmdebstrap")
    left_out = [f"--dpkgopt=path-exclude={path}" for path in _LEFT_OUT]
    # Not in /tmp: that may be memory, and a root folder is large. Whole before it becomes an image.
    with tempfile.NamedTemporaryFile(dir="/var/tmp", suffix=".tar") as root:
        command = [
            "mmdebstrap", "--quiet", "--variant=minbase", f"--include={_PACKAGES}", *left_out, DEBIAN, root.name,
            *_sources(),
        ]  # fmt: skip
        environment = {"TMPDIR": "/var/tmp", **os.environ}
        told = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=environment, check=False
        )
        if told.returncode:
            raise Stop(f"mmdebstrap failed: {told.stderr.strip()[-500:]}")
        told = engine.run("import", root.name, DEBIAN_BASE)
        if told.returncode:
            raise Stop(f"{engine.name} import failed: {told.stderr.strip()[-500:]}")
    return DEBIAN_BASE, f"made from Debian's packages ({DEBIAN})"


def _sources() -> list[str]:
    """Return where this machine's apt finds the release, as lines of sources.list; nothing where it is of another."""
    line = "deb $(REPO_URI) $(CODENAME) $(COMPONENT)"
    try:
        told = subprocess.run(
            ["apt-get", "indextargets", "--format", line, "Created-By: Packages"],
            capture_output=True,
            text=True,
            check=False,
        ).stdout.splitlines()
    except FileNotFoundError:
        return []
    suites = (DEBIAN, f"{DEBIAN}-updates", f"{DEBIAN}-security")
    found = [each for each in dict.fromkeys(told) if each.split()[2] in suites and each.split()[3] == "main"]
    return found if any(each.split()[2] == DEBIAN for each in found) else []
