"""`LocalSource`: tools the server runs itself, in its own event loop."""

import asyncio
import inspect
from collections.abc import Callable, Coroutine, Generator
from functools import partial
from typing import TYPE_CHECKING, Any

from metaforge.core.build import build
from metaforge.core.errors import FailureMode, ToolError, UnknownTool
from metaforge.engine import faults
from metaforge.engine.outcome import outcome_of
from metaforge.tools.context import Answer, Invocation, Outcome, ProgramVersion
from metaforge.tools.manifest import AdapterManifest, Tool
from metaforge.tools.source import AdapterHealth, AdapterState

if TYPE_CHECKING:
    from metaforge.tools.server import McpToolServer

Run = Callable[[dict[str, Any], Invocation], Any]


class LocalSource:
    """A ToolSource over an in-process adapter, imported at its first call.

    Args:
        manifest: the adapter as its manifest tells it.
        make: makes the adapter, for one that needs parts of the server; by default its class without arguments.
    """

    def __init__(self, manifest: AdapterManifest, make: "Callable[[], McpToolServer] | None" = None) -> None:
        self._manifest = manifest
        self._make = make
        self._server: McpToolServer | None = None
        self._runs: dict[str, Run] = {}

    @property
    def manifest(self) -> AdapterManifest:
        return self._manifest

    @property
    def server(self) -> "McpToolServer":
        """The adapter itself, imported now if it was not yet."""
        if self._server is None:
            if self._make is None:
                from metaforge.tools.run import load

                self._server = load(self._manifest.target)
            else:
                self._server = self._make()
        return self._server

    async def call(self, tool: Tool, arguments: dict[str, Any], invocation: Invocation) -> Outcome:
        """Run one call here. Its method gets the Invocation as `ctx`."""
        run = self._runs.get(tool.id)
        if run is None:
            run = self._runs[tool.id] = self._runner(tool)
        result = run(arguments, invocation)
        if inspect.iscoroutine(result):
            result = await _within(invocation.timeout_seconds, result)
        return result if isinstance(result, Outcome) else self._outcome(tool, result)

    def _runner(self, tool: Tool) -> Run:
        server = self.server
        if (marked := server.marked(tool.id)) is not None:
            return lambda arguments, ctx: marked.method(
                ctx, **(arguments if marked.fits(arguments) else marked.validate(arguments))
            )
        if (handler := server.handler(tool.id)) is not None:
            if len(inspect.signature(handler).parameters) > 1:
                return handler
            return lambda arguments, ctx: handler(arguments)
        raise UnknownTool(f"{tool.adapter_id} does not serve {tool.id} that its manifest names", tool_id=tool.id)

    def _outcome(self, tool: Tool, result: Any) -> Outcome:
        marked = self.server.marked(tool.id)
        if not isinstance(result, Answer):
            return outcome_of(tool, {"data": marked.dump(result) if marked else dict(result)})
        if result.files or result.pictures:
            raise ToolError(
                f"{tool.id} runs inside the server and has no output folder to write files to",
                kind="adapter_fault", failure_mode=FailureMode.ENVIRONMENT,
            )  # fmt: skip
        programs = result.programs
        return build(
            Outcome,
            meta={},
            data=marked.dump(result.data) if marked else dict(result.data),
            summary=result.summary,
            warnings=tuple(result.warnings),
            next_step=result.next_step,
            programs=tuple(ProgramVersion(name, version) for name, version in programs.items()) if programs else (),
        )

    async def health(self, timeout_seconds: float) -> AdapterHealth:
        """It is there as long as the server is."""
        return AdapterHealth(
            adapter_id=self._manifest.adapter_id,
            version=self._manifest.version,
            tools_registered=len(self._manifest.tools),
            reachable=True,
            state=AdapterState.READY if self._server else AdapterState.IDLE,
        )

    def prestart(self) -> None:
        """Nothing to start."""

    async def close(self) -> None:
        """Nothing to end."""


class _Rest:
    """What is left of a coroutine that has waited for the first time, to be awaited in the same task."""

    __slots__ = ("_coroutine", "_waits_for")

    def __init__(self, coroutine: Coroutine[Any, Any, Any], waits_for: Any) -> None:
        self._coroutine = coroutine
        self._waits_for = waits_for

    def __await__(self) -> Generator[Any, Any, Any]:
        waits_for = self._waits_for
        while True:
            try:
                sent = yield waits_for
            except BaseException as fault:  # noqa: BLE001 - handed on to whoever waits
                advance = partial(self._coroutine.throw, fault)
            else:
                advance = partial(self._coroutine.send, sent)
            try:
                waits_for = advance()
            except StopIteration as end:
                return end.value


async def _within(seconds: float, coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Await a coroutine with a deadline; one that never waits pays for no timer."""
    try:
        waits_for = coroutine.send(None)
    except StopIteration as end:
        return end.value
    try:
        async with asyncio.timeout(seconds):
            return await _Rest(coroutine, waits_for)
    except TimeoutError:
        raise faults.deadline_passed(seconds, 0.0) from None
