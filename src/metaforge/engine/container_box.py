"""A worker in a container: what the engine's client, the container's first process and the engine know of it."""

import asyncio
import os
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

from metaforge.core.errors import ToolUnavailable
from metaforge.engine import processes, sandbox
from metaforge.engine.box import Box
from metaforge.engine.container_cgroup import joined
from metaforge.engine.container_engine import ContainerEngine
from metaforge.engine.container_options import MAX_PROCESSES, NAME_VARIABLE, Plan
from metaforge.tools.guard import OUT_OF_MEMORY


class ContainerBox(Box):
    """A worker in a container. The process here is the engine's client, whose end ends nothing.

    What is inside has a first process, whose end ends all of it. Where its number is known here and it may be
    signalled, it is ended by a signal; the engine is told to remove the container in any case.
    """

    def __init__(self, popen: "subprocess.Popen[bytes]", engine: ContainerEngine, plan: Plan, folder: Path) -> None:
        super().__init__(
            popen, folder=folder, output=plan.output, output_inside=sandbox.OUTPUT_INSIDE, boxed=True, group=None,
            memory_mb=plan.memory_mb, max_processes=MAX_PROCESSES,
        )  # fmt: skip
        self.name = plan.name
        self._engine = engine
        self._plan = plan
        self._first = 0
        self._was_ended = False

    def settle(self) -> None:
        """Find the container's first process, now that it has spoken."""
        if self._first_inside is not None or self._first or self.exited.done():
            return
        if self._engine.name == "podman":
            self._meet(_read_number(self._plan.pid_file))
            return
        asking = asyncio.get_running_loop().run_in_executor(None, self._ask_process)
        asking.add_done_callback(lambda asked: self._meet(asked.result()))

    def _ask_process(self) -> int:
        with suppress(ToolUnavailable):
            return self._engine.process_of(self.name)
        return 0

    def _meet(self, pid: int) -> None:
        """Take a process for the container's first when it is: its number may be another machine's."""
        if pid <= 1 or not hasattr(os, "pidfd_open") or self._was_ended:
            return
        with suppress(OSError):
            descriptor = os.pidfd_open(pid)
            try:
                variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
                signal.pidfd_send_signal(descriptor, 0)
            except OSError:
                os.close(descriptor)
                raise
            if f"{NAME_VARIABLE}={self.name}".encode() not in variables:
                os.close(descriptor)
                return
            self._first, self._first_inside = pid, descriptor
            self.group = joined(pid, self._plan.memory_mb)
            if self.group is not None and self.memory_mb != self._plan.memory_mb:
                # A call that has a limit of its own may have begun.
                self.group.limit_memory(self.memory_mb)

    def processes(self) -> list[int]:
        """Return the ids of the container's processes; none where they are not this machine's to see."""
        return processes.tree(self._first) if self._first else []

    def memory_was_short(self) -> bool:
        """Return whether the kernel killed a process of this box for memory since this was last asked."""
        # Its group is gone with the container: what was inside has counted.
        return super().memory_was_short() or (self.exited.done() and self.exited.result() == OUT_OF_MEMORY)

    def freeze(self) -> None:
        """Stop every process of the box."""
        if self._first:
            super().freeze()
        else:
            self._engine.ask("pause", self.name)

    def thaw(self) -> None:
        """Let them go on."""
        if self._first:
            super().thaw()
        else:
            self._engine.ask("unpause", self.name)

    async def _end(self) -> None:
        self.settle()
        self._was_ended = True
        if not self._first:
            # Its client may still be at making it, and would go on when the container is removed.
            await super()._end()
            await asyncio.to_thread(self._remove_container)
            return
        removing = asyncio.get_running_loop().run_in_executor(None, self._remove_container)
        await super()._end()
        await removing

    def _remove_container(self) -> None:
        with suppress(ToolUnavailable):
            self._engine.remove([self.name])


def _read_number(path: Path | None) -> int:
    try:
        return int(path.read_text()) if path is not None else 0
    except (OSError, ValueError):
        return 0
