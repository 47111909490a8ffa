"""Reports as HTML pages that need nothing else: the trace matrix, and what differs between two baselines."""

import html
from collections.abc import Iterable, Sequence
from importlib import resources
from typing import Any

import orjson

from metaforge.core.counts import counted
from metaforge.twin.baseline_diff import BaselineDiff, ItemChange
from metaforge.twin.baselines import State
from metaforge.twin.difference import ABSENT, FieldChange
from metaforge.twin.matrix import Matrix, Row
from metaforge.twin.model import Project
from metaforge.twin.verification import Standing, Status, Verification

_LONG_CHARS = 2000


def trace_page(project: Project, whole: Matrix) -> str:
    """Return the trace matrix of a project as a page."""
    tiles = [(str(len(whole.rows)), "requirements", "")]
    tiles += [(str(count), _words(name), name) for name, count in whole.counts().items()]
    rows = [_requirement_cells(row) for row in whole.rows]
    parts = [
        _tiles(tiles),
        "<h2>Requirements</h2>",
        _table(("status", "requirement", "answers", "verified by"), rows)
        if rows
        else "<p>There are no requirements yet.</p>",
    ]
    if whole.uncovered:
        gaps = [
            (_ref(gap.ref), _e(gap.kind.replace("_", " ")), _name(gap.name), _e(gap.why)) for gap in whole.uncovered
        ]
        parts += ["<h2>Not covered</h2>", _table(("", "kind", "name", "why"), gaps)]
    foot = f"Project {project.project_id}, as of entry {whole.seq} of its changelog."
    return _page(f"{project.name}: trace matrix", _unproven(whole), parts, foot)


def _unproven(whole: Matrix) -> str:
    if not whole.rows:
        return "Nothing can be shown to hold."
    count = len(whole.unverified)
    if not count:
        return "Every requirement is shown to hold."
    return f"{counted(count, f'of {len(whole.rows)} is', f'of {len(whole.rows)} are')} not shown to hold."


def _requirement_cells(row: Row) -> tuple[str, ...]:
    severity = "" if row.severity == "error" else f' <span class="soft">({_e(row.severity)})</span>'
    method = f'<br><span class="soft">{_e(row.method)}</span>' if row.method else ""
    said = "".join(f"<li>{_said(each)}</li>" for each in row.verifications)
    why = f'<span class="soft">{_e(row.why or "nothing speaks about it")}</span>'
    return (
        _mark(row.status, _words(row.status)),
        f"{_ref(row.ref)}{severity}<br>{_name(row.demand)}{method}",
        "<br>".join(_ref(each) for each in row.answers),
        f"<ul>{said}</ul>" if said else why,
    )


def _said(each: Verification) -> str:
    parts = [f"{_e(each.kind.replace('_', ' '))} {_ref(each.ref)}"]
    if each.kind != "measured" and each.name:
        parts.append(_name(each.name))
    if each.actual is not None:
        parts.append(f"<b>{each.actual:g}&nbsp;{_e(each.unit)}</b>")
    if each.margin_ratio is not None:
        parts.append(f"margin {100 * each.margin_ratio:.3g}&nbsp;%")
    if each.against and each.kind != "measured":
        parts.append("made with " + ", ".join(_ref(ref) for ref in each.against))
    if each.standing is not Standing.CURRENT:
        parts.append(f'<span class="stale">{_e(each.standing)}: {_e(each.why)}</span>')
    elif each.says is not Status.PASS:
        parts.append(f'<span class="{each.says}">{_words(each.says)}{": " if each.why else ""}{_e(each.why)}</span>')
    return ", ".join(parts)


def baseline_page(project: Project, diff: BaselineDiff) -> str:
    """Return what differs between two baselines as a page."""
    tiles = [(str(count), what, what) for what, count in diff.counts().items()]
    parts = [_tiles([*tiles, (str(diff.unchanged_count), "unchanged", "")]), "<h2>Items</h2>"]
    items = [_item_cells(item) for item in diff.items]
    parts.append(_table(("", "item", "why", "what changed"), items) if items else "<p>No item changed.</p>")
    if diff.links:
        links = [(_mark(link.what, link.what), _ref(link.source_ref), _e(link.type), _ref(link.target_ref))
                 for link in diff.links]  # fmt: skip
        parts += ["<h2>Links</h2>", _table(("", "from", "type", "to"), links)]
    if diff.records:
        records = [(_e(node.kind.replace("_", " ")), _ref(node.node_id), _name(node.name), _e(node.author),
                    _e(node.created_at[:19].replace("T", " "))) for node in diff.records]  # fmt: skip
        parts += ["<h2>Recorded between</h2>", _table(("kind", "", "name", "author", "when (UTC)"), records)]
    title = f"{project.name}: {diff.before.name} to {diff.after.name}"
    foot = f"Project {project.project_id}. {_origin(diff.before)} {_origin(diff.after)}"
    return _page(title, "What was added, revised and removed, and why.", parts, foot)


def _origin(of: State) -> str:
    if of.baseline is None:
        return f"{of.name}: {counted(len(of.entries), 'item')} at entry {of.seq} of the changelog."
    made, items = of.baseline.created_at[:19].replace("T", " "), counted(len(of.entries), "item")
    return f"{of.name}: {items}, frozen {made} UTC by {of.baseline.author}, SHA-256 {of.baseline.digest}."


def _item_cells(item: ItemChange) -> tuple[str, ...]:
    sides = [_ref(entry.ref) for entry in (item.before, item.after) if entry is not None]
    renamed = item.before is not None and item.after is not None and item.before.name != item.after.name
    name = f"{item.before.name} → {item.name}" if renamed and item.before else item.name
    steps = "".join(
        f"<li>{_ref(step.ref)} {_name(step.change_reason) or '<span class=soft>no reason given</span>'} "
        f'<span class="soft">{_e(step.author)}</span></li>'
        for step in item.steps
    )
    fields = "".join(f"<li>{_field(each)}</li>" for each in item.fields)
    return (
        _mark(item.what, item.what),
        f"{' → '.join(sides)}<br>{_name(name)}",
        f"<ul>{steps}</ul>" if steps else "",
        f"<ul>{fields}</ul>" if fields else "",
    )


def _field(each: FieldChange) -> str:
    path = f"<code>{_e(each.path)}</code>"
    if each.is_text:
        marks = {"+": "ins", "-": "del"}
        lines = (
            f"<{mark}>{_e(line)}</{mark}>" if (mark := marks.get(line[:1])) else _e(line) for line in each.text_lines()
        )
        return f"{path}<pre>" + "\n".join(lines) + "</pre>"
    before = "" if each.before is ABSENT else f"<del>{_value(each.before)}</del>"
    after = "" if each.after is ABSENT else f"<ins>{_value(each.after)}</ins>"
    return f"{path} {' → '.join(filter(None, (before, after)))}"


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{_e(name)} {_value(each)}" for name, each in value.items())
    text = value if isinstance(value, str) else orjson.dumps(value).decode()
    return _e(text if len(text) <= _LONG_CHARS else text[:_LONG_CHARS] + " ...")


def _page(title: str, subtitle: str, parts: Iterable[str], foot: str) -> str:
    style = (resources.files("metaforge.twin") / "report.css").read_text()
    return (
        '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{_e(title)}</title>\n<style>\n{style}</style>\n"
        f'<h1>{_e(title)}</h1>\n<p class="sub">{_e(subtitle)}</p>\n' + "\n".join(parts) + "\n"
        f"<footer>{_e(foot)}</footer>\n</html>\n"
    )


def _tiles(tiles: Sequence[tuple[str, str, str]]) -> str:
    cells = (
        f'<div class="tile {kind}"><b>{_e(value)}</b><span>{_e(label)}</span></div>' for value, label, kind in tiles
    )
    return f'<div class="tiles">{"".join(cells)}</div>'


def _table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f"<th>{_e(title)}</th>" for title in titles)
    body = "\n".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table>"


def _mark(kind: str, label: str) -> str:
    return f'<span class="mark {_e(kind)}">{_e(label)}</span>'


def _ref(ref: str) -> str:
    return f'<span class="ref">{_e(ref)}</span>'


def _words(status: str) -> str:
    return str(status).replace("_", " ")


def _name(text: str) -> str:
    """Return somebody's words, in their own direction of writing."""
    return f"<bdi>{_e(text)}</bdi>" if text else ""


def _e(text: str) -> str:
    return html.escape(str(text))
