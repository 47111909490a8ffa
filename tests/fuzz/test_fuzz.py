"""No bytes from outside crash a parser, or keep one busy."""

import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from fuzz_targets import TARGETS

SECONDS = int(os.environ.get("METAFORGE_FUZZ_SECONDS", "5"))
KEPT = os.environ.get("METAFORGE_FUZZ_FOLDER", "")
"""Where corpus and crashes stay from run to run; a run of minutes goes on where the last one ended."""


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("atheris") is None, reason="atheris is not installed")
@pytest.mark.parametrize("name", TARGETS)
def test_no_bytes_crash_or_hang_a_parser(
    name: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    folder = Path(KEPT) / name if KEPT else tmp_path
    folder.mkdir(parents=True, exist_ok=True)
    ran = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("fuzz.py")), name, str(SECONDS), str(folder)],
        capture_output=True, text=True, errors="replace", timeout=SECONDS * 2 + 120, check=False,
    )  # fmt: skip
    found = sorted(path for path in folder.glob("*-*") if path.is_file())
    told = "\n".join(line for line in ran.stderr.splitlines() if not line.startswith(("INFO:", "#", "\tNEW_FUNC")))
    crash = f"{found[-1].name}: {found[-1].read_bytes()[:400]!r}\n" if found else ""
    assert ran.returncode == 0, f"{crash}{ran.stdout[-2500:]}\n{told[-2500:]}"
    runs = re.search(r"stat::number_of_executed_units:\s*(\d+)", ran.stderr)
    assert runs is not None, ran.stderr[-2000:]
    record_property("runs", int(runs[1]))
    assert int(runs[1]) > 50, "it hardly ran"
