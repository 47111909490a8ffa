"""One item or record: what it is, its revisions, its links, and its shape where it has one."""

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from metaforge.twin.baseline_diff import diff_nodes
from metaforge.twin.model import Node
from metaforge.twin.requirements import words
from metaforge.twin.trace import Edge, Thread, thread_for
from metaforge.twin.view import View
from metaforge.web.pages.approval_view import SHAPES, field_rows
from metaforge.web.pages.projects import project_of
from metaforge.web.pages.site import Site
from metaforge.web.pages.words import spoken
from metaforge.web.services import Services

MAX_LINKS = 200
_TOLD_APART = ("constraints", "measured", "assembly", "content_hash", "format", "media_type", "size_bytes", "content")


class ItemPages:
    """The pages below `/projects/{id}/items`."""

    def __init__(self, services: Services, site: Site) -> None:
        self._services = services
        self._site = site

    async def shown(self, request: Request) -> Response:
        """Show a revision of an item, or a record: KEY, KEY@n or a node id."""
        project_id, ref = request.path_params["project_id"], request.path_params["ref"]

        def look(view: View) -> dict[str, Any]:
            project, own = project_of(view, project_id), view.of_project(project_id)
            node = own[ref]
            thread = thread_for(own, node.ref, 1, direction="both", limit=MAX_LINKS)
            return {
                "project": project, "node": node, "history": own.history(node.node_id) if node.item_id else None,
                "links": _links(thread, node),
            }  # fmt: skip

        told = await self._services.read(look, project_id=project_id)
        node: Node = told["node"]
        shape = str(node.body.get("content_hash") or "") if node.body.get("format") in SHAPES else ""
        values = told | {
            "title": f"{node.name or node.ref}", "section": "projects", "shape": shape, "facts": _facts(node),
            "measured": _measured(node), "requirements": _requirements(node), "parts": _parts(node),
            "text": str(node.body.get("content") or ""), "model_id": "model",
        }  # fmt: skip
        return await self._site.page(request, "item.html", values, model=bool(shape))

    async def compared(self, request: Request) -> Response:
        """Show what differs between two revisions of an item."""
        project_id, key = request.path_params["project_id"], request.path_params["ref"]
        query = request.query_params

        def look(view: View) -> dict[str, Any]:
            project, own = project_of(view, project_id), view.of_project(project_id)
            history = own.history(key)
            there = [each.revision for each in history.revisions if each.revision is not None]
            after = own.revision(history.item.key, _number(query.get("to"), there[-1]))
            older = [each for each in there if each < (after.revision or 0)]
            before = own.revision(history.item.key, _number(query.get("from"), older[-1] if older else there[0]))
            return {"project": project, "history": history, "before": before, "after": after}

        told = await self._services.read(look, project_id=project_id)
        before, after = told["before"], told["after"]
        fields = field_rows(diff_nodes(before, after))
        shapes = [(each.ref, str(each.body["content_hash"])) for each in (before, after)
                  if each.body.get("format") in SHAPES and each.body.get("content_hash")]  # fmt: skip
        values = told | {
            "title": f"{before.ref} and {after.ref}", "section": "projects", "fields": fields, "shapes": shapes,
        }  # fmt: skip
        return await self._site.page(request, "revisions.html", values, model=bool(shapes))


def _number(text: str | None, otherwise: int) -> int:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 9 else otherwise


def _links(thread: Thread, node: Node) -> list[dict[str, Any]]:
    names = {each.node_id: each for each in thread.nodes}
    return [_link(edge, names, node) for edge in thread.edges if edge.link.type != "supersedes"]


def _link(edge: Edge, nodes: Mapping[str, Node], node: Node) -> dict[str, Any]:
    link = edge.link
    outgoing = link.source_subject == node.subject
    other = nodes[link.target_node_id if outgoing else link.source_node_id]
    return {
        "type": spoken(link.type), "outgoing": outgoing, "other": other, "suspect": edge.suspect,
        "about": ", ".join(f"{spoken(name)} {value}" for name, value in link.body.items()),
        "own_ref": edge.source_ref if outgoing else edge.target_ref,
    }  # fmt: skip


def _facts(node: Node) -> dict[str, Any]:
    return {name: value for name, value in node.body.items()
            if name not in _TOLD_APART and value not in (None, "", [], {})}  # fmt: skip


def _measured(node: Node) -> dict[str, Any]:
    found = node.body.get("measured")
    return dict(found) if isinstance(found, Mapping) else {}


def _requirements(node: Node) -> list[dict[str, str]]:
    return [
        {"name": str(each.get("name", "")), "demand": words(each), "severity": str(each.get("severity") or "error")}
        for each in node.body.get("constraints") or ()
        if isinstance(each, Mapping)
    ]


def _parts(node: Node) -> list[Mapping[str, Any]]:
    assembly = node.body.get("assembly")
    found = assembly.get("parts") if isinstance(assembly, Mapping) else None
    return [each for each in found or () if isinstance(each, Mapping)][:200]
