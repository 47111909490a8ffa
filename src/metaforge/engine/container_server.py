"""This server's mark on its containers, and their end when it ends: however it ends, and whoever finds them later."""

import atexit
import fcntl
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path

from metaforge.core.errors import ToolUnavailable
from metaforge.engine import container_reaper
from metaforge.engine.container_engine import SERVER_LABEL, ContainerEngine
from metaforge.telemetry.logs import event

_ID_BYTES = 8
_LOCK = ".lock"


class ContainerServer:
    """One running server as its containers know it: made once for each process and METAFORGE_HOME.

    A file below METAFORGE_HOME is locked for as long as this process lives. Who can lock it knows that its server is
    gone, and removes what that one left. A reaper, a process beside this one, does so at once.

    Args:
        folder: where the locks lie.
    """

    def __init__(self, folder: Path) -> None:
        self.id = os.urandom(_ID_BYTES).hex()
        self.folder = folder
        self._serial = count()
        self._lock = threading.Lock()
        self._held = -1
        self._reapers: dict[str, subprocess.Popen[bytes]] = {}
        self._pid = 0

    @property
    def _path(self) -> Path:
        return self.folder / f"{self.id}{_LOCK}"

    def name_of(self, adapter_id: str) -> str:
        """Return a name that no other container has."""
        return f"metaforge-{adapter_id}-{self.id}-{next(self._serial)}"

    def attend(self, engine: ContainerEngine) -> None:
        """See that this server's containers are removed when it is gone, and remove what others left. Blocking."""
        with self._lock:
            if self._pid != os.getpid():
                self._pid, self._reapers = os.getpid(), {}
                self._hold()
                atexit.register(self._let_go)
            reaper = self._reapers.get(engine.program)
            if reaper is not None and reaper.poll() is None:
                return
            self._reapers[engine.program] = self._start_reaper(engine)
        # No call has to wait for what others left.
        threading.Thread(target=self._sweep, args=(engine,), daemon=True, name="remove left containers").start()

    def _hold(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        made = self.folder / f"{self.id}.new"
        self._held = os.open(made, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Seen by others only once it is locked.
        made.rename(self._path)

    def _let_go(self) -> None:
        """Let the reapers begin: this process is about to end, and collects them no more."""
        for reaper in self._reapers.values():
            if reaper.stdin is not None:
                reaper.stdin.close()
            reaper.returncode = 0

    def _start_reaper(self, engine: ContainerEngine) -> "subprocess.Popen[bytes]":
        # A session of its own: what ends the server's process group must not end it too.
        return subprocess.Popen(
            [
                sys.executable, "-I", "-S", container_reaper.__file__, engine.program, f"{SERVER_LABEL}={self.id}",
                str(self._path),
            ],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=engine.environment,
            cwd="/", start_new_session=True,
        )  # fmt: skip

    def _sweep(self, engine: ContainerEngine) -> None:
        """Remove the containers of servers that are gone."""
        for server_id, path in self._gone():
            try:
                left = engine.of_server(server_id)
                engine.remove(left)
            except ToolUnavailable:
                return  # the next server looks again
            if left:
                event("containers_reaped", "warning", server=server_id, count=len(left))
            path.unlink(missing_ok=True)

    def _gone(self) -> Iterator[tuple[str, Path]]:
        for path in sorted(self.folder.glob(f"*{_LOCK}")):
            if path.stem == self.id:
                continue
            with suppress(OSError):
                descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    yield path.stem, path
                finally:
                    os.close(descriptor)


_SERVERS: dict[Path, ContainerServer] = {}


def server_of(home: Path) -> ContainerServer:
    """Return what this process is to the containers it starts for one METAFORGE_HOME."""
    folder = home / "containers"
    return _SERVERS.setdefault(folder, ContainerServer(folder))
