"""Read the record: a node, an item's history, nodes by a property."""

from typing import Annotated, Any

from pydantic import Field

from metaforge.adapters.twin.answers import (
    FoundAnswer,
    HistoryAnswer,
    NodeAnswer,
    item_json,
    node_json,
    revision_json,
)
from metaforge.core.counts import counted
from metaforge.core.errors import InvalidArguments
from metaforge.tools.context import Answer, Invocation
from metaforge.tools.effect import Effect
from metaforge.tools.tool import tool
from metaforge.twin.neighbours import look_around
from metaforge.twin.services import ToolGroup
from metaforge.twin.trace import node_row

MAX_NEIGHBOURS = 100


class Reading(ToolGroup):
    """Tools that change nothing. What they show follows the calling run: its drafts, else approved heads."""

    @tool(
        effect=Effect.READ, capability="twin_read", title="Get a node",
        search_hint="read an item, revision, requirement, evidence or decision of the design record",
    )  # fmt: skip
    async def get_node(
        self,
        ctx: Invocation,
        node_id: str | None = None,
        item_key: str | None = None,
        project_id: str | None = None,
    ) -> Answer[NodeAnswer]:
        """Read one node with its content and its links.

        Args:
            node_id: Node id, or an item key.
            item_key: KEY for what is current, KEY@n for a revision.
            project_id: When several projects have the key.
        """
        ref = _one_of(node_id, item_key, "twin.get_node")

        found = await self.services.read_few(
            ctx, lambda view: look_around(view, ref, MAX_NEIGHBOURS), project_id=project_id
        )
        node, edges = found.node, found.edges
        warnings = (f"More than {MAX_NEIGHBOURS} links; {MAX_NEIGHBOURS} are listed",) if found.more else ()
        suspect_count = sum(1 for edge in edges if "suspect" in edge)
        doubt = f", {suspect_count} of them suspect" if suspect_count else ""
        return Answer(
            NodeAnswer(node_json(node), found.neighbours, edges),
            f"{node.ref}: {node.kind} {node.name[:80]!r}, {node.status}, {counted(len(edges), 'link')}{doubt}.",
            warnings=warnings,
        )

    @tool(
        effect=Effect.READ, capability="twin_read", title="Read an item's history",
        search_hint="revisions, drafts, who changed what and why",
    )  # fmt: skip
    async def item_history(
        self,
        ctx: Invocation,
        item_key: str | None = None,
        node_id: str | None = None,
        project_id: str | None = None,
    ) -> Answer[HistoryAnswer]:
        """Read every revision of an item: status, author, reason, run, and which is current for this caller.

        Args:
            item_key: KEY, such as CAD-BRACKET.
            node_id: Instead: any of its revisions.
            project_id: When several projects have the key.
        """
        ref = _one_of(node_id, item_key, "twin.item_history")
        history = await self.services.read(ctx, lambda view: view.history(ref), project_id=project_id)
        item, current = history.item, history.current
        told = {"revision": current.revision, "node_id": current.node_id, "ref": current.ref} if current else None
        return Answer(
            HistoryAnswer(item_json(item), [revision_json(each, item) for each in history.revisions], told),
            f"{item.key}: {counted(len(history.revisions), 'revision')}, head {item.head_ref or 'none yet'}"
            + (f", current for this run {current.ref}" if current and current.ref != item.head_ref else "")
            + ".",
        )

    @tool(
        effect=Effect.READ, capability="twin_read", title="Find nodes by a property",
        search_hint="search the design record by name, kind, material, mpn",
    )  # fmt: skip
    async def find_by_property(
        self,
        ctx: Invocation,
        node_type: str,
        property: str,
        value: Any,
        limit: Annotated[int, Field(ge=1, le=1000)] = 50,
        project_id: str | None = None,
    ) -> Answer[FoundAnswer]:
        """Find current nodes of a kind in which a property has exactly this value.

        Args:
            node_type: Such as cad_model, constraint_set, design_decision, evidence.
            property: name, status, author, item_key, or one of the content; dots lead inside.
            value: Text, number or boolean.
            limit: At most so many.
            project_id: Another project than the opened one.
        """
        found = await self.services.read(
            ctx, lambda view: view.find(node_type, property, value, limit), project_id=project_id
        )
        return Answer(
            FoundAnswer([node_row(node) for node in found], len(found)),
            f"{len(found)} {node_type} with {property} = {str(value)[:60]}.",
            next_step="twin.get_node with one of the node ids" if found else "",
        )


def _one_of(node_id: str | None, item_key: str | None, tool_id: str) -> str:
    if bool(node_id) == bool(item_key):
        what = "neither was given" if not node_id else "both were given"
        raise InvalidArguments(
            f"{tool_id} takes node_id or item_key; {what}",
            fields={"node_id": "or item_key: one of them", "item_key": "KEY or KEY@n, such as CAD-BRACKET@2"},
        )
    return (node_id or item_key or "").strip()
