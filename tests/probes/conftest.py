"""What came of every probe, measured once a column, and told at the end as a table."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

sys.path.insert(0, str(HERE.parent))

import container_image  # noqa: E402
from probe_table import COLUMNS, PAGE, PROBES, Column, expected, page  # noqa: E402

ORDINARY_USER = 65_432
FURTHER_USERS = 2_000_000_000
"""Where the range begins whose user ids this one's containers have."""
SECONDS = 600
MEASURED: dict[str, dict[str, Any]] = {}
WHY_NOT: dict[str, str] = {}

SHOW_PYTHON = """
set -e
mount --make-rprivate /
i=0
for folder in "$@"; do
    [ "$folder" = -- ] && break
    shift; i=$((i+1))
    mkdir -p "$STAGE/$i"
    mount --bind "$folder" "$STAGE/$i"
done
shift
mount -t tmpfs -o mode=755 none "$HIDDEN"
i=0
for folder in $SHOWN; do
    i=$((i+1))
    mkdir -p "$folder"
    mount --bind "$STAGE/$i" "$folder"
done
exec "$@"
"""
"""Shows folders that lie below one that nobody else may enter, in a mount namespace of its own."""

WITH_ACCOUNTS = """
set -e
mount --make-rprivate /
for name in passwd group subuid subgid; do
    [ -e "/etc/$name" ] || : >"/etc/$name"
    mount --bind "$HOME/$name" "/etc/$name"
done
exec "$@"
"""
"""Gives an ordinary user an account, in a mount namespace of its own."""

WITH_IMAGE = """
podman load --quiet --input "$HOME/image.tar" >&2 || exit 1
"$@"
status=$?
# The server's reaper asks podman for a while yet, and takes its lock away in the end.
for _ in $(seq 100); do
    [ -z "$(find "$PLACE/home/containers" -name "*.lock")" ] && break
    sleep 0.1
done
for pause in $(find "$XDG_RUNTIME_DIR" -name pause.pid); do kill -KILL "$(cat "$pause")"; done
exit $status
"""
"""Loads the image before, and ends afterwards what podman keeps running for a user."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--write-page", action="store_true", help="write docs/probes.md from the table of probes")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--write-page", False):
        PAGE.write_text(page())


@pytest.fixture(scope="session")
def measured() -> Callable[[Column], dict[str, Any]]:
    """Return what every probe came to in a column; the test is skipped where this machine has no such column."""

    def measuring(column: Column) -> dict[str, Any]:
        if column.name not in MEASURED and column.name not in WHY_NOT:
            if reason := _why_not(column):
                WHY_NOT[column.name] = reason
            else:
                # Not below pytest's own folder, which every run closes to other users anew.
                with tempfile.TemporaryDirectory(prefix="metaforge-probes-", ignore_cleanup_errors=True) as folder:
                    MEASURED[column.name] = _measure(column, Path(folder) / "place")
        if column.name in WHY_NOT:
            pytest.skip(WHY_NOT[column.name])
        if "failed" in MEASURED[column.name]:
            pytest.fail(MEASURED[column.name]["failed"], pytrace=False)
        return MEASURED[column.name]

    return measuring


def _why_not(column: Column) -> str:
    if sys.platform != "linux":
        return "probes are for Linux"
    if column.runner == "bubblewrap" and shutil.which("bwrap") is None:
        return "bubblewrap is not installed"
    if column.runner == "container" and (reason := _why_no_container()):
        return reason
    if column.as_root:
        return "" if os.geteuid() == 0 else "only root can run a server as root"
    if os.geteuid() == 0 and not (shutil.which("setpriv") and shutil.which("unshare")):
        return "setpriv and unshare (util-linux) are needed to become an ordinary user"
    return ""


def _why_no_container() -> str:
    if shutil.which("podman") is None:
        return "podman is not installed"
    if os.geteuid() == 0 and shutil.which("newuidmap") is None:
        return "newuidmap (uidmap) is needed to run containers without root"
    return ""


def _measure(column: Column, folder: Path) -> dict[str, Any]:
    folder.mkdir()
    folder.parent.chmod(0o755)
    out = folder / "out.json"
    command = [sys.executable, str(HERE / "measure.py"), column.runner, str(folder), str(out)]
    environment = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "HOME": str(folder)}
    if column.runner == "container":
        try:
            container_image.ensure("podman")
        except container_image.CannotBuild as fault:
            pytest.skip(str(fault))
        if not column.as_root:
            environment |= {"HOME": os.environ["HOME"], "XDG_RUNTIME_DIR": os.environ.get("XDG_RUNTIME_DIR", "")}
    if os.geteuid() == 0 and not column.as_root:
        home = _make_podman_home(folder) if column.runner == "container" else None
        command = _as_ordinary_user(command, folder, environment, home)
    ran = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, env=environment, check=False)
    if not out.exists():
        if "bubblewrap" in ran.stderr and "does not work" in ran.stderr:
            pytest.skip(ran.stderr.strip().splitlines()[-1])
        return {"failed": f"{column.name} was not measured: {ran.stderr[-3000:]}"}
    told: dict[str, Any] = json.loads(out.read_text())
    assert told["sandbox"]["kind"] == column.runner
    assert (told["user"] == 0) == column.as_root
    return told


def _make_podman_home(folder: Path) -> Path:
    """Give the ordinary user an account, a range of further user ids, and a store with the tests' image in it."""
    home = folder.parent / f"{folder.name}-podman"
    (home / ".config" / "containers").mkdir(parents=True)
    # Else podman may choose a store that copies the whole image for each container.
    (home / ".config" / "containers" / "storage.conf").write_text('[storage]\ndriver = "overlay"\n')
    (home / "run").mkdir(mode=0o700)
    name, user = "metaforge-probe", ORDINARY_USER
    (home / "passwd").write_text(f"{name}:x:{user}:{user}::{home}:/bin/sh\n{Path('/etc/passwd').read_text()}")
    (home / "group").write_text(f"{name}:x:{user}:\n{Path('/etc/group').read_text()}")
    for each in ("subuid", "subgid"):
        (home / each).write_text(f"{user}:{FURTHER_USERS}:65536\n")
    archive = home / "image.tar"
    subprocess.run(["podman", "save", "--quiet", "--output", str(archive), container_image.name()], check=True)
    archive.chmod(0o644)
    for path in (home, *home.rglob("*")):
        os.chown(path, user, user)
    return home


def _as_ordinary_user(
    command: list[str], folder: Path, environment: dict[str, str], podman_home: Path | None = None
) -> list[str]:
    """Return the command that runs another without privileges, where this Python can be read as well."""
    os.chown(folder, ORDINARY_USER, ORDINARY_USER)
    user = str(ORDINARY_USER)
    drop = ["setpriv", "--reuid", user, "--regid", user, "--clear-groups", "--inh-caps=-all", "--"]
    if podman_home is not None:
        environment |= {"HOME": str(podman_home), "XDG_RUNTIME_DIR": str(podman_home / "run"), "PLACE": str(folder)}
        command = ["sh", "-c", WITH_IMAGE, "sh", *command]
        drop = ["unshare", "--mount", "sh", "-c", WITH_ACCOUNTS, "sh", *drop]
    hidden = _hidden(Path(sys.base_prefix))
    if hidden is None:
        return [*drop, *command]
    shown = [str(Path(sys.base_prefix).resolve())]
    stage = folder.parent / f"{folder.name}-stage"
    stage.mkdir()
    environment |= {"STAGE": str(stage), "HIDDEN": str(hidden), "SHOWN": " ".join(shown)}
    return ["unshare", "--mount", "sh", "-c", SHOW_PYTHON, "sh", *shown, "--", *drop, *command]


def _hidden(path: Path) -> Path | None:
    """Return the outermost folder above a path that others may not enter."""
    for folder in reversed(path.resolve().parents):
        if not os.stat(folder).st_mode & 0o001:
            return folder
    return None


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if not MEASURED:
        return
    terminalreporter.section("probes")
    columns = [column for column in COLUMNS if "results" in MEASURED.get(column.name, {})]
    terminalreporter.line(f"{'probe':<18} " + " ".join(f"{column.name:<17}" for column in columns))
    for probe in PROBES:
        cells = []
        for column in columns:
            held = MEASURED[column.name]["results"][probe.name]["held"]
            claimed = expected(probe, column) == "held"
            cells.append(f"{'held' if held else 'NOT HELD' if claimed else 'not held':<17}")
        terminalreporter.line(f"{probe.name:<18} " + " ".join(cells))
    for name, reason in WHY_NOT.items():
        terminalreporter.line(f"{name}: not measured: {reason}")
    for column in columns:
        told = MEASURED[column.name]
        terminalreporter.line(f"{column.name}: memory held by {told['sandbox']['memory_limit']}, user {told['user']}")
