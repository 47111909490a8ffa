"""A blocking client over pipes, and the MetaForge server started the way an MCP client starts it."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson

from benchmarks.load import PROTOCOL_VERSION
from benchmarks.processes import end, free_port, wait_for_port

SERVER = (sys.executable, "-m", "metaforge.mcp")
ROOT = Path(__file__).parent.parent


class PipeClient:
    """Newline-delimited JSON-RPC to a child process, one request at a time."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        environment: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> None:
        self.log = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
        self.started_at = time.perf_counter()
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            env=environment,
            cwd=cwd,
        )
        self.last_id = 0

    def send(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(orjson.dumps(message) + b"\n")
        self.process.stdin.flush()

    def notify(self, method: str) -> None:
        self.send({"jsonrpc": "2.0", "method": method})

    def ask(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """Send a request and return its result, passing over notifications on the way.

        Raises:
            RuntimeError: the answer is an error, or the process ended.
        """
        self.last_id += 1
        self.send({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params or {}})
        assert self.process.stdout is not None
        while line := self.process.stdout.readline():
            message = orjson.loads(line)
            if message.get("id") == self.last_id and "method" not in message:
                if "error" in message:
                    raise RuntimeError(f"{method} was refused: {message['error']}")
                result: dict[str, Any] = message["result"]
                return result
        self.log.seek(0)
        raise RuntimeError(f"the server ended during {method}: {self.log.read().decode()[-600:]}")

    def shake_hands(self) -> dict[str, Any]:
        client = {"name": "metaforge-benchmarks", "version": "1"}
        hello = {"protocolVersion": PROTOCOL_VERSION, "capabilities": {}, "clientInfo": client}
        result = self.ask("initialize", hello)
        self.notify("notifications/initialized")
        return result

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool and return its whole result.

        Raises:
            RuntimeError: the tool refused.
        """
        result = self.ask("tools/call", {"name": tool, "arguments": arguments})
        if result.get("isError"):
            raise RuntimeError(f"{tool} refused: {result['content'][0]['text']}")
        return result

    def time_calls(self, seconds: float, tool: str, **arguments: Any) -> list[float]:
        """Call a tool again and again and return every latency in milliseconds."""
        latencies: list[float] = []
        deadline = time.perf_counter() + seconds
        while (started := time.perf_counter()) < deadline:
            self.call(tool, **arguments)
            latencies.append((time.perf_counter() - started) * 1000)
        return latencies


class House:
    """A home and a workspace of their own, so that a benchmark touches nothing else."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.workspace = folder / "workspace"
        self.home.mkdir()
        self.workspace.mkdir()

    def environment(self, **also: str) -> dict[str, str]:
        """Return the environment of a server here: fixtures on, nothing started ahead unless asked for."""
        return {
            **os.environ,
            "METAFORGE_HOME": str(self.home),
            "METAFORGE_WORKSPACE": str(self.workspace),
            "METAFORGE_FIXTURES": "1",
            "METAFORGE_PRESTART": "false",
            "PYTHONPATH": str(ROOT),
            **also,
        }

    def over_stdio(self, **also: str) -> PipeClient:
        command = (*SERVER, "--transport", "stdio")
        return PipeClient(command, environment=self.environment(**also), cwd=self.workspace)

    @contextmanager
    def stdio(self, **also: str) -> Iterator[PipeClient]:
        client = self.over_stdio(**also)
        try:
            client.shake_hands()
            yield client
        finally:
            end(client.process)

    @contextmanager
    def http(self, **also: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
        port = free_port()
        command = (*SERVER, "--transport", "http", "--port", str(port))
        with listening(command, port, environment=self.environment(**also), cwd=self.workspace) as process:
            yield process, port


@contextmanager
def house() -> Iterator[House]:
    """Make a home and a workspace and remove them afterwards."""
    with tempfile.TemporaryDirectory(prefix="metaforge-benchmark-", ignore_cleanup_errors=True) as folder:
        yield House(Path(folder))


@contextmanager
def listening(
    command: Sequence[str], port: int, *, environment: Mapping[str, str] | None = None, cwd: Path | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a server, wait until it listens, and end it afterwards."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment,
        cwd=cwd,
    )
    try:
        wait_for_port(port, process)
        yield process
    finally:
        end(process)


@contextmanager
def floor(name: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """Start one of the bare HTTP programs of `benchmarks.floors`."""
    port = free_port()
    command = (sys.executable, str(ROOT / "benchmarks" / "floors" / f"{name}.py"), str(port))
    with listening(command, port) as process:
        yield process, port
