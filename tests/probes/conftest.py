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

from probe_table import COLUMNS, PAGE, PROBES, Column, expected, page  # noqa: E402

ORDINARY_USER = 65_432
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
    if column.as_root:
        return "" if os.geteuid() == 0 else "only root can run a server as root"
    if os.geteuid() == 0 and not (shutil.which("setpriv") and shutil.which("unshare")):
        return "setpriv and unshare (util-linux) are needed to become an ordinary user"
    return ""


def _measure(column: Column, folder: Path) -> dict[str, Any]:
    folder.mkdir()
    folder.parent.chmod(0o755)
    out = folder / "out.json"
    command = [sys.executable, str(HERE / "measure.py"), column.runner, str(folder), str(out)]
    environment = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "HOME": str(folder)}
    if os.geteuid() == 0 and not column.as_root:
        command = _as_ordinary_user(command, folder, environment)
    ran = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, env=environment, check=False)
    if not out.exists():
        if "bubblewrap" in ran.stderr and "does not work" in ran.stderr:
            pytest.skip(ran.stderr.strip().splitlines()[-1])
        return {"failed": f"{column.name} was not measured: {ran.stderr[-3000:]}"}
    told: dict[str, Any] = json.loads(out.read_text())
    assert told["sandbox"]["kind"] == column.runner
    assert (told["user"] == 0) == column.as_root
    return told


def _as_ordinary_user(command: list[str], folder: Path, environment: dict[str, str]) -> list[str]:
    """Return the command that runs another without privileges, where this Python can be read as well."""
    os.chown(folder, ORDINARY_USER, ORDINARY_USER)
    user = str(ORDINARY_USER)
    drop = ["setpriv", "--reuid", user, "--regid", user, "--clear-groups", "--inh-caps=-all", "--"]
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
