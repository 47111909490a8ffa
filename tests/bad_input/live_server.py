"""A client of the real server over stdio that can do everything wrong, and several things at once."""

import json
import os
import queue
import subprocess
import sys
import threading
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import psutil

Json = dict[str, Any]

PATIENCE_SECONDS = 120
REVISION = "2025-11-25"


@dataclass(frozen=True)
class Result:
    """What a tools/call gave back."""

    raw: Json

    @property
    def refused(self) -> bool:
        return bool(self.raw.get("isError"))

    @property
    def text(self) -> str:
        return "\n".join(block["text"] for block in self.raw["content"] if block["type"] == "text")

    @property
    def data(self) -> Json:
        structured: Json = self.raw["structuredContent"]
        return structured


class ProtocolRefusal(Exception):
    """The server answered with a JSON-RPC error."""

    def __init__(self, error: Json) -> None:
        super().__init__(error["message"])
        self.code: int = error["code"]
        self.data: Json = error.get("data") or {}


class Server:
    """A client of a server started for it; several requests may be under way at once."""

    def __init__(self, home: Path, workspace: Path) -> None:
        self.home = home
        self.workspace = workspace
        self.log = (home / "server.log").open("wb")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "metaforge.mcp", "--transport", "stdio"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            cwd=workspace,
            env=environment(home, workspace),
        )
        self.ids = count(1)
        self.waiting: dict[int | str, queue.Queue[Json]] = {}
        self.strays: queue.Queue[Json] = queue.Queue()
        """What came without being asked for: errors without an id, notifications."""
        self.junk: list[bytes] = []
        """Lines that are not one JSON-RPC object; there must never be one."""
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def shake_hands(self) -> None:
        client = {"name": "bad-input-tests", "version": "1"}
        self.ask("initialize", {"protocolVersion": REVISION, "capabilities": {}, "clientInfo": client})
        self.notify("notifications/initialized")

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            try:
                message = json.loads(line)
                assert message["jsonrpc"] == "2.0"
            except (ValueError, KeyError, TypeError, AssertionError):
                self.junk.append(line)
                continue
            waiting = self.waiting.get(message.get("id")) if "method" not in message else None
            (waiting or self.strays).put(message)
        ended = {"error": {"code": 0, "message": "the server ended"}}
        for waiting in [*self.waiting.values(), self.strays]:
            waiting.put(ended)

    def write(self, raw: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(raw)
        self.process.stdin.flush()

    def stray(self) -> Json:
        """Return the next message that nobody asked for."""
        return self.strays.get(timeout=PATIENCE_SECONDS)

    def notify(self, method: str, **params: Any) -> None:
        self.write(json.dumps({"jsonrpc": "2.0", "method": method, "params": params}).encode() + b"\n")

    def begin(self, method: str, params: Json, request_id: int | str | None = None) -> int | str:
        """Send a request and return its id; `end` waits for the answer."""
        request_id = request_id if request_id is not None else next(self.ids)
        self.waiting[request_id] = queue.Queue()
        message = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}
        self.write(json.dumps(message).encode() + b"\n")
        return request_id

    def end(self, request_id: int | str, seconds: float = PATIENCE_SECONDS) -> Json:
        message = self.waiting[request_id].get(timeout=seconds)
        del self.waiting[request_id]
        if "error" in message:
            raise ProtocolRefusal(message["error"])
        result: Json = message["result"]
        return result

    def ask(self, method: str, params: Json) -> Json:
        return self.end(self.begin(method, params))

    def begin_call(self, tool: str, **arguments: Any) -> int | str:
        return self.begin("tools/call", {"name": tool, "arguments": arguments})

    def call(self, tool: str, **arguments: Any) -> Result:
        return Result(self.ask("tools/call", {"name": tool, "arguments": arguments}))

    def refusal(self, tool: str, **arguments: Any) -> str:
        """Call a tool that must refuse, and return the whole text of its refusal."""
        result = self.call(tool, **arguments)
        assert result.refused, f"{tool} accepted it: {json.dumps(result.raw)[:1500]}"
        assert "structuredContent" not in result.raw, "a refusal is text alone"
        assert "Traceback" not in result.text, "a stack trace is no error message"
        assert result.raw["_meta"]["callId"]
        return result.text

    def descendants(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children(recursive=True)

    def outputs(self) -> list[str]:
        """Return the files in the folders that calls write to; each call takes its own away."""
        return [str(path) for path in (self.home / "workers").rglob("*") if path.is_file() and "output" in path.parts]

    def close(self) -> int:
        """Close the server's stdin and return its exit status."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        try:
            return self.process.wait(10)
        finally:
            self.process.kill()
            self.reader.join(10)
            self.process.stdout.close()
            self.log.close()


def environment(home: Path, workspace: Path) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    return {
        **kept,
        "OMP_NUM_THREADS": "1",
        "METAFORGE_HOME": str(home),
        "METAFORGE_WORKSPACE": str(workspace),
        "METAFORGE_FIXTURES": "1",
        "METAFORGE_ADAPTERS": "cadquery,calculix,spice,kicad",
        "METAFORGE_PRESTART": "false",
    }
