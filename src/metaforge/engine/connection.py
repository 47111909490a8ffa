"""Requests and answers with one adapter that listens elsewhere, over HTTP."""

import asyncio
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from metaforge.core.errors import FailureMode, ToolError, ToolUnavailable
from metaforge.engine import faults
from metaforge.protocol import jsonrpc
from metaforge.tools.context import Progress, no_progress

if TYPE_CHECKING:
    import httpx

_MIB = 1 << 20
_CONNECT_SECONDS = 5.0
_ALIVE_AFTER_SECONDS = 30
_NOT_BEGUN = {401: "refuses the key", 403: "refuses the key", 429: "has too much to do", 503: "is not ready"}
"""Answers of HTTP itself that say that nothing was begun."""


class HttpConnection:
    """Requests and answers with one remote adapter.

    Args:
        url: where it listens; `/rpc` below it is asked, or the URL itself when it names `/rpc` or `/mcp`.
        max_output_mb: the largest answer that is read, in MiB.
        key: what the adapter wants to be shown, as a bearer token; empty for none.
    """

    def __init__(self, url: str, max_output_mb: int, key: str = "") -> None:
        self.base = url.rstrip("/")
        for end in ("/rpc", "/mcp"):
            self.base = self.base.removesuffix(end)
        self._max_output_mb = max_output_mb
        self._key = key
        self._client: httpx.AsyncClient | None = None
        self._serial = 0

    @property
    def client(self) -> "httpx.AsyncClient":
        if self._client is None:
            import httpx

            timeout = httpx.Timeout(None, connect=_CONNECT_SECONDS)
            # A machine that lost its power says nothing: the kernel asks whether it is still there.
            transport = httpx.AsyncHTTPTransport(socket_options=_keep_alive())
            headers = {"authorization": f"Bearer {self._key}"} if self._key else {}
            self._client = httpx.AsyncClient(
                base_url=self.base, timeout=timeout, transport=transport, headers=headers, trust_env=False
            )
        return self._client

    async def request(
        self, method: str, params: dict[str, Any], *, seconds: float, progress: Progress = no_progress
    ) -> dict[str, Any]:
        """Return the answer to one request, an error answer included.

        Raises:
            ToolUnavailable: nothing listens there, or it refuses; nothing was begun.
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
                    self._see_begun(response)
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

    def _see_begun(self, response: "httpx.Response") -> None:
        if (what := _NOT_BEGUN.get(response.status_code)) is not None:
            fix = ": METAFORGE_ADAPTER_<ID>_KEY names it" if response.status_code in (401, 403) else ""
            raise ToolUnavailable(
                f"the adapter at {self.base} {what} (HTTP {response.status_code}){fix}", reason=what, install=""
            )

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
                _report(message.get("params"), progress)
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


def _report(params: Any, progress: Progress) -> None:
    fraction = params.get("progress") if isinstance(params, dict) else None
    if isinstance(fraction, int | float):
        progress(min(max(float(fraction), 0.0), 1.0), str(params.get("message") or ""))


def _keep_alive() -> list[tuple[int, int, int]]:
    options = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1), (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)]
    if hasattr(socket, "TCP_KEEPIDLE"):
        options += [
            (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _ALIVE_AFTER_SECONDS),
            (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, _ALIVE_AFTER_SECONDS // 3),
            (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
        ]
    return options
