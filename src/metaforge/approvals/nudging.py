"""Telling other processes of this machine that something was committed: a datagram to each one that listens.

A listener is a socket file below METAFORGE_HOME. A nudge that is lost costs its receiver one turn of polling.
"""

import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

FOLDER = "wake"
_LONGEST_ADDRESS_BYTES = 100
"""What every system takes as a socket's path."""


def nudge(home: Path, *, but: str = "") -> None:
    """Nudge everybody who listens, and clear away what dead listeners left; never waits, never fails.

    Args:
        home: METAFORGE_HOME.
        but: the name of one's own socket.
    """
    folder = home / FOLDER
    try:
        names = os.listdir(folder)
    except OSError:
        return
    others = [name for name in names if name != but]
    if not others:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.setblocking(False)
        for name in others:
            try:
                with _address(folder, name) as address:
                    sender.sendto(b"!", address)
            except ConnectionRefusedError:
                with suppress(OSError):
                    os.unlink(folder / name)
            except OSError:
                continue  # its buffer is full, so it is awake; or it is gone


class Listener:
    """A socket of this process that nudges arrive at."""

    def __init__(self, home: Path) -> None:
        """Make the socket.

        Args:
            home: METAFORGE_HOME.

        Raises:
            OSError: no socket can be made there.
        """
        self._folder = home / FOLDER
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.name = f"{os.getpid()}-{os.urandom(4).hex()}"
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            self.socket.setblocking(False)
            with _address(self._folder, self.name) as address:
                self.socket.bind(address)
        except OSError:
            self.socket.close()
            raise

    def drain(self) -> None:
        """Take everything that has arrived."""
        with suppress(OSError):
            while self.socket.recv(16):
                pass

    def close(self) -> None:
        """Close and remove the socket."""
        self.socket.close()
        with suppress(OSError):
            os.unlink(self._folder / self.name)


@contextmanager
def _address(folder: Path, name: str) -> Iterator[str]:
    """Yield a path of a socket that is short enough, however long the folder's is."""
    path = str(folder / name)
    if len(os.fsencode(path)) <= _LONGEST_ADDRESS_BYTES or not sys.platform.startswith("linux"):
        yield path
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{descriptor}/{name}"
    finally:
        os.close(descriptor)
