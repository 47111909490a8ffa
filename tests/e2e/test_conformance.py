"""The official conformance suite against the real server over HTTP."""

import subprocess
from collections.abc import Callable
from pathlib import Path

from house import House

BASELINE = Path(__file__).with_name("conformance-baseline.yml")


def test_the_official_suite_passes_but_for_features_that_are_not_offered(
    house: House, package: Callable[[str], Path], node: str
) -> None:
    program = package("@modelcontextprotocol/conformance") / "dist" / "index.js"
    with house.listening() as url:
        command = [node, str(program), "server", "--url", url, "--expected-failures", str(BASELINE)]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=house.home)
    assert ran.returncode == 0, ran.stdout[-4000:] + ran.stderr[-2000:]
    assert "Baseline check passed" in ran.stdout


def test_every_scenario_in_the_baseline_is_named_there_once() -> None:
    listed = [line.strip(" -") for line in BASELINE.read_text().splitlines() if line.startswith("  - ")]
    assert listed
    assert len(listed) == len(set(listed))
