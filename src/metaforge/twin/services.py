"""What in-process tools need of the server to read and write the design record."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from metaforge.core.errors import FailureMode, ToolError
from metaforge.record.queries import CallLog
from metaforge.store.blobs import Blobs
from metaforge.store.location import StoreUnavailable
from metaforge.tools.context import Invocation
from metaforge.twin.change import Change
from metaforge.twin.evidence import Cited, cite
from metaforge.twin.measuring import Measurer
from metaforge.twin.model import Reader
from metaforge.twin.query.service import TwinQueries
from metaforge.twin.scopes import ClientScopes
from metaforge.twin.staging import stage
from metaforge.twin.store import TwinStore
from metaforge.twin.view import View

T = TypeVar("T")
SETTLE_SECONDS = 20.0
"""How long evidence waits for the files of the calls that it cites to reach an object store."""


@dataclass(frozen=True)
class TwinServices:
    """The record and what surrounds it. Work on the record runs in threads: a disk may make it wait."""

    store: TwinStore
    blobs: Blobs
    calls: CallLog
    scopes: ClientScopes
    measurer: Measurer
    workspace: Path
    mutations_allowed: bool = False
    """Whether the server was started with `--allow-twin-mutations`."""

    @cached_property
    def queries(self) -> TwinQueries:
        """What answers Cypher; its processes are started at the first query."""
        return TwinQueries(self.store, self.blobs, mutations_allowed=self.mutations_allowed)

    async def close(self) -> None:
        """End what was started."""
        if "queries" in self.__dict__:
            await self.queries.close()

    async def read(self, ctx: Invocation, work: Callable[[View], T], *, project_id: str | None = None) -> T:
        """Run `work` on what the caller sees of the record.

        Args:
            ctx: who calls, in which run and project.
            work: reads only; nothing of the view may be used after it returns.
            project_id: a project named by the caller, instead of the one it opened.

        Raises:
            ToolError: what `work` raises, or `store_unavailable`.
        """
        reader = Reader(ctx.run_id, project_id or ctx.project_id)

        def look() -> T:
            with self.store.read(reader) as view:
                return work(view)

        return await in_thread(look)

    async def read_few(self, ctx: Invocation, work: Callable[[View], T], *, project_id: str | None = None) -> T:
        """Do as `read` for work on a few rows: without the detour through a thread where that costs more than it."""
        if not self.store.answers_at_once:
            return await self.read(ctx, work, project_id=project_id)
        try:
            with self.store.read(Reader(ctx.run_id, project_id or ctx.project_id)) as view:
                return work(view)
        except StoreUnavailable as fault:
            raise _unavailable(fault) from None

    async def change(
        self,
        ctx: Invocation,
        work: Callable[[Change], T],
        *,
        project_id: str | None = None,
        reason: str = "",
        durable: bool = True,
    ) -> T:
        """Run `work` in one change, written when this returns or not at all.

        The author and the run are the caller's, as the server knows them. `work` may run several times, and must write
        the same each time.

        Raises:
            ToolError: what `work` raises, or `store_unavailable`.
        """

        def write() -> T:
            return self.store.perform(
                work, author=ctx.caller.actor_id, reason=reason, run_id=ctx.run_id,
                project_id=project_id or ctx.project_id, durable=durable,
            )  # fmt: skip

        return await in_thread(write)

    async def cite(self, call_ids: Sequence[str]) -> Cited:
        """Look up calls that evidence cites, and see that their files are where they belong.

        Raises:
            ToolError: `unknown_call`, `call_not_usable`.
        """

        def look() -> Cited:
            found = cite(self.calls, call_ids)
            return replace(found, waiting=self.blobs.settle(found.artefacts, seconds=SETTLE_SECONDS))

        return await in_thread(look) if call_ids else Cited((), frozenset())

    async def keep(self, content: bytes) -> str:
        """Keep a file's content and return its SHA-256."""
        return await in_thread(lambda: self.blobs.put_bytes(content))

    async def stage(self, sha256: str, path: str, ref: str) -> int:
        """Put a kept content into the workspace and return its size in bytes.

        Raises:
            ToolError: `content_missing`, `content_corrupt`, `file_exists` where the path holds something else.
        """
        return await in_thread(lambda: stage(self.blobs, self.workspace, sha256, path, ref))


class ToolGroup:
    """Tools of one adapter that share the services. Without services they can be described and not called."""

    def __init__(self, services: TwinServices | None) -> None:
        self._services = services

    @property
    def services(self) -> TwinServices:
        if self._services is None:
            raise RuntimeError("these tools run inside a server, which gives them its design record")
        return self._services


async def in_thread(work: Callable[[], T]) -> T:
    """Run blocking work on the record in a thread; raises ToolError `store_unavailable`, or what it raises."""
    # A write that has begun is finished and answered for, even if its caller goes away meanwhile.
    task = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise
    except StoreUnavailable as fault:
        raise _unavailable(fault) from None


def _unavailable(fault: StoreUnavailable) -> ToolError:
    return ToolError(fault.message, kind="store_unavailable", failure_mode=FailureMode.ENVIRONMENT)
