"""`metaforge twin trace`, `impact`, `suspect`, `review` and `gate`."""

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from rich.text import Text

from metaforge.cli.screen import command_name, console, number, print_json
from metaforge.cli.twin_items import short, suspect_row
from metaforge.cli.twin_record import plain, read, save_page, when, write
from metaforge.core.counts import counted
from metaforge.twin.change import Change
from metaforge.twin.gates import GateResult, Obstacle, check_gates
from metaforge.twin.impact import Impact, impact
from metaforge.twin.links import Suspect, suspects
from metaforge.twin.matrix import Matrix, Row, matrix
from metaforge.twin.model import Project
from metaforge.twin.verification import Standing, Status, Verification
from metaforge.twin.view import View

STYLES = {
    Status.PASS: "green", Status.FAIL: "bold red", Status.UNCERTAIN: "yellow", Status.STALE: "yellow",
    Status.NO_DATA: "dim",
}  # fmt: skip


def words(status: Status) -> str:
    """Return a status as people read it."""
    return str(status).replace("_", " ")


def show_trace(project: str, html: Path | None, *, as_json: bool) -> int:
    """Show the trace matrix. Returns the exit status."""
    found = read(project, lambda view, of: (of, matrix(view)))
    if found is None:
        return 1
    of, whole = found
    if html is not None:
        from metaforge.twin.reports import trace_page

        return save_page(trace_page(of, whole), html)
    if as_json:
        print_json(whole.as_json())
        return 0
    _show_matrix(of, whole)
    return 0


def _show_matrix(project: Project, whole: Matrix) -> None:
    out = console()
    counts = [f"{count} {words(Status(name))}" for name, count in whole.counts().items() if count]
    told = ", ".join([counted(len(whole.rows), "requirement"), *counts])
    out.print(f"{plain(project.name)}: {told}", style="bold")
    for row in whole.rows:
        _show_row(out, row)
    if whole.uncovered:
        out.print("\nNot covered", style="bold")
        for gap in whole.uncovered:
            out.print(f"  {plain(gap.ref)}  {short(gap.name)}: {gap.why}")
    if any(each.standing is Standing.SUSPECT for row in whole.rows for each in row.verifications):
        out.print(f"\nTo clear what is suspect: {command_name()} twin suspect")


def _show_row(out: Any, row: Row) -> None:
    line = Text("\n")
    line.append(f"{words(row.status):<10}", style=STYLES[row.status])
    line.append(plain(row.ref), style="bold")
    line.append(f"  {short(row.demand)}")
    out.print(line)
    if row.answers:
        out.print(f"{'':<10}answers {', '.join(row.answers)}")
    for each in row.verifications:
        out.print(f"{'':<10}{_said(each)}", style="" if each.standing is Standing.CURRENT else "dim")
    if row.why and not row.verifications:
        out.print(f"{'':<10}{short(row.why)}", style="dim")


def _said(each: Verification) -> str:
    """Say one verification: `evidence n12 "FEA": 150 MPa, margin 25 %, with CAD-BRACKET@1; suspect, revised ...`."""
    parts = [f"{each.kind} {each.ref}" + (f" {short(each.name)!r}" if each.kind != "measured" and each.name else "")]
    if each.actual is not None:
        parts.append(f"{number(each.actual)} {each.unit}".rstrip())
    if each.margin_ratio is not None:
        parts.append(f"margin {number(round(100 * each.margin_ratio, 1))} %")
    if each.against and each.kind != "measured":
        parts.append(f"made with {', '.join(each.against)}")
    told = "" if each.says is Status.PASS else f"{words(each.says)}"
    if each.standing is not Standing.CURRENT:
        told = f"{each.standing}"
    if told:
        parts.append(f"{told}: {short(each.why)}" if each.why else told)
    return ", ".join(parts)


def show_impact(key: str, project: str, *, down: bool, depth: int, as_json: bool) -> int:
    """Show what a change affects, or what a thing rests on. Returns the exit status."""
    found = read(project, lambda view, _: impact(view, key, "down" if down else "up", depth))
    if found is None:
        return 1
    if as_json:
        print_json(found.as_json())
    else:
        _show_impact(found)
    return 0


def _show_impact(found: Impact) -> None:
    out = console()
    count = f"{len(found.hits)}{' or more' if found.truncated else ''}"
    rest = "rests" if count == "1" else "rest"
    what = f"rests on {count}" if found.way == "down" else f"{count} {rest} on it"
    out.print(
        f"{found.root.ref}  {plain(found.root.name)}: {what}, at most {counted(found.depth, 'link')} far", style="bold"
    )
    for far, hits in groupby(found.hits, key=lambda hit: hit.depth):
        out.print(f"\n{counted(far, 'link')} far")
        for hit in hits:
            out.print(f"  {hit.kind:<20} {hit.ref}  {short(hit.name)}")
    if found.requirements:
        out.print("\nRequirements verified through them: " + plain(", ".join(found.requirements)))


def show_suspects(project: str, *, as_json: bool) -> int:
    """List suspect links. Returns the exit status."""
    found = read(project, lambda view, _: suspects(view))
    if found is None:
        return 1
    if as_json:
        print_json({"suspect": [suspect_row(each) for each in found]})
        return 0
    out = console()
    for key, links in groupby(found, key=lambda each: each.target_key):
        rows = list(links)
        current = rows[0].current
        out.print(f"\n{key}: now {current.ref if current else 'without an approved revision'}", style="bold")
        for each in rows:
            out.print(f"  {each.source.kind} {each.source.ref}  {short(each.source.name)}")
            out.print(f"    {each.link.type} {each.pinned_ref}; {short(each.why)}")
            out.print(f"    link {each.link.link_id}", style="dim")
    if found:
        out.print(f"\nLook at each again. If it still holds: {command_name()} twin review LINK --reason '...'")
    else:
        out.print("Nothing is suspect: all links are pinned to what is current, or were reviewed.")
    return 0


def review_links(link_or_node: str, reason: str, project: str) -> int:
    """Mark one suspect link, or all of a node, as reviewed. Returns the exit status."""

    def mark(change: Change) -> list[Suspect]:
        chosen = _chosen(change.view, link_or_node)
        for each in chosen:
            change.review(each.link.link_id)
        return chosen

    found = write(project, reason, mark)
    if found is None:
        return 1
    for each in found:
        current = each.current.ref if each.current else each.target_key
        console().print(f"{each.source.kind} {each.source.ref} {each.link.type}: reviewed against {current}")
    return 0


def _chosen(view: View, asked: str) -> list[Suspect]:
    from metaforge.core.errors import ToolError

    there = suspects(view)
    chosen = [each for each in there if asked in (each.link.link_id, each.source.node_id, each.source.ref)]
    if not chosen:
        known = ", ".join(each.link.link_id for each in there[:8])
        raise ToolError(
            f"No suspect link is {asked[:80]}, nor of a node called so", kind="not_suspect",
            fix=f"There is {known}" if known else "Nothing is suspect in this project",
        )  # fmt: skip
    return chosen


def show_gates(names: Sequence[str], project: str, *, as_json: bool) -> int:
    """Ask the release gates. Returns the exit status: 1 when something is in the way."""
    found = read(project, lambda view, _: check_gates(view, names))
    if found is None:
        return 1
    passed = all(result.passed for result in found)
    if as_json:
        print_json({"passed": passed, "gates": [result.as_json() for result in found]})
    else:
        for result in found:
            _show_gate(result)
        console().print("\nNothing is in the way." if passed else "\nNot ready for release.",
                        style="bold green" if passed else "bold red")  # fmt: skip
    return 0 if passed else 1


def _show_gate(result: GateResult) -> None:
    out = console()
    line = Text(f"{'passed' if result.passed else 'NOT PASSED':<12}", style="green" if result.passed else "bold red")
    line.append(f"{result.name:<12} {result.question} ", style="default")
    line.append("no" if result.passed else f"yes, {len(result.obstacles)}", style="default")
    out.print(line)
    for each in result.obstacles:
        out.print(f"  {plain(each.ref)}: {short(each.what)}")
        out.print(f"    {plain(each.fix)}", style="dim")
        if each.note:
            out.print(f"    {plain(each.note)}", style="dim")
    for each in result.waived:
        _show_waived(out, each)


def _show_waived(out: Any, obstacle: Obstacle) -> None:
    waiver = obstacle.waiver
    assert waiver is not None, "it is in the list of what was waived"
    by = plain(waiver.approver) + ("" if waiver.approver_verified else ", whose identity was not verified")
    told = f"waiver {waiver.node_id}, approved {when(waiver.approved_at)} by {by}"
    out.print(f"  waived  {plain(obstacle.ref)}: {short(obstacle.what)}")
    out.print(f"    {short(waiver.reason)} ({told})", style="dim")
