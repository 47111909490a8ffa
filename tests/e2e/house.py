"""The real server for a test: a home and a workspace of its own, over stdio or on a port of loopback."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

STDIO = ("-m", "metaforge.mcp", "--transport", "stdio")


class House:
    """Where one test's server lives."""

    def __init__(self, folder: Path, adapters: str = "", **variables: str) -> None:
        self.adapters = adapters
        self.variables = variables
        self.home = folder / "home"
        self.workspace = folder / "workspace"
        self.home.mkdir()
        self.workspace.mkdir()

    @property
    def settings(self) -> dict[str, str]:
        """The METAFORGE_* variables of a server here."""
        return {
            "METAFORGE_HOME": str(self.home),
            "METAFORGE_WORKSPACE": str(self.workspace),
            "METAFORGE_FIXTURES": "1",
            "METAFORGE_ADAPTERS": self.adapters,
            "METAFORGE_PRESTART": "false",
            **self.variables,
        }

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        return {**kept, "OMP_NUM_THREADS": "1", **self.settings}

    @contextmanager
    def listening(self) -> Iterator[str]:
        """Serve HTTP and give the address of the MCP endpoint."""
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        log = (self.home / "server.log").open("wb")
        process = subprocess.Popen(
            [sys.executable, "-m", "metaforge.mcp", "--transport", "http", "--port", str(port)],
            env=self.environment,
            cwd=self.workspace,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
        try:
            self._wait(port, process)
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            process.terminate()
            process.wait(10)
            log.close()

    def _wait(self, port: int, process: "subprocess.Popen[bytes]") -> None:
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            if process.poll() is not None:
                raise RuntimeError(f"the server ended: {(self.home / 'server.log').read_text()[-2000:]}")
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
            except OSError:
                time.sleep(0.02)
            else:
                return
        raise RuntimeError("the server does not listen")
