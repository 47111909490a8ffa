"""A running worker process with everything below it: its pipes, what it uses, and its certain end."""

import asyncio
import os
import signal
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from metaforge.engine import processes
from metaforge.engine.cgroups import Group
from metaforge.engine.removal import remove_tree
from metaforge.tools.folder import EmptyFolder
from metaforge.tools.guard import descendants

_STDERR_BYTES = 64 << 10
_GUARD_SECONDS = 0.7
_CERTAIN_SECONDS = 5.0
_LAST_WORDS_SECONDS = 0.2


class Box:
    """Owns a process. Made by a launcher; `open` must be awaited before use.

    Args:
        popen: the process, with pipes for stdin, stdout and stderr.
        folder: its own folder on this machine, removed with it.
        output: where its tools write, on this machine.
        output_inside: the same folder as the worker sees it.
        boxed: whether a PID namespace ends all its processes with the first.
        group: its control group.
        memory_mb: the memory all its processes may use together, in MiB.
        max_processes: how many of them there may be.
    """

    def __init__(
        self,
        popen: "subprocess.Popen[bytes]",
        *,
        folder: Path,
        output: Path,
        output_inside: str,
        boxed: bool,
        group: Group | None,
        memory_mb: int,
        max_processes: int,
    ) -> None:
        self.pid = popen.pid
        self.output = output
        self._output_check = EmptyFolder(output)
        self.output_inside = output_inside
        self.memory_mb = memory_mb
        self.max_processes = max_processes
        self.group = group
        self._popen = popen
        self.folder = folder
        self._boxed = boxed
        self._first_inside: int | None = None
        self._stderr = bytearray()
        self._memory_kills = 0
        loop = asyncio.get_running_loop()
        self.exited: asyncio.Future[int] = loop.create_future()
        self._stderr_closed: asyncio.Future[None] = loop.create_future()
        self._ending: asyncio.Task[None] | None = None
        self._removing: asyncio.Task[None] | None = None
        self._transports: list[asyncio.BaseTransport] = []
        self._stdin: asyncio.WriteTransport | None = None
        self._stdin_descriptor = -1

    async def open(self, on_stdout: Callable[[bytes], None], on_closed: Callable[[], None]) -> None:
        """Connect the pipes; `on_stdout` gets bytes as they come, `on_closed` is called at their end."""
        loop = asyncio.get_running_loop()
        self._watch_exit(loop)
        connecting = loop.create_task(self._connect(on_stdout, on_closed))
        try:
            await asyncio.shield(connecting)
        except asyncio.CancelledError:
            # A transport that is cut off while it is made closes its pipe, and so would we: perhaps somebody else's.
            await asyncio.wait([connecting])
            raise

    async def _connect(self, on_stdout: Callable[[bytes], None], on_closed: Callable[[], None]) -> None:
        loop = asyncio.get_running_loop()
        popen = self._popen
        reading, _ = await loop.connect_read_pipe(lambda: _Reading(on_stdout, on_closed), popen.stdout)
        errors, _ = await loop.connect_read_pipe(lambda: _Reading(self._keep_stderr, self._close_stderr), popen.stderr)
        writing, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, popen.stdin)
        self._stdin = writing
        self._stdin_descriptor = popen.stdin.fileno()  # type: ignore[union-attr]
        os.set_blocking(self._stdin_descriptor, False)
        self._transports = [reading, errors, writing]

    def write(self, data: bytes) -> None:
        """Send bytes to the worker's stdin, in the background."""
        stdin = self._stdin
        if stdin is None or stdin.is_closing():
            return
        if not stdin.get_write_buffer_size():
            # Straight into the pipe where it takes all of it: an event loop's own way there costs as much again.
            with suppress(BlockingIOError, BrokenPipeError):
                data = data[os.write(self._stdin_descriptor, data) :]
        if data:
            stdin.write(data)

    def settle(self) -> None:
        """Note the namespace's first process, now that it exists: its end is the end of them all."""
        if self._boxed and self._first_inside is None:
            first = next(iter(descendants(self.pid)), None)
            if first is not None:
                with suppress(OSError):
                    self._first_inside = os.pidfd_open(first)

    def processes(self) -> list[int]:
        """Return the ids of the box's processes."""
        return processes.tree(self.pid)

    def freeze(self) -> None:
        """Stop every process of the box, those included that are started meanwhile."""
        stopped: set[int] = set()
        while fresh := set(self.processes()) - stopped:
            for pid in fresh:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGSTOP)
            stopped |= fresh

    def thaw(self) -> None:
        """Let them go on."""
        for pid in self.processes():
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGCONT)

    def memory_was_short(self) -> bool:
        """Return whether the kernel killed a process of this box for memory since this was last asked."""
        if self.group is None:
            return False
        kills = self.group.memory_kills()
        more, self._memory_kills = kills > self._memory_kills, kills
        return more

    def limit_memory(self, memory_mb: int) -> None:
        """Set how much memory all processes together may use, for the next call."""
        if memory_mb != self.memory_mb:
            self.memory_mb = memory_mb
            if self.group is not None:
                with suppress(OSError):
                    self.group.limit_memory(memory_mb)

    def empty_output(self) -> None:
        """Remove everything from the output folder; the next call finds it empty."""
        try:
            if self._output_check.is_empty():
                return
        except FileNotFoundError:
            return
        with os.scandir(self.output) as entries:
            left = list(entries)
        for entry in left:
            if entry.is_dir(follow_symlinks=False):
                remove_tree(Path(entry.path))
            else:
                with suppress(FileNotFoundError):
                    os.unlink(entry.path)

    async def last_words(self) -> str:
        """Return the end of stderr, once all of it is here."""
        await asyncio.wait([self._stderr_closed], timeout=_LAST_WORDS_SECONDS)
        return self._stderr.decode("utf-8", "replace")

    async def end(self) -> None:
        """End every process of the box and see them gone; its output folder stays."""
        if self._ending is None:
            self._ending = asyncio.get_running_loop().create_task(self._end())
        await asyncio.shield(self._ending)

    async def kill(self) -> None:
        """End every process of the box, see them gone, and remove what it left. May be called again."""
        if self._removing is None:
            self._removing = asyncio.get_running_loop().create_task(self._remove())
        await asyncio.shield(self._removing)

    async def _remove(self) -> None:
        await self.end()
        # A tool can leave a hundred thousand files; the other calls go on meanwhile.
        await asyncio.to_thread(remove_tree, self.folder)
        if self.group is not None:
            self.group.remove()

    async def _end(self) -> None:
        self.settle()
        if not self.exited.done():
            self._send_end()
            await asyncio.wait([self.exited], timeout=_CERTAIN_SECONDS if self._boxed else _GUARD_SECONDS)
        if not self.exited.done():
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
            await asyncio.wait([self.exited], timeout=_CERTAIN_SECONDS)
        await self._see_namespace_end()
        for transport in self._transports:
            if not transport.is_closing():
                transport.close()
        # Transports close their pipes in the loop's next round.
        await asyncio.sleep(0)
        for pipe in (self._popen.stdin, self._popen.stdout, self._popen.stderr):
            if pipe is not None:
                pipe.close()

    def _send_end(self) -> None:
        if self._first_inside is not None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._first_inside, signal.SIGKILL)
        # Without a namespace the process is the guard, which ends what is below it and then itself.
        number = signal.SIGKILL if self._boxed else signal.SIGTERM
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)

    async def _see_namespace_end(self) -> None:
        if self._first_inside is None:
            return
        descriptor, self._first_inside = self._first_inside, None
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        await _readable(descriptor)
        os.close(descriptor)

    def _watch_exit(self, loop: asyncio.AbstractEventLoop) -> None:
        if not hasattr(os, "pidfd_open"):
            waiting = loop.run_in_executor(None, self._popen.wait)
            waiting.add_done_callback(lambda done: self._note_exit(done.result()))
            return
        descriptor = os.pidfd_open(self.pid)

        def ended() -> None:
            loop.remove_reader(descriptor)
            os.close(descriptor)
            self._note_exit(self._popen.wait())

        loop.add_reader(descriptor, ended)

    def _note_exit(self, status: int) -> None:
        if not self.exited.done():
            self.exited.set_result(status)

    def _keep_stderr(self, chunk: bytes) -> None:
        self._stderr += chunk
        del self._stderr[:-_STDERR_BYTES]

    def _close_stderr(self) -> None:
        if not self._stderr_closed.done():
            self._stderr_closed.set_result(None)


class _Reading(asyncio.Protocol):
    def __init__(self, on_bytes: Callable[[bytes], None], on_closed: Callable[[], None]) -> None:
        self.data_received = on_bytes  # type: ignore[method-assign,assignment]
        self._on_closed = on_closed

    def connection_lost(self, fault: Exception | None) -> None:
        self._on_closed()


async def _readable(descriptor: int) -> None:
    """Wait until a process descriptor says that its process is gone."""
    loop = asyncio.get_running_loop()
    gone: asyncio.Future[None] = loop.create_future()

    def note() -> None:
        loop.remove_reader(descriptor)
        if not gone.done():
            gone.set_result(None)

    loop.add_reader(descriptor, note)
    await asyncio.wait([gone], timeout=_CERTAIN_SECONDS)
    if not gone.done():
        loop.remove_reader(descriptor)
