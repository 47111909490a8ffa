"""`McpClient`: the documented way for a program to reach adapters directly, over pipes or HTTP.

The server itself does not use it: it goes through `ExecutionEngine`, with boxed workers and collected files.
"""

import asyncio
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol

from metaforge.core.errors import ToolUnavailable, UnknownTool
from metaforge.engine import faults
from metaforge.engine.connection import HttpConnection
from metaforge.engine.faults import DeadlinePassed, WorkerCrashed
from metaforge.engine.launch import CommandLauncher
from metaforge.engine.worker import Worker, WorkerGone
from metaforge.protocol.messages import HealthStatus, ToolCallRequest, ToolCallResult, ToolManifest
from metaforge.tools.config import AdapterConfig

DEFAULT_OUTPUT_MB = 32

_ASK_SECONDS = 120.0
_HEALTH_SECONDS = 3.0

Endpoint = str | tuple[str, ...]
"""A URL, or the command of an adapter that speaks the legacy dialect on stdin and stdout."""


class _Connection(Protocol):
    async def request(self, method: str, params: dict[str, Any], *, seconds: float) -> dict[str, Any]: ...

    async def close(self) -> None: ...


class _PipeConnection:
    """One adapter process of this client's own."""

    def __init__(self, adapter_id: str, launcher: CommandLauncher, max_output_mb: int) -> None:
        self._adapter_id = adapter_id
        self._launcher = launcher
        self._max_output_mb = max_output_mb
        self._worker: Worker | None = None
        self._starting = asyncio.Lock()

    async def _live(self) -> Worker:
        async with self._starting:
            if self._worker is not None and (not self._worker.alive or self._worker.spoiled):
                await self.close()
            if self._worker is None:
                worker = Worker(self._adapter_id, self._max_output_mb)
                await worker.launch(self._launcher)
                self._worker = worker
            return self._worker

    async def request(self, method: str, params: dict[str, Any], *, seconds: float) -> dict[str, Any]:
        worker = await self._live()
        number = worker.request(method, params)
        try:
            async with asyncio.timeout(seconds):
                return await worker.answer(number)
        except TimeoutError:
            await worker.kill()
            raise faults.deadline_passed(seconds, 0.0) from None
        except WorkerGone:
            raise await worker.explain_end() from None
        except asyncio.CancelledError:
            await worker.kill()
            raise
        finally:
            worker.forget(number)

    async def close(self) -> None:
        if self._worker is not None:
            worker, self._worker = self._worker, None
            await worker.kill()


class McpClient:
    """Manages connections to adapters and dispatches tool calls.

    Args:
        endpoints: adapter id to a URL, or to the command of a local adapter.
        environment: variables for local adapters.
        max_output_mb: the largest answer that is read, in MiB.
        keys: adapter id to the key that it wants to be shown, for those that want one.
    """

    def __init__(
        self,
        endpoints: Mapping[str, Endpoint],
        *,
        environment: Mapping[str, str] | None = None,
        max_output_mb: int = DEFAULT_OUTPUT_MB,
        keys: Mapping[str, str] | None = None,
    ) -> None:
        self._keys = dict(keys or {})
        self._endpoints = dict(endpoints)
        self._environment = dict(environment or {})
        self._max_output_mb = max_output_mb
        self._connections: dict[str, _Connection] = {}
        self._manifests: dict[str, dict[str, ToolManifest]] = {}
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    @classmethod
    def from_configs(cls, configs: Iterable[AdapterConfig], targets: Mapping[str, str]) -> "McpClient":
        """Return a client for adapters as they are configured.

        Args:
            configs: where each runs.
            targets: adapter id to `module:Class`, for those that run as a local process.

        Raises:
            ToolUnavailable: a configuration names neither a URL, nor a module, nor an image.
        """
        configs = tuple(configs)
        keys = {config.adapter_id: config.key for config in configs if config.key}
        return cls({config.adapter_id: _endpoint(config, targets) for config in configs}, keys=keys)

    async def connect(self, adapter_id: str) -> None:
        """Establish a connection to an adapter and learn its tools.

        Raises:
            ToolUnavailable: it is not configured, or does not answer.
        """
        if adapter_id in self._connections:
            return
        endpoint = self._endpoints.get(adapter_id)
        if endpoint is None:
            known = ", ".join(self._endpoints) or "none"
            raise ToolUnavailable(f"no adapter {adapter_id} is configured; there are: {known}", reason="not configured")
        connection: _Connection
        if isinstance(endpoint, str):
            connection = HttpConnection(endpoint, self._max_output_mb, self._keys.get(adapter_id, ""))
        else:
            if self._folder is None:
                self._folder = tempfile.TemporaryDirectory(prefix="metaforge-client-")
            launcher = CommandLauncher(endpoint, Path(self._folder.name), self._environment)
            connection = _PipeConnection(adapter_id, launcher, self._max_output_mb)
        try:
            listed = await _result(connection, "tool/list", {}, _ASK_SECONDS)
        except BaseException:
            await connection.close()
            raise
        tools = [ToolManifest.model_validate(entry) for entry in listed.get("tools", ())]
        self._manifests[adapter_id] = {tool.tool_id: tool for tool in tools}
        self._connections[adapter_id] = connection

    async def disconnect(self, adapter_id: str) -> None:
        """Close the connection to an adapter; a local one is ended."""
        self._manifests.pop(adapter_id, None)
        connection = self._connections.pop(adapter_id, None)
        if connection is not None:
            await connection.close()

    async def close(self) -> None:
        """Close every connection."""
        for adapter_id in list(self._connections):
            await self.disconnect(adapter_id)
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    async def call_tool(self, request: ToolCallRequest) -> ToolCallResult:
        """Send a tool call and wait for its result; an idempotent one that got no answer is sent again.

        Raises:
            UnknownTool: no connected adapter has it.
            InvalidArguments: the adapter refused the arguments.
            ToolError: it ran and refused, crashed, or did not finish in time.
        """
        adapter_id, tool = self._find(request.tool_id)
        connection = self._connections[adapter_id]
        params = request.model_dump(exclude_none=True)
        for _ in range(tool.retries if tool.idempotent else 0):
            try:
                return await self._call(connection, params, request.timeout_seconds)
            except (WorkerCrashed, DeadlinePassed):
                continue
        return await self._call(connection, params, request.timeout_seconds)

    async def _call(self, connection: _Connection, params: dict[str, Any], seconds: float) -> ToolCallResult:
        return ToolCallResult.model_validate(await _result(connection, "tool/call", params, seconds))

    def _find(self, tool_id: str) -> tuple[str, ToolManifest]:
        for adapter_id, tools in self._manifests.items():
            if tool_id in tools:
                return adapter_id, tools[tool_id]
        count = sum(map(len, self._manifests.values()))
        raise UnknownTool(f"no connected adapter has {tool_id}", tool_id=tool_id, tool_count=count)

    async def list_tools(self, adapter_id: str | None = None) -> list[ToolManifest]:
        """Return the tools of one or all connected adapters."""
        chosen = self._manifests if adapter_id is None else {adapter_id: self._manifests.get(adapter_id, {})}
        return [tool for tools in chosen.values() for tool in tools.values()]

    async def health_check(self, adapter_id: str) -> HealthStatus:
        """Ask a connected adapter for its health.

        Raises:
            ToolUnavailable: it is not connected, or does not answer.
        """
        connection = self._connections.get(adapter_id)
        if connection is None:
            raise ToolUnavailable(f"{adapter_id} is not connected: connect it first", reason="not connected")
        return HealthStatus.model_validate(await _result(connection, "health/check", {}, _HEALTH_SECONDS))


async def _result(connection: _Connection, method: str, params: dict[str, Any], seconds: float) -> dict[str, Any]:
    message = await connection.request(method, params, seconds=seconds)
    if (error := message.get("error")) is not None:
        raise faults.rebuild(error)
    result = message.get("result")
    return result if isinstance(result, dict) else {}


def _endpoint(config: AdapterConfig, targets: Mapping[str, str]) -> Endpoint:
    if config.transport == "http":
        return config.addresses[0]
    if target := targets.get(config.adapter_id):
        return (sys.executable, "-P", "-m", "metaforge.tools.run", target)
    raise ToolUnavailable(
        f"{config.adapter_id} with transport {config.transport!r} has no URL and no module to run",
        reason="not configured", install="",
    )  # fmt: skip
