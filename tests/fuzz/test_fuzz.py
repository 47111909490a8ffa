"""No bytes from outside crash a parser, or keep one busy."""

import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from fuzz_targets import TARGETS

SECONDS = int(os.environ.get("METAFORGE_FUZZ_SECONDS", "5"))
SEED = os.environ.get("METAFORGE_FUZZ_SEED", "0")
"""Another number than 0 repeats a run: the same bytes in the same order, as far as its seconds reach."""
KEPT = os.environ.get("METAFORGE_FUZZ_FOLDER", "")
"""Where corpus and crashes stay from run to run; a run of minutes goes on where the last one ended."""


Runs = dict[str, "Future[subprocess.CompletedProcess[str]]"]


@pytest.fixture(scope="module")
def runs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    """Fuzz every parser that was selected, as many at once as there are cores."""
    names = [each.callspec.params["name"] for each in request.session.items if each.path == request.path]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = {name: pool.submit(fuzz, name, folder_of(name, tmp_path_factory)) for name in names}
        yield found
        for run in found.values():
            run.cancel()


def folder_of(name: str, folders: pytest.TempPathFactory) -> Path:
    folder = Path(KEPT) / name if KEPT else folders.getbasetemp() / f"fuzz-{name}"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def fuzz(name: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, str(Path(__file__).with_name("fuzz.py")), name, str(SECONDS), str(folder), SEED],
        capture_output=True, text=True, errors="replace", timeout=SECONDS * 2 + 120, check=False,
        env={**os.environ, "PYTHONHASHSEED": "random" if SEED == "0" else SEED},
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("atheris") is None, reason="atheris is not installed")
@pytest.mark.parametrize("name", TARGETS)
def test_no_bytes_crash_or_hang_a_parser(
    name: str, runs: Runs, tmp_path_factory: pytest.TempPathFactory, record_property: Callable[[str, object], None]
) -> None:
    ran = runs[name].result()
    found = sorted(path for path in folder_of(name, tmp_path_factory).glob("*-*") if path.is_file())
    told = "\n".join(line for line in ran.stderr.splitlines() if not line.startswith(("INFO:", "#", "\tNEW_FUNC")))
    crash = f"{found[-1].name}: {found[-1].read_bytes()[:400]!r}\n" if found else ""
    assert ran.returncode == 0, f"{crash}{ran.stdout[-2500:]}\n{told[-2500:]}"
    count = re.search(r"stat::number_of_executed_units:\s*(\d+)", ran.stderr)
    assert count is not None, ran.stderr[-2000:]
    record_property("runs", int(count[1]))
    assert int(count[1]) > 50, "it hardly ran"
