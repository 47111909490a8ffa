"""Adapters from their images, everything closed: each lists its tools and answers one call whose truth is known.

The smallest is built and tried here; METAFORGE_TEST_IMAGES=all, as `make images` says it, or names by commas, try more.
"""

import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import contained
import trials

sys.path.pop(0)

pytestmark = [pytest.mark.program("podman"), pytest.mark.slow]
CHOSEN = os.environ.get("METAFORGE_TEST_IMAGES", "") or "spice"
IMAGES = [*trials.TRIALS, "server"] if CHOSEN == "all" else CHOSEN.split(",")
ADAPTERS = [name for name in IMAGES if name != "server"]
of_spice = pytest.mark.skipif("spice" not in IMAGES, reason="METAFORGE_TEST_IMAGES leaves spice out")
of_server = pytest.mark.skipif("server" not in IMAGES, reason="METAFORGE_TEST_IMAGES leaves the server out")
KEY = "shown-by-whoever-may-call"


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_an_adapter_answers_truly_from_its_image(start: Callable[[str], contained.Contained], adapter: str) -> None:
    container, trial = start(adapter), trials.TRIALS[adapter]
    trial.lay_out(container.workspace)
    params = {"tool_id": trial.tool_id, "arguments": trial.arguments, "timeout_seconds": 120}
    listed, answered = container.ask(("tool/list", {}), ("tool/call", params))
    assert {tool["adapter_id"] for tool in listed["result"]["tools"]} == {adapter}
    assert "result" in answered, answered["error"]
    result = answered["result"]
    assert trial.is_true(result["data"]), result["summary"]
    assert any(trial.program.lower() in name.lower() for name in result["programs"]), result["programs"]
    for name in result.get("output_files", []):
        assert (container.output / name).stat().st_size > 0


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_an_image_says_what_it_is_and_keeps_no_secret(
    start: Callable[[str], contained.Contained], adapter: str
) -> None:
    container = start(adapter)
    (told,) = json.loads(container.engine.run("image", "inspect", container.image).stdout)
    labels, user = told["Config"]["Labels"], told["Config"]["User"]
    assert labels["metaforge.adapter"] == adapter
    assert labels["org.opencontainers.image.version"] == contained.build_images.version_in(contained.ROOT)
    assert re.fullmatch(r"[0-9a-f]{40}(-changed)?|unknown", labels["org.opencontainers.image.revision"])
    assert user == "65534:65534"
    seen = container.run("-c", "id -u; ls -d /etc/pip.conf /build", entry=("--entrypoint=/bin/sh",)).stdout
    assert seen.split() == ["65534"], "neither the index nor the wheels of the build stay in the image"


@pytest.fixture
def listening(start: Callable[[str], contained.Contained]) -> Iterator[tuple[str, Path]]:
    """The smallest adapter over HTTP, behind a key: the address where it answers, and the workspace that it reads."""
    container, name = start("spice"), f"metaforge-test-{os.getpid()}"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (container.workspace / "divider.cir").write_text(trials.TRIALS["spice"].arguments["netlist"])
    # On this machine's loopback: which networks an engine can make differs from machine to machine.
    words = ["--detach", f"--name={name}", "--network=host", f"--env=METAFORGE_WORKER_KEY={KEY}", "--rm"]
    words += [option for option in contained.CLOSED if not option.startswith("--network")]
    words += [f"--volume={container.workspace}:/workspace:ro", container.image, "--http", f"127.0.0.1:{port}"]
    started = container.engine.run("run", *words)
    assert started.returncode == 0, started.stderr
    try:
        wait_for(f"http://127.0.0.1:{port}/health", lambda: container.engine.run("logs", name).stderr)
        yield f"http://127.0.0.1:{port}", container.workspace
    finally:
        container.engine.run("rm", "--force", name)


def wait_for(url: str, told: Callable[[], str]) -> None:
    ending = time.monotonic() + 60
    while time.monotonic() < ending:
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:
                assert json.load(answer)["status"] == "healthy"
                return
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.05)
    pytest.fail(f"{url} does not answer: {told()}")


@of_spice
def test_a_server_calls_an_image_that_listens_and_nobody_else_does(listening: tuple[str, Path], tmp_path: Path) -> None:
    url, workspace = listening
    with pytest.raises(urllib.error.HTTPError, match="401"):
        urllib.request.urlopen(urllib.request.Request(f"{url}/mcp", data=b"{}"), timeout=10)
    environment = os.environ | {
        "METAFORGE_HOME": str(tmp_path / "home"), "METAFORGE_WORKSPACE": str(workspace),
        "METAFORGE_ADAPTERS": "spice", "METAFORGE_ADAPTER_SPICE_URL": url, "METAFORGE_ADAPTER_SPICE_KEY": KEY,
    }  # fmt: skip
    ran = subprocess.run(
        [sys.executable, "-m", "metaforge", "call", "spice.run_simulation", "netlist_path=divider.cir",
         "analysis_type=op", "--json"],
        env=environment, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr
    answer: Any = json.loads(ran.stdout)
    assert trials.TRIALS["spice"].is_true(answer), answer
    # What it wrote is here, though it sees the workspace read-only.
    assert [path.name for path in (workspace / "spice").glob("*.raw")] == ["divider-op.raw"]


@of_server
def test_the_servers_image_writes_and_reads_its_record(start: Callable[[str], contained.Contained]) -> None:
    container = start("server")
    home = ("--env=METAFORGE_HOME=/tmp/home", "--env=METAFORGE_ADAPTERS=project")
    ran = container.run("call", "project.create", "name=Arm", "--json", entry=home)
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["name"] == "Arm"


def test_every_image_of_an_adapter_has_a_trial() -> None:
    scripts: ModuleType = contained.build_images
    assert {*scripts.known_images()} - {scripts.SERVER} == {*trials.TRIALS}
