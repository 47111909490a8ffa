"""A small MCP client over pipes: what the demo uses, and what a stdio client does."""

import contextlib
import queue
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import orjson

from metaforge import __version__

PROTOCOL_REVISION = "2025-11-25"
EXIT_SECONDS = 5.0
_LAST_WORDS_SECONDS = 2.0

Moved = Callable[[float, str], None]


class ClientError(Exception):
    """The server answered with a JSON-RPC error, refused a tool call, or went away. The message is its own."""


class StdioClient:
    """Starts a server, shakes hands and calls tools, one at a time.

    Args:
        command: the server's command line; default: this interpreter's `-m metaforge.mcp --transport stdio`.
        folder: current directory of the server, which is its workspace by default.
        environment: the server's whole environment; default: this process's own.
    """

    def __init__(
        self,
        command: list[str] | None = None,
        *,
        folder: Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.command = command or [sys.executable, "-m", "metaforge.mcp", "--transport", "stdio"]
        self._folder, self._environment = folder, environment
        self._answers: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._log: deque[str] = deque(maxlen=50)
        self._last_id = 0

    def __enter__(self) -> "StdioClient":
        self._server = subprocess.Popen(
            self.command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=self._folder,
            env=self._environment,
        )
        self._readers = [
            threading.Thread(target=self._read_answers, daemon=True),
            threading.Thread(target=self._read_log, daemon=True),
        ]
        for reader in self._readers:
            reader.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._server.stdin.close()
        try:
            self._server.wait(EXIT_SECONDS)
        except subprocess.TimeoutExpired:
            self._server.kill()
            self._server.wait()
        for reader in self._readers:
            reader.join()
        for stream in (self._server.stdout, self._server.stderr):
            assert stream is not None
            stream.close()

    def initialize(self) -> dict[str, Any]:
        """Shake hands; return the server's answer."""
        client = {"name": "metaforge-demo", "version": __version__}
        params = {"protocolVersion": PROTOCOL_REVISION, "capabilities": {}, "clientInfo": client}
        answer = self.request("initialize", params, within_seconds=60)
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer

    def call_tool(
        self, name: str, arguments: dict[str, Any], *, within_seconds: float, moved: Moved | None = None
    ) -> dict[str, Any]:
        """Call a tool; return the whole result, `structuredContent` and `content`.

        Raises:
            ClientError: the tool refused or failed; the text is complete.
        """
        params: dict[str, Any] = {"name": name, "arguments": arguments}
        if moved is not None:
            params["_meta"] = {"progressToken": f"{name}-{self._last_id + 1}"}
        result = self.request("tools/call", params, within_seconds=within_seconds, moved=moved)
        if result.get("isError"):
            raise ClientError("\n".join(block.get("text", "") for block in result.get("content", ())))
        return result

    def request(
        self, method: str, params: dict[str, Any], *, within_seconds: float, moved: Moved | None = None
    ) -> dict[str, Any]:
        """Send a request and wait for its answer, passing progress on.

        Raises:
            ClientError: an error answer, no answer in time, or the server is gone.
        """
        self._last_id += 1
        request_id = self._last_id
        self._send({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params})
        while True:
            message = self._next(method, within_seconds)
            if message.get("method") == "notifications/progress" and moved is not None:
                told = message["params"]
                moved(float(told["progress"]) / float(told.get("total") or 1), str(told.get("message", "")))
            elif message.get("id") == request_id and "method" not in message:
                if "error" in message:
                    raise ClientError(_error_text(message["error"]))
                return dict(message["result"])

    def _next(self, method: str, within_seconds: float) -> dict[str, Any]:
        try:
            message = self._answers.get(timeout=within_seconds)
        except queue.Empty:
            raise ClientError(f"The server did not answer {method} within {within_seconds:g} s") from None
        if message is None:
            status = self._server.wait()
            # Its last words may still be on their way.
            self._readers[1].join(_LAST_WORDS_SECONDS)
            said = "\n".join(self._log) or "it said nothing"
            raise ClientError(f"The server ended during {method} with exit status {status}:\n{said}")
        return message

    def _send(self, message: dict[str, Any]) -> None:
        assert self._server.stdin is not None
        # A broken pipe is told by the end of its stdout, with what the server said last.
        with contextlib.suppress(BrokenPipeError):
            self._server.stdin.write(orjson.dumps(message) + b"\n")
            self._server.stdin.flush()

    def _read_answers(self) -> None:
        assert self._server.stdout is not None
        for line in self._server.stdout:
            try:
                self._answers.put(orjson.loads(line))
            except orjson.JSONDecodeError:
                self._log.append(f"not JSON on stdout: {line[:200]!r}")
        self._answers.put(None)

    def _read_log(self) -> None:
        assert self._server.stderr is not None
        for line in self._server.stderr:
            self._log.append(line.decode(errors="replace").rstrip())


def _error_text(error: dict[str, Any]) -> str:
    text = str(error.get("message", "unknown error"))
    install = (error.get("data") or {}).get("install")
    return f"{text}\nTo add it: {install}" if install and install not in text else text
