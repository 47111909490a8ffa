"""The team's compose file: it holds what the pages promise, and METAFORGE_TEST_IMAGES=all brings it up and uses it."""

import json
import os
import shutil
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from metaforge.settings import Settings

sys.path.insert(0, str(Path(__file__).parent))
import contained
import trials

sys.path.pop(0)

FILE = contained.ROOT / "compose.yaml"
TEAM = yaml.safe_load(FILE.read_text())
SERVICES: dict[str, dict[str, Any]] = TEAM["services"]
ADAPTERS = sorted({*contained.build_images.known_images()} - {contained.build_images.SERVER})
COMPOSE = shutil.which("podman-compose") or str(Path(sys.executable).with_name("podman-compose"))
SERVERS = {"gateway": 8000, "mcp-http": 8765}
KEYS = {"METAFORGE_MCP_API_KEY": "what-people-and-agents-show", "METAFORGE_WORKER_KEY": "what-servers-show"}


def test_every_adapter_and_both_servers_are_services_of_this_version() -> None:
    version = contained.build_images.version_in(contained.ROOT)
    images = {name: service["image"] for name, service in SERVICES.items() if name != "postgres"}
    wanted = dict.fromkeys(SERVERS, "server") | {name: name for name in ADAPTERS}
    prefix = "${METAFORGE_REGISTRY:-localhost}/metaforge-"
    assert images == {name: f"{prefix}{image}:${{METAFORGE_VERSION:-{version}}}" for name, image in wanted.items()}


@pytest.mark.parametrize("name", ADAPTERS)
def test_an_adapter_is_as_closed_as_a_container_of_the_server_and_has_a_key(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert (service["mem_limit"], service["memswap_limit"], service["cpus"], service["pids_limit"]) == (
        "2g",
        "2g",
        2,
        100,
    )
    assert [each.rpartition(":")[2] for each in service["volumes"]] == ["ro"]
    assert TEAM["networks"][service["networks"][0]] == {"internal": True}
    assert len(service["networks"]) == 1
    assert service["dns"] == ["127.0.0.1"], "a name that is looked up outside is a way out"
    assert "ports" not in service
    assert service["environment"]["METAFORGE_WORKER_KEY"].startswith("${METAFORGE_WORKER_KEY:?")


@pytest.mark.parametrize("name", SERVERS)
def test_a_server_listens_to_this_machine_alone_unless_told_and_wants_a_key(name: str) -> None:
    service = SERVICES[name]
    assert service["ports"] == [f"${{METAFORGE_LISTEN:-127.0.0.1}}:{SERVERS[name]}:{SERVERS[name]}"]
    assert service["environment"]["METAFORGE_MCP_API_KEY"].startswith("${METAFORGE_MCP_API_KEY:?")


@pytest.mark.parametrize("name", SERVERS)
def test_a_server_is_told_by_settings_that_there_are_where_each_adapter_is(name: str) -> None:
    told = {variable: str(value) for variable, value in SERVICES[name]["environment"].items()}
    settings = Settings.load({k: v for k, v in told.items() if "${" not in v})
    assert settings.problems == ()
    assert sorted(settings.adapter_url) == ADAPTERS
    assert settings.adapter_url["spice"] == f"http://spice:{_port_of('spice')}"
    assert {v for k, v in told.items() if k.endswith("_KEY") and "ADAPTER" in k} == {"${METAFORGE_WORKER_KEY}"}


def _port_of(adapter: str) -> int:
    from metaforge.adapters import CATALOG
    from metaforge.tools.run import load

    return load(CATALOG[adapter]).http_port


# -- brought up --------------------------------------------------------------------------------------------------------


def compose(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    conf = [
        "[containers]", 'default_ulimits = ["nofile=1024:4096", "nproc=4096:4096"]', "[engine]",
        'events_logger = "file"',
    ]  # fmt: skip
    if shutil.which("runc") and Path("/sys/fs/cgroup/unified").is_dir():
        conf += ['runtime = "runc"', 'cgroup_manager = "cgroupfs"']
    if Path("/usr/lib/podman/netavark").exists():
        conf += ["[network]", 'network_backend = "netavark"']
    (folder / "containers.conf").write_text("\n".join(conf) + "\n")
    environment = os.environ | KEYS | {"CONTAINERS_CONF": str(folder / "containers.conf")}
    return subprocess.run(
        [COMPOSE, "--project-name", "metaforge-test", "--file", str(FILE), *words],
        env=environment, cwd=folder, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


def ask(port: int, path: str, body: dict[str, Any] | None = None) -> Any:
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}{path}", None if body is None else json.dumps(body).encode(),
        {"Authorization": f"Bearer {KEYS['METAFORGE_MCP_API_KEY']}", "Content-Type": "application/json"},
    )  # fmt: skip
    with urllib.request.urlopen(request, timeout=120) as answer:
        return json.load(answer)


def call(port: int, tool_id: str, arguments: dict[str, Any]) -> dict[str, Any]:
    params = {"tool_id": tool_id, "arguments": arguments}
    answer: dict[str, Any] = ask(port, "/rpc", {"jsonrpc": "2.0", "id": 1, "method": "tool/call", "params": params})
    assert "result" in answer, answer["error"]
    return answer["result"]


def until(fulfilled: Callable[[], Any]) -> Any:
    ending = time.monotonic() + 60
    while time.monotonic() < ending:
        try:
            if found := fulfilled():
                return found
        except (urllib.error.URLError, ConnectionError):
            pass
        time.sleep(0.1)
    pytest.fail("nothing came within a minute")


@pytest.fixture
def team(built: Callable[[str], None], tmp_path: Path) -> Iterator[Path]:
    """Both servers and the smallest adapter, up."""
    for name in ("spice", "server"):
        built(name)
    up = compose(tmp_path, "up", "--detach", "gateway", "mcp-http", "spice")
    try:
        assert up.returncode == 0, up.stderr
        for port in SERVERS.values():
            until(lambda port=port: ask(port, "/health"))
        yield tmp_path
    finally:
        compose(tmp_path, "down", "--volumes")


@pytest.mark.program("podman")
@pytest.mark.skipif(
    os.environ.get("METAFORGE_TEST_IMAGES") != "all", reason="METAFORGE_TEST_IMAGES=all brings a team up"
)
def test_a_team_calls_an_adapter_from_either_server_and_shares_one_record(team: Path) -> None:
    trial = trials.TRIALS["spice"]
    for port in SERVERS.values():
        assert trial.is_true(call(port, trial.tool_id, trial.arguments)["data"])
    # Asked of one server, allowed at the other.
    answered: list[dict[str, Any]] = []
    calling = threading.Thread(
        target=lambda: answered.append(call(SERVERS["mcp-http"], "project.create", {"name": "Arm"}))
    )
    calling.start()
    (held,) = until(lambda: ask(SERVERS["gateway"], "/v1/approvals")["items"])
    ask(SERVERS["gateway"], f"/v1/approvals/{held['id']}/decision", {"decision": "approve"})
    calling.join(60)
    assert answered[0]["data"]["name"] == "Arm"
    assert compose(team, "restart", "gateway", "spice").returncode == 0
    assert [each["name"] for each in until(lambda: ask(SERVERS["gateway"], "/v1/projects")["items"])] == ["Arm"]
    assert until(lambda: trial.is_true(call(SERVERS["gateway"], trial.tool_id, trial.arguments)["data"]))
