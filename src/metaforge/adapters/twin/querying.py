"""Ask the record in Cypher."""

from dataclasses import dataclass
from typing import Any

import orjson

from metaforge.adapters.twin.answers import Row
from metaforge.core.counts import counted
from metaforge.tools.context import Answer, Invocation
from metaforge.tools.effect import Effect
from metaforge.tools.manifest import Need
from metaforge.tools.tool import tool
from metaforge.twin.query.service import Limits
from metaforge.twin.services import ToolGroup

LIBRARIES = (Need("module", "kglite", extra="graph"), Need("module", "graphglot", extra="graph"))
_SHOWN_CHARACTERS = 200


@dataclass(frozen=True)
class QueryRows:
    rows: list[Row]
    count: int
    columns: list[str]
    total_count: int
    truncated: bool = False


class Querying(ToolGroup):
    """Reads only, whatever the text says. Scoped to the caller's project by what there is to read."""

    @tool(
        effect=Effect.READ, capability="twin_read", title="Query the design record in Cypher", needs=LIBRARIES,
        search_hint="graph query, Cypher MATCH, paths, counts and joins over items, revisions and links",
    )  # fmt: skip
    async def query_cypher(
        self,
        ctx: Invocation,
        cypher: str,
        params: dict[str, Any] | None = None,
    ) -> Answer[QueryRows]:
        """Run one reading Cypher query over the project's graph.

        Labels are kinds (cad_model, evidence ...) and Item; relationships are link types in capitals, REVISION_OF,
        HEAD and SUPERSEDES. Revisions have ref, is_current, is_head. Example: MATCH (n:cad_model) WHERE n.project_id =
        $project_id AND n.is_current RETURN n.ref, n.name.

        Args:
            cypher: MATCH, WHERE, WITH, UNWIND, RETURN, ORDER BY, SKIP, LIMIT, UNION; at most 4,000 characters.
            params: Values of $names; project_id where a project is open.
        """
        found = await self.services.queries.query(
            cypher, params, project_id=ctx.project_id, run_id=ctx.run_id,
            seconds=min(Limits.seconds, ctx.timeout_seconds),
        )  # fmt: skip
        count, total = len(found.rows), found.total_count
        rows = counted(total, "row")
        said = rows if count == total else f"The first {count:,} of {rows}"
        first = orjson.dumps(found.rows[0], default=str).decode() if found.rows else ""
        shown = first if len(first) <= _SHOWN_CHARACTERS else f"{first[:_SHOWN_CHARACTERS]} ..."
        return Answer(
            QueryRows(found.rows, count, found.columns, total, count < total),
            f"{said}; the first: {shown}" if first else f"{said} of {', '.join(found.columns)}.",
            warnings=found.warnings,
        )
