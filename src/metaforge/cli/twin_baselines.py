"""`metaforge twin baseline create`, `list` and `diff`."""

from pathlib import Path

from metaforge.cli.screen import command_name, console, print_json
from metaforge.cli.twin_items import field_lines, short, table_of
from metaforge.cli.twin_record import plain, read, save_page, when, write
from metaforge.core.counts import counted
from metaforge.twin.baseline_diff import BaselineDiff, ItemChange, diff_baselines
from metaforge.twin.baselines import Baseline, State, baselines, create_baseline

WHAT_STYLES = {"added": "green", "removed": "red", "revised": "yellow"}


def create(name: str, note: str, project: str, *, as_json: bool) -> int:
    """Make a baseline. Returns the exit status."""
    made = write(project, note, lambda change: create_baseline(change, name, note))
    if made is None:
        return 1
    if as_json:
        print_json(made.as_json())
        return 0
    out = console()
    out.print(f"Baseline {made.name}: {counted(made.item_count, 'item')}, sha256 {made.digest}")
    out.print(f"What changes from now on: {command_name()} twin baseline diff {made.name}")
    return 0


def show_list(project: str, *, as_json: bool) -> int:
    """List baselines. Returns the exit status."""
    found = read(project, lambda view, _: baselines(view))
    if found is None:
        return 1
    if as_json:
        print_json({"baselines": [each.as_json() for each in found]})
    elif not found:
        console().print(f"There are no baselines yet: {command_name()} twin baseline create NAME")
    else:
        console().print(table_of(("baseline", "items", "when", "author", "digest", "note"), [_cells(e) for e in found]))
    return 0


def _cells(each: Baseline) -> tuple[str, ...]:
    author = plain(each.author)
    return plain(each.name), str(each.item_count), when(each.created_at), author, each.digest[:12], short(each.note)


def show_diff(before: str, after: str, project: str, html: Path | None, *, as_json: bool) -> int:
    """Compare two baselines. Returns the exit status."""
    found = read(project, lambda view, of: (of, diff_baselines(view, before, after)))
    if found is None:
        return 1
    of, diff = found
    if html is not None:
        from metaforge.twin.reports import baseline_page

        return save_page(baseline_page(of, diff), html)
    return show_found(diff, as_json=as_json)


def show_found(diff: BaselineDiff, *, as_json: bool) -> int:
    """Show a comparison of baselines. Returns the exit status."""
    if as_json:
        print_json(diff.as_json())
        return 0
    out = console()
    out.print(f"{_state(diff.before)} -> {_state(diff.after)}", style="bold")
    counts = ", ".join(f"{count} {what}" for what, count in diff.counts().items() if count) or "no item changed"
    out.print(f"{counts}; {diff.unchanged_count} unchanged")
    for item in diff.items:
        _show_item(item)
    if diff.links:
        out.print("\nLinks", style="bold")
        for link in diff.links:
            sign, style = ("+", "green") if link.what == "added" else ("-", "red")
            out.print(f"  {sign} {link.source_ref} {plain(link.type)} {link.target_ref}", style=style)
    if diff.records:
        out.print("\nRecorded between", style="bold")
        for node in diff.records:
            out.print(f"  {node.kind:<18} {node.node_id}  {short(node.name)}  {plain(node.author)}")
    return 0


def _state(of: State) -> str:
    return f"{plain(of.name)} ({counted(len(of.entries), 'item')}" + (
        f", {when(of.baseline.created_at)})" if of.baseline else ")"
    )


def _show_item(item: ItemChange) -> None:
    out = console()
    sides = [entry.ref for entry in (item.before, item.after) if entry is not None]
    out.print(f"\n{item.what:<8} {' -> '.join(sides)}  {plain(item.name)}", style=WHAT_STYLES[item.what])
    for step in item.steps:
        reason = f": {short(step.change_reason)}" if step.change_reason else ""
        out.print(f"  {step.ref} by {plain(step.author)}{reason}")
    for line in field_lines(item.fields):
        out.print(f"  {line}", style={"+": "green", "-": "red"}.get(line.strip()[:1], ""))
