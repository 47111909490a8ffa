"""`metaforge.toml`: where it is looked for, and what it does to adapters here and elsewhere."""

import asyncio
import os
import socket
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from metaforge import __version__
from metaforge.app import App
from metaforge.core.errors import ToolUnavailable
from metaforge.core.ids import new_call_id
from metaforge.engine.container import ContainerLauncher
from metaforge.engine.launch import ProcessLauncher
from metaforge.engine.remote import RemoteSource
from metaforge.engine.source import ProcessSource
from metaforge.settings import BadSetting, Settings
from metaforge.tools.config import AdapterConfig, BadConfig
from metaforge.tools.context import Caller, Outcome

GAUGE = '''
import os
from dataclasses import dataclass
from typing import ClassVar

from metaforge.tools.context import Answer, ToolContext
from metaforge.tools.effect import Effect
from metaforge.tools.server import McpToolServer
from metaforge.tools.tool import tool


@dataclass(frozen=True)
class Reading:
    value: str


class Gauge(McpToolServer):
    """Reads a variable of its own process."""

    def __init__(self) -> None:
        super().__init__("gauge", "2.1.0")

    @tool(effect=Effect.READ, capability="measuring", title="Read", max_memory_mb=300)
    def read(self, ctx: ToolContext, name: str) -> Answer[Reading]:
        """Read a variable.

        Args:
            name: Which one.
        """
        return Answer(Reading(os.environ.get(name, "unset")), summary="read")
'''


@pytest.fixture
def gauge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The target of an adapter that no package brings."""
    folder = tmp_path / "gauges"
    folder.mkdir()
    (folder / "gauge_of_this_test.py").write_text(GAUGE)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setenv("PYTHONPATH", str(folder))
    yield "gauge_of_this_test:Gauge"
    sys.modules.pop("gauge_of_this_test", None)


@pytest.fixture
async def elsewhere(gauge: str) -> AsyncIterator[str]:
    """The same adapter where it listens over HTTP."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "metaforge.tools.run", gauge, "--http", f"127.0.0.1:{port}"]
    serving = await asyncio.create_subprocess_exec(*command, env=os.environ | {"HERE": "elsewhere"})
    for _ in range(400):
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.close()
            break
        except ConnectionRefusedError:
            await asyncio.sleep(0.05)
    yield f"http://127.0.0.1:{port}"
    serving.terminate()
    await serving.wait()


class Desk:
    """An application with a `metaforge.toml`."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.apps = folder, []
        for name in ("home", "work"):
            (folder / name).mkdir()

    def open(self, text: str = "", **also: str) -> App:
        if text:
            (self.folder / "home" / "metaforge.toml").write_text(text)
        given = {
            "METAFORGE_HOME": str(self.folder / "home"), "METAFORGE_WORKSPACE": str(self.folder / "work"),
            "METAFORGE_PRESTART": "false", "PATH": os.environ["PATH"],
        }  # fmt: skip
        self.apps.append(App(Settings.load(given | also), over_stdio=True))
        return self.apps[-1]


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    made = Desk(tmp_path)
    yield made
    for app in made.apps:
        await app.close()


async def read(app: App, name: str) -> str:
    outcome: Outcome = await app.call_tool("gauge.read", {"name": name}, call_id=new_call_id(), caller=Caller())
    assert outcome.data is not None
    return str(outcome.data["value"])


def source(app: App, adapter_id: str) -> Any:
    return app.registry.source(adapter_id)


async def test_a_table_limits_an_adapter_of_this_machine_and_leaves_what_it_does_not_name(desk: Desk) -> None:
    plain = {tool.id: tool.limits for tool in source(desk.open(), "cadquery").manifest.tools}
    app = desk.open(
        "[adapters.cadquery]\nmax_workers = 1\nresource_limits = { max_memory_mb = 6000 }\n"
        '[adapters.cadquery.environment]\nOMP_NUM_THREADS = "2"\n'
    )
    made = source(app, "cadquery")
    assert isinstance(made, ProcessSource)
    assert {tool.limits.max_memory_mb for tool in made.manifest.tools} == {6000}
    assert {tool.id: tool.limits.max_cpu_seconds for tool in made.manifest.tools} == {
        name: limits.max_cpu_seconds for name, limits in plain.items()
    }
    assert made.pool._max_workers == 1
    assert made.pool._idle_seconds == app.settings.idle_seconds


async def test_an_adapter_of_ones_own_runs_in_a_process_with_its_variables(desk: Desk, gauge: str) -> None:
    app = desk.open(f'[adapters.gauge]\ntarget = "{gauge}"\n\n[adapters.gauge.environment]\nHERE = "a process"\n')
    assert "gauge.read" in [tool.id for tool in app.listed_tools()]
    assert await read(app, "HERE") == "a process"


async def test_an_adapter_elsewhere_is_asked_for_its_tools_and_known_when_it_is_away(
    desk: Desk, elsewhere: str
) -> None:
    text = f'[adapters.gauge]\ntransport = "http"\nurl = "{elsewhere}"\n'
    app = desk.open(text)
    assert isinstance(source(app, "gauge"), RemoteSource)
    assert app.registry.adapter_version("gauge") == "2.1.0"
    assert await read(app, "HERE") == "elsewhere"
    kept = list((desk.folder / "home" / "cache" / "adapters").glob("remote-gauge-*.json"))
    assert len(kept) == 1
    # What it said is kept under its address: another one has to be asked.
    away = desk.open(text.replace(elsewhere, "http://127.0.0.1:9"))
    told = [entry for entry in away.list_meta()["unavailableAdapters"] if entry["adapterId"] == "gauge"]
    assert "does not say what tools it has" in told[0]["reason"]


async def test_a_variable_goes_before_the_file(desk: Desk, elsewhere: str, gauge: str) -> None:
    app = desk.open(f'[adapters.gauge]\ntarget = "{gauge}"\n', METAFORGE_ADAPTER_GAUGE_URL=elsewhere)
    assert await read(app, "HERE") == "elsewhere"


async def test_an_adapter_that_calls_itself_something_else_is_told(desk: Desk, elsewhere: str) -> None:
    app = desk.open(f'[adapters.gage]\nurl = "{elsewhere}"\n')
    told = [entry for entry in app.list_meta()["unavailableAdapters"] if entry["adapterId"] == "gage"]
    assert "calls itself gauge, not gage" in told[0]["reason"]


@pytest.mark.parametrize(
    "table",
    ['transport = "stdio"\nimage = "ccx:2.23"', 'image = "ccx:2.23"', 'transport = "stdio"', "max_workers = 1", ""],
)
async def test_a_container_is_what_a_table_asks_for_or_where_it_asks_for_nothing_the_runner(
    desk: Desk, table: str
) -> None:
    app = desk.open(f"[adapters.calculix]\n{table}\n", METAFORGE_RUNNER="container")
    made = source(app, "calculix")
    assert isinstance(made._launcher, ContainerLauncher)
    named = "ccx:2.23" if "image" in table else f"localhost/metaforge-calculix:{__version__}"
    assert made._launcher._image.name == named
    assert not any(tool.needs for tool in made.manifest.tools)
    beside = source(app, "cadquery")._launcher
    assert beside._image.name == f"localhost/metaforge-cadquery:{__version__}"


async def test_a_process_is_what_a_table_asks_for_whatever_the_runner(desk: Desk) -> None:
    app = desk.open('[adapters.calculix]\ntransport = "process"\n', METAFORGE_RUNNER="container")
    assert isinstance(source(app, "calculix")._launcher, ProcessLauncher)
    app = desk.open('[adapters.calculix]\nimage = "ccx:2.23"\nworkspace_mode = "rw"\nmax_workers = 1\n')
    made = source(app, "calculix")
    assert made._launcher._image.may_write_workspace
    assert made.pool._max_workers == 1
    assert isinstance(source(app, "cadquery")._launcher, ProcessLauncher)


async def test_a_process_is_refused_what_only_a_container_gets(desk: Desk) -> None:
    app = desk.open('[adapters.calculix]\nworkspace_mode = "rw"\n')
    told = [entry for entry in app.list_meta()["unavailableAdapters"] if entry["adapterId"] == "calculix"]
    assert "is for containers" in told[0]["reason"]
    assert source(app, "calculix") is None


async def test_without_an_engine_a_containers_adapter_is_named_with_what_mends_it(desk: Desk) -> None:
    app = desk.open('[adapters.calculix]\nimage = "ccx:2.23"\n', PATH=str(desk.folder))
    health = await source(app, "calculix").health(3.0)
    assert not health.reachable
    assert "podman is not installed; docker is not installed" in health.error
    assert health.install == "apt-get install -y podman runc"
    told = [entry for entry in app.list_meta()["unavailableAdapters"] if entry["adapterId"] == "calculix"]
    assert "apt-get install -y podman runc" in told[0]["reason"]


async def test_a_table_of_an_unknown_adapter_says_what_it_needs(desk: Desk) -> None:
    told = desk.open("[adapters.calculx]\nmax_workers = 1\n").list_meta()["unavailableAdapters"]
    assert "there is no adapter calculx" in next(entry["reason"] for entry in told if entry["adapterId"] == "calculx")


async def test_an_adapter_of_the_server_itself_takes_no_table(desk: Desk) -> None:
    with pytest.raises(BadConfig, match=r"\[adapters\.twin\].*takes no configuration"):
        desk.open("[adapters.twin]\nmax_workers = 1\n")


async def test_a_bad_file_ends_the_start_with_its_line(desk: Desk) -> None:
    with pytest.raises(BadConfig, match=r"metaforge\.toml, line 3: \[adapters\.calculix\] max_worker = 1.*max_workers"):
        desk.open("\n[adapters.calculix]\nmax_worker = 1\n")


async def test_the_file_lies_in_the_home_or_where_the_variable_says_and_never_in_the_workspace(desk: Desk) -> None:
    table = "[adapters.cadquery]\nmax_workers = 1\n"
    (desk.folder / "work" / "metaforge.toml").write_text(table)
    app = desk.open()
    assert source(app, "cadquery").pool._max_workers == app.settings.max_workers
    assert "is not read, since agents may write there" in app.config_note
    (desk.folder / "mine.toml").write_text(table)
    app = desk.open(METAFORGE_CONFIG=str(desk.folder / "mine.toml"))
    assert source(app, "cadquery").pool._max_workers == 1
    with pytest.raises(BadSetting, match="there is no such file"):
        desk.open(METAFORGE_CONFIG=str(desk.folder / "yours.toml"))


async def test_an_adapter_is_registered_while_the_server_runs(desk: Desk, elsewhere: str, gauge: str) -> None:
    app = desk.open()
    await app.registry.register_adapter("gauge", AdapterConfig(adapter_id="gauge", transport="http", url=elsewhere))
    assert await read(app, "HERE") == "elsewhere"
    assert (await app.registry.health_check("gauge")).status == "healthy"
    with pytest.raises(ToolUnavailable, match="registered already"):
        await app.registry.register_adapter("gauge", AdapterConfig(adapter_id="gauge", target=gauge))
    second = desk.open()
    config = AdapterConfig(adapter_id="gauge", target=gauge, environment={"HERE": "a process"})
    await second.registry.register_adapter("gauge", config)
    assert await read(second, "HERE") == "a process"
    third = desk.open()
    with pytest.raises(ToolUnavailable, match=r"a container of gauge:1|No container can be started"):
        await third.registry.register_adapter("gauge", AdapterConfig(adapter_id="gauge", image="gauge:1"))
    assert third.registry.source("gauge") is None
