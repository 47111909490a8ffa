"""Judge a query before it may run: its length, its words and its parameters. Judged texts are remembered."""

import asyncio
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from metaforge.core.errors import ToolError, ToolTimedOut
from metaforge.twin.query.child import Child, ChildEnded

MAX_TEXT_CHARACTERS = 4000
"""The parser takes about half a millisecond a character."""
PARSE_SECONDS = 15.0
REMEMBERED_COUNT = 512
_MEMORY_MB = 1024

_WRITE_TOOLS = (
    "Record with twin.record_decision, twin.record_constraint_set, twin.record_document, "
    "twin.record_engineering_entity, twin.record_evidence or twin.commit_geometry: they check what they write, "
    "number its revision and keep what was there"
)


@dataclass(frozen=True)
class Judged:
    """A text that may run, and what it names."""

    parameters: tuple[str, ...]
    labels: tuple[str, ...]
    properties: tuple[str, ...]


class ProjectNotBound(ToolError):
    """A call that is scoped to a project did not bind it."""

    def __init__(self, project_id: str) -> None:
        super().__init__(
            f"call context is scoped to project {project_id} but no 'project_id' parameter was bound. Add WHERE "
            f"n.project_id = $project_id and pass {{'project_id': '{project_id}'}}",
            kind="project_not_bound",
        )

    def text(self) -> str:
        return f"twin.query_cypher failed: {super().text()}"


class Gate:
    """Lets reading queries pass.

    Args:
        mutations_allowed: whether the server was started with `--allow-twin-mutations`; told in refusals of writes.
        parse_seconds: a text that takes longer to read is refused, and its process ended.
    """

    def __init__(self, *, mutations_allowed: bool = False, parse_seconds: float = PARSE_SECONDS) -> None:
        self._mutations_allowed = mutations_allowed
        self._parse_seconds = parse_seconds
        self._parser = Child("metaforge.twin.query.parser_process", memory_mb=_MEMORY_MB)
        self._turn = asyncio.Lock()
        self._remembered: OrderedDict[str, Judged | ToolError] = OrderedDict()

    async def judge(self, cypher: str) -> Judged:
        """Return what a text names.

        Raises:
            ToolError: it may not run; the message says why and what to do.
        """
        if len(cypher) > MAX_TEXT_CHARACTERS:
            raise ToolError(
                f"The query has {len(cypher):,} characters; at most {MAX_TEXT_CHARACTERS:,} are read",
                kind="query_too_long", fix="Pass long values as params, and split the question",
            )  # fmt: skip
        if not cypher.strip():
            raise ToolError("The query is empty", kind="query_syntax", fix="Send MATCH (n) RETURN count(n)")
        if cypher not in self._remembered:
            async with self._turn:
                if cypher not in self._remembered:
                    self._remember(cypher, await self._examine(cypher))
        self._remembered.move_to_end(cypher)
        found = self._remembered[cypher]
        if isinstance(found, ToolError):
            raise _again(found)
        return found

    async def reads_only(self, cypher: str) -> bool:
        """Whether a text is one that reads and nothing else, which is all that ever runs."""
        try:
            await self.judge(cypher)
        except ToolError as refusal:
            return refusal.kind != "query_writes"
        return True

    async def close(self) -> None:
        """End the parser's process."""
        await self._parser.end()

    async def _examine(self, cypher: str) -> Judged | ToolError:
        try:
            told = await self._parser.ask({"do": "examine", "text": cypher}, seconds=self._parse_seconds)
        except ToolTimedOut:
            return ToolError(
                f"The query takes longer than {self._parse_seconds:g} s to read", kind="query_too_complex", fix=_SIMPLER
            )
        except ChildEnded as end:
            return ToolError(f"The query cannot be read ({end.how})", kind="query_too_complex", fix=_SIMPLER)
        except ToolError as refusal:
            if refusal.kind in ("query_unavailable", "query_fault"):
                raise
            return self._with_reason(refusal)
        return Judged(tuple(told["parameters"]), tuple(told["labels"]), tuple(told["properties"]))

    def _with_reason(self, refusal: ToolError) -> ToolError:
        if refusal.kind != "query_writes":
            return refusal
        why = ", with --allow-twin-mutations too" if self._mutations_allowed else ""
        return ToolError(f"{refusal.message}{why}", kind=refusal.kind, fix=_WRITE_TOOLS)

    def _remember(self, cypher: str, found: Judged | ToolError) -> None:
        self._remembered[cypher] = found
        if len(self._remembered) > REMEMBERED_COUNT:
            self._remembered.popitem(last=False)


_SIMPLER = "Use fewer brackets inside brackets and shorter expressions"


def check_parameters(judged: Judged, params: Mapping[str, Any]) -> None:
    """Refuse a query whose parameters are not all given.

    Raises:
        ToolError: naming those that are missing.
    """
    missing = [name for name in judged.parameters if name not in params]
    if missing:
        raise ToolError(
            f"The query uses {', '.join('$' + name for name in missing)}, and params does not give "
            f"{'it' if len(missing) == 1 else 'them'}",
            kind="missing_parameter", fix=f"Pass params {{{', '.join(f'{name!r}: ...' for name in missing)}}}",
        )  # fmt: skip


def _again(refusal: ToolError) -> ToolError:
    """Return an error like a remembered one: each is raised once."""
    return ToolError(refusal.message, kind=refusal.kind, fix=refusal.fix, failure_mode=refusal.failure_mode)
