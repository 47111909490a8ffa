"""`metaforge twin list`, `history`, `diff` and `prd`."""

import re
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from metaforge.cli.screen import console, print_json, scalar
from metaforge.cli.twin_record import plain, read, when
from metaforge.core.counts import counted
from metaforge.twin.baseline_diff import BaselineDiff, diff_baselines, diff_nodes
from metaforge.twin.baselines import NOW, baselines
from metaforge.twin.difference import ABSENT, FieldChange
from metaforge.twin.links import Suspect, suspects
from metaforge.twin.model import History, Item, Node, Project
from metaforge.twin.view import View

STATUS_STYLES = {"draft": "yellow", "rejected": "red", "abandoned": "dim", "approved": "green"}
_SHOWN_CHARS = 160
_DIGEST = re.compile("[0-9a-f]{64}")


def show_list(project: str, *, as_json: bool) -> int:
    """List a project's items, or the projects where there are several and none is named. Returns the exit status."""
    from metaforge.cli.twin_record import read_projects

    rows = None if project else read_projects()
    if rows is not None and len(rows) != 1:
        return _show_projects(rows, as_json=as_json)
    found = read(project, lambda view, of: (of, list(view.items())))
    if found is None:
        return 1
    of, items = found
    if as_json:
        print_json({"project": _project_row(of), "items": [_item_row(item) for item in items]})
        return 0
    out = console()
    out.print(f"{plain(of.name)}  ({of.project_id})", style="bold")
    out.print(table_of(("item", "head", "kind", "name"), [
        (item.key, f"@{item.head_revision}" if item.head_revision else "draft", item.kind, plain(item.name))
        for item in items
    ]) if items else "It has no items yet.")  # fmt: skip
    return 0


def _show_projects(rows: Sequence[dict[str, Any]], *, as_json: bool) -> int:
    if as_json:
        print_json({"projects": rows})
        return 0
    cells = [(row["id"], str(row["item_count"]), when(row["last_updated"]), plain(row["name"])) for row in rows]
    table = table_of(("project", "items", "last change", "name"), cells)
    console().print(table if rows else "There are no projects yet: metaforge call project.create name=...")
    return 0


def show_history(key: str, project: str, *, as_json: bool) -> int:
    """Show an item's revisions. Returns the exit status."""

    def look(view: View, _: Project) -> tuple[History, list[Suspect]]:
        history = view.history(key)
        return history, suspects(view, history.item.item_id)

    found = read(project, look)
    if found is None:
        return 1
    history, doubtful = found
    if as_json:
        rows = [_revision_row(node, history) for node in history.revisions]
        print_json({"item": _item_row(history.item), "revisions": rows, "suspect": [suspect_row(s) for s in doubtful]})
        return 0
    item, out = history.item, console()
    out.print(f"{item.key}  {item.kind}  {plain(item.name)}", style="bold")
    out.print(f"head {item.head_ref or 'none: it has only drafts'}")
    cells = []
    for node in reversed(history.revisions):
        mark = " head" if node.node_id == item.head_node_id else ""
        status = f"{node.status}{' in ' + node.change_set if node.change_set else ''}"
        cells.append((f"@{node.revision}{mark}", status, when(node.created_at), plain(node.author), _reason(node)))
    out.print(table_of(("revision", "status", "when", "author", "reason"), cells))
    if doubtful:
        out.print(
            f"\n{counted(len(doubtful), 'suspect: it rests', 'suspect: they rest')} on an earlier revision",
            style="yellow",
        )
        for each in doubtful:
            rests = f"{each.source.kind} {each.source.ref} {each.link.type} {each.pinned_ref}"
            out.print(f"  {rests}  {short(each.source.name)}")
    return 0


def _reason(node: Node) -> str:
    parts = [node.change_reason, f"{node.status}: {node.status_reason}" if node.status_reason else ""]
    return short("; ".join(filter(None, parts)))


def show_diff(before: str, after: str, project: str, *, as_json: bool) -> int:
    """Show what differs between two revisions or two baselines. Returns the exit status."""
    from metaforge.cli.twin_baselines import show_found

    def look(view: View, _: Project) -> BaselineDiff | tuple[Node, Node]:
        names = {each.name for each in baselines(view)} | {NOW}
        if before in names and after in names:
            return diff_baselines(view, before, after)
        return view[before], view[after]

    found = read(project, look)
    if found is None:
        return 1
    if isinstance(found, BaselineDiff):
        return show_found(found, as_json=as_json)
    left, right = found
    fields = diff_nodes(left, right)
    if as_json:
        rows = [each.as_json() for each in fields]
        print_json({"before": _node_row(left), "after": _node_row(right), "fields": rows})
        return 0
    out = console()
    out.print(f"{left.ref} -> {right.ref}  {plain(right.name)}", style="bold")
    if right.change_reason:
        out.print(f"reason: {short(right.change_reason)}")
    for line in field_lines(fields):
        out.print(line, style={"+": "green", "-": "red"}.get(line.strip()[:1], ""))
    if not fields:
        out.print("They do not differ.")
    return 0


def field_lines(fields: Iterable[FieldChange], indent: str = "  ") -> Iterable[str]:
    """Yield lines that tell changes of fields; a long text is told by its lines that differ."""
    for each in fields:
        if each.is_text:
            yield f"{indent}{plain(each.path)}:"
            yield from (f"{indent}  {plain(line)}" for line in each.text_lines())
        elif each.what == "changed":
            yield f"{indent}{plain(each.path)}: {_value(each.before)} -> {_value(each.after)}"
        else:
            sign, value = ("+", each.after) if each.before is ABSENT else ("-", each.before)
            yield f"{indent}{sign} {plain(each.path)}: {_value(value)}"


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + short(", ".join(f"{name} {_value(each)}" for name, each in value.items())) + "}"
    if isinstance(value, list):
        return "(" + short(", ".join(_value(each) for each in value)) + ")"
    return short(value[:12] + "..." if isinstance(value, str) and _DIGEST.fullmatch(value) else scalar(value))


def short(text: str) -> str:
    """Return a text on one line, cut where it is long."""
    text = plain(text)
    return text if len(text) <= _SHOWN_CHARS else text[: _SHOWN_CHARS - 3] + "..."


def show_prd(project: str, *, as_json: bool) -> int:
    """Print the project's PRD as Markdown. Returns the exit status."""
    from metaforge.twin.prd import render

    text = read(project, render)
    if text is None:
        return 1
    if as_json:
        print_json({"markdown": text})
    else:
        sys.stdout.write(plain(text, lines=True))
    return 0


def table_of(titles: Sequence[str], cells: Sequence[Sequence[str]]) -> Any:
    """Return a table without lines; its last column takes the room that is left."""
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for number, title in enumerate(titles):
        table.add_column(title, overflow="fold", no_wrap=number < len(titles) - 1)
    for row in cells:
        table.add_row(*row, style=next((STATUS_STYLES[each] for each in row[1:2] if each in STATUS_STYLES), ""))
    return table


def _project_row(project: Project) -> dict[str, Any]:
    return {"id": project.project_id, "name": project.name, "description": project.description}


def _item_row(item: Item) -> dict[str, Any]:
    return {
        "key": item.key, "item_type": item.kind, "name": item.name, "head_ref": item.head_ref,
        "head_revision": item.head_revision, "head_node_id": item.head_node_id, "updated_at": item.updated_at,
    }  # fmt: skip


def _node_row(node: Node) -> dict[str, Any]:
    return {"ref": node.ref, "node_id": node.node_id, "kind": node.kind, "name": node.name, "author": node.author,
            "created_at": node.created_at, "change_reason": node.change_reason}  # fmt: skip


def _revision_row(node: Node, history: History) -> dict[str, Any]:
    return _node_row(node) | {
        "revision": node.revision, "status": str(node.status), "is_head": node.node_id == history.item.head_node_id,
        "run_id": node.run_id, "change_set": node.change_set, "phase": node.phase, "gate": node.gate,
        "status_reason": node.status_reason, "decided_by": node.decided_by, "adopted": node.adopted,
    }  # fmt: skip


def suspect_row(each: Suspect) -> dict[str, Any]:
    """Return a suspect link as JSON data."""
    return {"link_id": each.link.link_id, "type": each.link.type, "source": each.source.ref, "kind": each.source.kind,
            "name": each.source.name, "pinned_ref": each.pinned_ref, "why": each.why}  # fmt: skip
