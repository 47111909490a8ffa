"""A process beside the server that answers one request at a time, and can be ended at any moment."""

import asyncio
import os
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import orjson

from metaforge.core.errors import FailureMode, OverLimit, ToolError, ToolTimedOut
from metaforge.twin.query.frames import HEADER, pack

START_SECONDS = 60.0
IDLE_SECONDS = 300.0


class ChildEnded(Exception):
    """The process ended instead of answering; `how` says by what."""

    def __init__(self, how: str) -> None:
        super().__init__(how)
        self.how = how


class NotRunning(ChildEnded):
    """There is no process, and the request must not start one."""


class Child:
    """Runs one of this package's modules. Started at the first request, and again after its end.

    Args:
        module: what to run; it speaks frames over its standard input and output.
        memory_mb: how much it may allocate once it is up, in MiB.
        idle_seconds: a process unused for this long is ended.
    """

    def __init__(self, module: str, *, memory_mb: int, idle_seconds: float = IDLE_SECONDS) -> None:
        self._module = module
        self._memory_mb = memory_mb
        self._idle_seconds = idle_seconds
        self._process: asyncio.subprocess.Process | None = None
        self._idle: asyncio.TimerHandle | None = None
        self._retiring: asyncio.Task[None] | None = None
        self._busy = False

    @property
    def alive(self) -> bool:
        """Whether it runs, with all it was told."""
        return self._process is not None and self._process.returncode is None

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    async def ask(self, request: Mapping[str, Any], *, seconds: float, start: bool = True) -> dict[str, Any]:
        """Return the answer to one request. The caller sends one at a time.

        Args:
            request: `do` names the handler.
            seconds: when it has not answered by then, or the caller is cancelled, the process is ended.
            start: whether to start the process if it does not run; what it was told before is gone then.

        Raises:
            ToolTimedOut: it took longer.
            ChildEnded: it ended, most likely over its memory; NotRunning where it had before.
            ToolError: it refused; or its code failed.
        """
        if self._busy:
            raise RuntimeError("a child answers one request at a time")
        if not (start or self.alive):
            raise NotRunning("it does not run")
        self._busy = True
        try:
            async with asyncio.timeout(seconds):
                answer = await self._exchange(pack(request))
        except TimeoutError:
            await self.end()
            raise ToolTimedOut(
                f"No answer within {seconds:g} s, and the process was ended",
                kind="query_timeout", fix="Ask for less", failure_mode=FailureMode.LIMIT,
            ) from None  # fmt: skip
        except BaseException:
            await self.end()
            raise
        finally:
            self._busy = False
        self._rest()
        if refused := answer.get("refused"):
            error = OverLimit if refused["kind"] == "query_memory" else ToolError
            raise error(refused["message"], kind=refused["kind"], fix=refused["fix"])
        if fault := answer.get("fault"):
            raise ToolError(
                f"The query could not be run: {fault[:500]}",
                kind="query_fault", failure_mode=FailureMode.ENVIRONMENT, fix="Ask in simpler words",
            )  # fmt: skip
        return answer

    async def end(self) -> None:
        """End the process and see it gone. It may be started again."""
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None
        if self._retiring is not None and self._retiring is not asyncio.current_task():
            await asyncio.wait([self._retiring])
        process, self._process = self._process, None
        if process is None:
            return
        with suppress(ProcessLookupError):
            process.kill()
        if process.stdin is not None:
            process.stdin.close()
        await asyncio.shield(process.wait())

    async def _exchange(self, request: bytes) -> dict[str, Any]:
        if not self.alive:
            await self._start()
        process = self._process
        assert process is not None
        assert process.stdin is not None
        try:
            process.stdin.write(request)
            await process.stdin.drain()
            return await self._answer()
        except (asyncio.IncompleteReadError, BrokenPipeError, ConnectionResetError):
            raise ChildEnded(_how(await process.wait())) from None

    async def _answer(self) -> dict[str, Any]:
        assert self._process is not None
        assert self._process.stdout is not None
        stdout = self._process.stdout
        size = HEADER.unpack(await stdout.readexactly(HEADER.size))[0]
        answer: dict[str, Any] = orjson.loads(await stdout.readexactly(size))
        return answer

    async def _start(self) -> None:
        await self.end()
        self._process = await asyncio.create_subprocess_exec(
            sys.executable, "-P", "-s", "-m", self._module, str(self._memory_mb),
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
            cwd="/", start_new_session=True, limit=1 << 20,
            env={"PATH": os.defpath, "LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1", "MALLOC_ARENA_MAX": "2"},
        )  # fmt: skip
        try:
            await self._answer()
        except asyncio.IncompleteReadError:
            status = await self._process.wait()
            raise ToolError(
                f"{self._module} does not start (exit status {status})",
                kind="query_unavailable", failure_mode=FailureMode.ENVIRONMENT,
                fix='Install it again: pip install "metaforge[graph]"',
            ) from None  # fmt: skip

    def _rest(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
        loop = asyncio.get_running_loop()
        self._idle = loop.call_later(self._idle_seconds, self._retire)

    def _retire(self) -> None:
        if not self._busy:
            self._retiring = asyncio.get_running_loop().create_task(self.end())


def _how(status: int) -> str:
    if status < 0:
        with suppress(ValueError):
            return signal.Signals(-status).name
    return f"exit status {status}"
