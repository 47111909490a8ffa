"""`RemoteSource`: the tools of an adapter that runs elsewhere, reached over HTTP."""

import asyncio
import time
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import orjson

from metaforge.core.errors import FailureMode, ToolError, ToolUnavailable
from metaforge.engine import faults
from metaforge.engine.answers import checked
from metaforge.engine.collect import Collector
from metaforge.engine.launch import DEFAULT_DISK_MB, make_folder
from metaforge.engine.outcome import outcome_of
from metaforge.engine.removal import remove_tree
from metaforge.protocol import jsonrpc
from metaforge.settings import Settings
from metaforge.store.blobs import Blobs
from metaforge.tools.context import Invocation, Outcome, Progress, no_progress
from metaforge.tools.manifest import AdapterManifest, Tool
from metaforge.tools.source import AdapterHealth, AdapterState

if TYPE_CHECKING:
    import httpx

_MIB = 1 << 20
_CONNECT_SECONDS = 5.0
_MARGIN_SECONDS = 2.0
"""The remote side ends a call at its deadline and says so; this side waits a little longer for that answer."""


class HttpConnection:
    """Requests and answers with one remote adapter.

    Args:
        url: where it listens; `/rpc` below it is asked, or the URL itself when it names `/rpc` or `/mcp`.
        max_output_mb: the largest answer that is read, in MiB.
    """

    def __init__(self, url: str, max_output_mb: int) -> None:
        self.base = url.rstrip("/")
        for end in ("/rpc", "/mcp"):
            self.base = self.base.removesuffix(end)
        self._max_output_mb = max_output_mb
        self._client: httpx.AsyncClient | None = None
        self._serial = 0

    @property
    def client(self) -> "httpx.AsyncClient":
        if self._client is None:
            import httpx

            timeout = httpx.Timeout(None, connect=_CONNECT_SECONDS)
            self._client = httpx.AsyncClient(base_url=self.base, timeout=timeout, trust_env=False)
        return self._client

    async def request(
        self, method: str, params: dict[str, Any], *, seconds: float, progress: Progress = no_progress
    ) -> dict[str, Any]:
        """Return the answer to one request, an error answer included.

        Raises:
            ToolUnavailable: nothing listens there.
            WorkerCrashed: the connection broke before the answer.
            DeadlinePassed: no answer within `seconds`.
            OverLimit: the answer is too large.
        """
        import httpx

        self._serial += 1
        body = jsonrpc.encode(jsonrpc.request(self._serial, method, params))
        headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
        try:
            async with asyncio.timeout(seconds):
                async with self.client.stream("POST", "/rpc", content=body, headers=headers) as response:
                    return await self._read(response, progress)
        except TimeoutError:
            raise faults.deadline_passed(seconds, 0.0) from None
        except (httpx.ConnectError, httpx.ConnectTimeout) as fault:
            raise ToolUnavailable(
                f"the adapter at {self.base} does not answer: {fault}", reason=str(fault), install=""
            ) from None
        except httpx.TransportError as fault:
            raise faults.WorkerCrashed(
                f"the connection to {self.base} broke before its answer: {fault or type(fault).__name__}",
                kind="connection_lost", retryable=True, failure_mode=FailureMode.ENVIRONMENT,
            ) from None  # fmt: skip

    async def _read(self, response: "httpx.Response", progress: Progress) -> dict[str, Any]:
        streaming = "text/event-stream" in response.headers.get("content-type", "")
        held = bytearray()
        async for chunk in response.aiter_bytes():
            held += chunk
            while streaming and (end := held.find(b"\n\n")) >= 0:
                message = _message(held[:end].removeprefix(b"data: "))
                del held[: end + 2]
                if message is None or "method" not in message:
                    return self._checked(message, response.status_code)
                _report(message.get("params") or {}, progress)
            if len(held) > self._max_output_mb * _MIB:
                raise faults.over("output_limit", self._max_output_mb)
        return self._checked(_message(held), response.status_code)

    def _checked(self, message: dict[str, Any] | None, status: int) -> dict[str, Any]:
        if message is None or not ("result" in message or "error" in message):
            raise ToolError(
                f"the adapter at {self.base} answered HTTP {status} without a JSON-RPC message",
                kind="adapter_fault", failure_mode=FailureMode.ENVIRONMENT,
                fix="see that the URL is an adapter's and not another service's",
            )  # fmt: skip
        return message

    async def fetch(self, path: str, target: Path, max_bytes: int) -> int:
        """Copy a file of a call to `target`, and return its size in bytes."""
        target.parent.mkdir(parents=True, exist_ok=True)
        size = 0
        async with self.client.stream("GET", path) as response:
            if response.status_code != 200:
                raise ToolError(
                    f"the adapter at {self.base} does not hand out {path}: HTTP {response.status_code}",
                    kind="output_invalid", failure_mode=FailureMode.ENVIRONMENT,
                )  # fmt: skip
            with target.open("xb") as stream:
                async for chunk in response.aiter_bytes():
                    size += len(chunk)
                    if size > max_bytes:
                        raise faults.over("output_limit", max_bytes // _MIB)
                    stream.write(chunk)
        return size

    async def close(self) -> None:
        if self._client is not None:
            await self._client.aclose()
            self._client = None


def _message(raw: bytes | bytearray) -> dict[str, Any] | None:
    try:
        message = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return None
    return message if isinstance(message, dict) else None


def _report(params: dict[str, Any], progress: Progress) -> None:
    fraction = params.get("progress")
    if isinstance(fraction, int | float):
        progress(min(max(float(fraction), 0.0), 1.0), str(params.get("message") or ""))


class RemoteSource:
    """A ToolSource over HTTP. The adapter reads the workspace through a mount of its own; its files are fetched."""

    def __init__(
        self, manifest: AdapterManifest, url: str, *, blobs: Blobs, workspace: Path, settings: Settings
    ) -> None:
        self._manifest = manifest
        self._connection = HttpConnection(url, settings.max_output_mb)
        self._collector = Collector(workspace, blobs)
        self._folders = settings.home_path / "workers"

    @property
    def manifest(self) -> AdapterManifest:
        return self._manifest

    async def call(self, tool: Tool, arguments: dict[str, Any], invocation: Invocation) -> Outcome:
        """Run one call there, and bring its files here. Going away cancels it."""
        params = {
            "tool_id": tool.id, "arguments": arguments, "timeout_seconds": invocation.timeout_seconds,
            "call_id": invocation.call_id, "trace_id": invocation.trace_id, "overwrite": invocation.overwrite,
            "fetch_outputs": True,
        }  # fmt: skip
        seconds = invocation.timeout_seconds + _MARGIN_SECONDS
        message = await self._connection.request("tool/call", params, seconds=seconds, progress=invocation.progress)
        if (error := message.get("error")) is not None:
            raise faults.rebuild(error)
        answer = checked(tool, message.get("result"))
        url = str(answer.get("output_url") or "")
        if not url:
            return outcome_of(tool, answer)
        folder = make_folder(self._folders)
        try:
            return await self._bring(tool, answer, url, folder, overwrite=invocation.overwrite)
        finally:
            remove_tree(folder)
            await self._connection.client.delete(url)

    async def _bring(self, tool: Tool, answer: dict[str, Any], url: str, folder: Path, *, overwrite: bool) -> Outcome:
        left = (tool.limits.max_disk_mb or DEFAULT_DISK_MB) * _MIB
        names = [str(entry.get("path")) for key in ("files", "pictures") for entry in answer.get(key) or ()]
        for name in dict.fromkeys(names or map(str, answer.get("output_files") or ())):
            path = PurePosixPath(name)
            if path.is_absolute() or ".." in path.parts:
                raise ToolError(f"The output file {name} is refused: its path leads out", kind="output_invalid")
            left -= await self._connection.fetch(f"{url}/{quote(name)}", folder / path, left)
        found = self._collector.examine(answer, folder, max_disk_mb=tool.limits.max_disk_mb or DEFAULT_DISK_MB)
        files = await asyncio.to_thread(self._collector.place, found.files, overwrite=overwrite)
        return outcome_of(tool, answer, files, found.images)

    async def health(self, timeout_seconds: float) -> AdapterHealth:
        """Ask it, within the time."""
        started = time.perf_counter()
        error, detail = "", {"url": self._connection.base}
        try:
            message = await self._connection.request("health/check", {}, seconds=timeout_seconds)
            status = message.get("result") or {}
            if status.get("status") != "healthy":
                error = f"the adapter at {self._connection.base} says {status.get('status') or message.get('error')}"
            detail |= {"round_trip_ms": round((time.perf_counter() - started) * 1000, 1)} | status
        except (ToolUnavailable, ToolError) as fault:
            error = fault.message
        return AdapterHealth(
            adapter_id=self._manifest.adapter_id,
            version=self._manifest.version,
            tools_registered=len(self._manifest.tools),
            reachable=not error,
            state=AdapterState.DOWN if error else AdapterState.READY,
            error=error,
            detail=detail,
        )

    def prestart(self) -> None:
        """It was started by someone else."""

    async def close(self) -> None:
        """Close the connections."""
        await self._connection.close()
