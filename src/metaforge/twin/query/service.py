"""Answer Cypher queries: the gate judges the text, and a process with a copy of the reader's graph runs it.

A graph holds one project as one reader sees it, drafts of the reader's run included. Another project's rows are not in
that process, whatever a query says. Graphs are kept at the changelog's position and brought forward by what changed.
"""

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from metaforge.core.errors import FailureMode, OverLimit, ToolError
from metaforge.store.blobs import Blobs
from metaforge.twin.model import Reader
from metaforge.twin.query import reading
from metaforge.twin.query.answer import QueryAnswer, answer_of
from metaforge.twin.query.child import Child, ChildEnded, NotRunning
from metaforge.twin.query.gate import Gate, ProjectNotBound, check_parameters
from metaforge.twin.query.reading import Batch
from metaforge.twin.store import TwinStore

BUILD_SECONDS = 120.0
_GRACE_SECONDS = 2.0


@dataclass(frozen=True)
class Limits:
    """How far queries may go.

    Attributes:
        rows_count, answer_bytes: what one answer holds at most.
        seconds: how long one query may run on the graph.
        memory_mb: what one graph and the queries on it may use, in MiB.
        graphs_count: graphs kept at once.
    """

    rows_count: int = 1000
    answer_bytes: int = 1 << 20
    seconds: float = 10.0
    memory_mb: int = 1536
    graphs_count: int = 4


@dataclass
class _Graph:
    child: Child
    at: dict[str, int] = field(default_factory=dict)
    """The changelog's position in each project; empty while there is no graph."""
    damaged: list[str] = field(default_factory=list)
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)


class TwinQueries:
    """Cypher over the design record, for one event loop.

    Args:
        store: the design record.
        blobs: where long bodies are kept.
        mutations_allowed: whether the server was started with `--allow-twin-mutations`.
    """

    def __init__(
        self, store: TwinStore, blobs: Blobs, *, mutations_allowed: bool = False, limits: Limits | None = None
    ) -> None:
        self._store = store
        self._blobs = blobs
        self._limits = limits or Limits()
        self._gate = Gate(mutations_allowed=mutations_allowed)
        self._graphs: OrderedDict[tuple[str, str], _Graph] = OrderedDict()

    async def query(
        self,
        cypher: str,
        params: Mapping[str, Any] | None = None,
        *,
        project_id: str = "",
        run_id: str = "",
        seconds: float = Limits.seconds,
    ) -> QueryAnswer:
        """Return the rows of one reading query.

        Args:
            cypher: one statement, at most 4,000 characters.
            params: values of its `$name` parameters; `project_id` must be there in a scoped call.
            project_id: the project the call is scoped to, from the call context; empty where it is not.
            run_id: the calling run, from the call context: its own drafts are seen.
            seconds: how long it may run, where that is less than the limit.

        Raises:
            ToolError: the query may not run, is over a limit, or failed; the message says what to do.
        """
        params = dict(params or {})
        scope = _scope(project_id, params)
        judged = await self._gate.judge(cypher)
        check_parameters(judged, params)
        graph = self._graph((scope, run_id))
        limits = self._limits
        request = {
            "do": "query", "cypher": cypher, "params": params, "rows_count": limits.rows_count,
            "max_bytes": limits.answer_bytes, "seconds": min(limits.seconds, seconds),
            "labels": judged.labels, "properties": judged.properties,
        }  # fmt: skip
        async with graph.turn:
            try:
                told = await self._ask(graph, Reader(run_id, scope), request)
            except ChildEnded as end:
                raise OverLimit(
                    f"The graph and the query on it used more than {limits.memory_mb:,} MiB: ended by {end.how}",
                    kind="query_memory", failure_mode=FailureMode.LIMIT,
                    fix="Bound paths (*1..4), filter earlier, or aggregate",
                ) from None  # fmt: skip
        return answer_of(told, graph.damaged)

    async def reads_only(self, cypher: str) -> bool:
        """Whether a text only reads, for who decides if a call must be held."""
        return await self._gate.reads_only(cypher)

    async def close(self) -> None:
        """End every process."""
        graphs, self._graphs = self._graphs, OrderedDict()
        await self._gate.close()
        await asyncio.gather(*(graph.child.end() for graph in graphs.values()))

    def _graph(self, key: tuple[str, str]) -> _Graph:
        if key in self._graphs:
            self._graphs.move_to_end(key)
            return self._graphs[key]
        made = self._graphs[key] = _Graph(Child("metaforge.twin.query.graph_process", memory_mb=self._limits.memory_mb))
        return made

    async def _ask(self, graph: _Graph, reader: Reader, request: Mapping[str, Any]) -> dict[str, Any]:
        while True:
            await self._bring_forward(graph, reader)
            try:
                # The engine stops itself; the process is ended where it does not.
                return await graph.child.ask(request, seconds=request["seconds"] + _GRACE_SECONDS, start=False)
            except NotRunning:
                continue

    async def _make_room(self, keep: _Graph) -> None:
        for key, graph in list(self._graphs.items()):
            if len(self._graphs) <= self._limits.graphs_count:
                return
            if graph is not keep and not graph.turn.locked():
                del self._graphs[key]
                await graph.child.end()

    async def _bring_forward(self, graph: _Graph, reader: Reader) -> None:
        if not graph.child.alive:
            graph.at = {}
            await self._make_room(graph)
        loop = asyncio.get_running_loop()
        stop = threading.Event()

        def send(batch: Batch) -> dict[str, Any]:
            if stop.is_set():
                raise ChildEnded("it was no longer wanted")
            asking = graph.child.ask(batch.request(), seconds=BUILD_SECONDS, start=batch.clear)
            return asyncio.run_coroutine_threadsafe(asking, loop).result()

        reading_rows = asyncio.ensure_future(asyncio.to_thread(_read, self._store, self._blobs, graph, reader, send))
        try:
            await asyncio.shield(reading_rows)
        except BaseException:
            stop.set()
            graph.at = {}
            if not reading_rows.done():
                await graph.child.end()
                await asyncio.wait([reading_rows])
                reading_rows.exception()
            raise


def _read(store: TwinStore, blobs: Blobs, graph: _Graph, reader: Reader, send: Any) -> None:
    """Bring a graph to the record's present state, in a thread of its own."""
    with store.read(reader) as view:
        projects = reading.projects_of(view, reader.project_id)
        now = reading.positions(view, projects)
        if graph.at == now:
            return
        if graph.at.keys() == now.keys():
            batch = reading.changed(view, blobs, graph.at)
            if batch is not None and (batch.is_empty or not send(batch)["gone"]):
                graph.damaged += batch.damaged
                graph.at = now
                return
        graph.at, graph.damaged = {}, []
        for batch in reading.everything(view, blobs, projects):
            send(batch)
            graph.damaged += batch.damaged
        graph.at = now


def _scope(project_id: str, params: Mapping[str, Any]) -> str:
    """Return the project that a query is about, or an empty text for all of them."""
    bound = params.get("project_id")
    if not project_id:
        return bound if isinstance(bound, str) else ""
    if "project_id" not in params:
        raise ProjectNotBound(project_id)
    if bound != project_id:
        raise ToolError(
            f"call context is scoped to project {project_id}, and params binds project_id {str(bound)[:80]!r}",
            kind="other_project", fix=f"Bind {project_id!r}, or open the other project first",
        )  # fmt: skip
    return project_id
