"""Route a board with an existing router, and take back what breaks the board's rules.

A router is not believed: KiCad's rule check decides. Pieces that it objects to are removed, then loose ends, so that
what is left keeps the rules; what could not be routed is counted.
"""

import json
import math
import re
import uuid
from collections import Counter
from dataclasses import dataclass
from pathlib import PurePosixPath

from metaforge.adapters.kicad import drc
from metaforge.adapters.kicad.answers import RoutedBoard
from metaforge.adapters.kicad.drc import KICAD_COUNTS_TO
from metaforge.adapters.kicad.mirror import mirrored
from metaforge.adapters.kicad.outputs import FOLDER
from metaforge.adapters.kicad.program import Deadline, kicad
from metaforge.adapters.kicad.project import project_of
from metaforge.adapters.kicad.router import ENGINES, Routes, router_version, run_job, search, write_routes
from metaforge.adapters.kicad.verdict import counted, told
from metaforge.core.errors import FailureMode, ToolError
from metaforge.formats.kicad_report import Violation
from metaforge.tools.context import Answer, OutputFile, ToolContext

ROUNDS = 8
MOST_SHOWN = 20
ENGINE_SECONDS = {"exact": 180.0, "grid": 180.0, "room": 90.0}
_LOOSE = ("track_dangling", "via_dangling")
MERGE_SECONDS = 30.0
_NET = re.compile(r"\[([^\]]+)\]")
_PIECE = re.compile(r"\n\t\((?:segment|via)\n.*?\n\t\)", re.DOTALL)
_ID = re.compile(r'\n\t\t\(uuid "[^"]*"\)')
_ANY_ID = re.compile(r'\((?:uuid|tstamp) "?([^")\s]+)"?\)')
_CLOSED = "\n\t)"
_IDS = uuid.UUID("6f1c1f0a-43f5-4a55-9d0c-5a3b7d1f6c11")


@dataclass(frozen=True)
class Attempt:
    """One way of routing, after everything that breaks a rule was taken back."""

    engine: str
    routes: Routes
    text: str
    violations: list[Violation]
    ids: dict[str, str]

    @property
    def unrouted(self) -> int:
        return sum(1 for each in self.violations if each.group == "unconnected_items")

    @property
    def open_nets(self) -> set[str]:
        """Nets with a connection that is missing."""
        return {
            name
            for each in self.violations
            if each.group == "unconnected_items"
            for item in each.items
            for name in _NET.findall(item.description)
        }

    @property
    def merit(self) -> tuple[int, int, float]:
        return (
            _own_errors(self.violations, self.ids),
            self.unrouted,
            len(self.routes.vias) + _length(self.routes) / 10,
        )


def auto_route(pcb_file: str, remove_tracks: bool, output_path: str | None, ctx: ToolContext) -> Answer[RoutedBoard]:
    """Route a board's connections.

    Raises:
        ToolError: there is no router, the board cannot be used, or it has tracks already.
    """
    router, deadline = router_version(), Deadline(ctx)
    text, warning = drc.read_file(ctx.workspace, pcb_file)
    board = drc.board_of(text, pcb_file)
    if (board.tracks or board.vias) and not remove_tracks:
        raise ToolError(
            f"{pcb_file} has {counted(len(board.tracks), 'track')} and {counted(len(board.vias), 'via')} already: "
            "the router only routes whole boards and would run over them",
            kind="already_routed", where=pcb_file, fix="pass remove_tracks: true to route a copy anew",
        )  # fmt: skip
    project_of(ctx.workspace, pcb_file)
    bare, design = _prepare(pcb_file, deadline, ctx)
    before = _violations(pcb_file, bare, deadline, ctx)
    connections = sum(1 for each in before if each.group == "unconnected_items")
    if not connections:
        raise ToolError(f"{pcb_file} has no connection to route", kind="nothing_to_route", where=pcb_file,
                        fix="connect the pads to nets: update the board from its schematic")  # fmt: skip
    best = _best(pcb_file, bare, design, deadline, ctx)
    if best is None:
        raise ToolError(
            f"The router found no way for any of {counted(connections, 'connection')}", kind="nothing_routed",
            where=pcb_file, fix="place parts of one net nearer to each other, or give the board another layer",
            failure_mode=FailureMode.DESIGN,
        )  # fmt: skip
    files = _write(pcb_file, output_path, best, ctx)
    return _answer(best, before, connections, router, files, [warning] if warning else [])


def _prepare(pcb_file: str, deadline: Deadline, ctx: ToolContext) -> tuple[str, str]:
    """Return the board without tracks, in KiCad's present format, and its design."""
    file = mirrored(pcb_file, ctx)
    bare, design = ctx.scratch / "bare.kicad_pcb", ctx.scratch / "design.dsn"
    run_job("prepare", str(file), str(bare), str(design), deadline=deadline, what="prepare the board", where=pcb_file)
    return bare.read_text(encoding="utf-8"), design.read_text(encoding="utf-8", errors="replace")


def _violations(pcb_file: str, text: str, deadline: Deadline, ctx: ToolContext) -> list[Violation]:
    """Check a board in place of the one in the mirror: its project, rules and libraries are the same."""
    file = mirrored(pcb_file, ctx, {PurePosixPath(pcb_file).name: text})
    return drc.report_of(file, pcb_file, None, deadline, ctx)


def _best(pcb_file: str, bare: str, design: str, deadline: Deadline, ctx: ToolContext) -> Attempt | None:
    attempts: list[Attempt] = []
    for engine in ENGINES:
        if attempts and (
            not min(attempts, key=_merit).unrouted or deadline.left_seconds() < ENGINE_SECONDS[engine] / 3
        ):
            break
        routes = search(engine, design, deadline, min(ENGINE_SECONDS[engine], deadline.left_seconds() / 2))
        if routes is not None and routes.wires:
            attempts.append(_lawful(engine, routes, pcb_file, bare, deadline, ctx))
    attempts.sort(key=_merit)
    for other in attempts[1:]:
        best = attempts[0]
        if best.unrouted and deadline.left_seconds() > MERGE_SECONDS:
            # What one way of searching could not connect, another may have.
            merged = best.routes.with_nets(other.routes, best.open_nets)
            both = _lawful(f"{best.engine} and {other.engine}", merged, pcb_file, bare, deadline, ctx)
            attempts[0] = min(best, both, key=_merit)
    return attempts[0] if attempts and attempts[0].routes.wires else None


def _merit(attempt: Attempt) -> tuple[int, int, float]:
    return attempt.merit


def _lawful(engine: str, routes: Routes, pcb_file: str, bare: str, deadline: Deadline, ctx: ToolContext) -> Attempt:
    """Take back what breaks a rule, until nothing does."""
    attempt = _applied(engine, routes, pcb_file, bare, deadline, ctx)
    for _ in range(ROUNDS):
        wrong = _offending(attempt) or _loose(attempt)
        if not wrong or deadline.left_seconds() < 10:
            break
        attempt = _applied(engine, attempt.routes.without(wrong), pcb_file, bare, deadline, ctx)
    return attempt


def _applied(engine: str, routes: Routes, pcb_file: str, bare: str, deadline: Deadline, ctx: ToolContext) -> Attempt:
    source, target = ctx.scratch / "bare.kicad_pcb", ctx.scratch / "routed.kicad_pcb"
    source.write_text(bare, encoding="utf-8")
    write_routes(routes, ctx.scratch / "routes.json")
    run_job("apply", str(source), str(ctx.scratch / "routes.json"), str(target), str(ctx.scratch / "ids.json"),
            deadline=deadline, what="put the tracks on the board", where=pcb_file)  # fmt: skip
    ids: dict[str, str] = json.loads((ctx.scratch / "ids.json").read_text(encoding="utf-8"))
    text = target.read_text(encoding="utf-8")
    return Attempt(engine, routes, text, _violations(pcb_file, text, deadline, ctx), ids)


def _offending(attempt: Attempt) -> set[str]:
    """Return the fewest pieces, greedily, that every error of the routing concerns."""
    errors = [
        {attempt.ids[item.uuid] for item in each.items if item.uuid in attempt.ids}
        for each in attempt.violations
        if each.blocks and each.group == "violations"
    ]
    errors = [concerned for concerned in errors if concerned]
    taken: set[str] = set()
    while errors:
        worst, _ = Counter(sorted(number for concerned in errors for number in concerned)).most_common(1)[0]
        taken.add(worst)
        errors = [concerned for concerned in errors if worst not in concerned]
    return taken


def _loose(attempt: Attempt) -> set[str]:
    """Return the pieces that end nowhere."""
    return {
        attempt.ids[item.uuid]
        for each in attempt.violations
        if each.kind in _LOOSE
        for item in each.items
        if item.uuid in attempt.ids
    }


def _own_errors(violations: list[Violation], ids: dict[str, str]) -> int:
    return sum(
        1 for each in violations
        if each.blocks and each.group == "violations" and any(item.uuid in ids for item in each.items)
    )  # fmt: skip


def _length(routes: Routes) -> float:
    return sum(
        math.dist(first, second)
        for wire in routes.wires.values()
        for first, second in zip(wire.points_mm, wire.points_mm[1:], strict=False)
    )


def _write(pcb_file: str, output_path: str | None, best: Attempt, ctx: ToolContext) -> list[OutputFile]:
    """Write the board with the project and rules that belong to it."""
    source = PurePosixPath(pcb_file)
    target = PurePosixPath(output_path) if output_path else PurePosixPath(FOLDER) / f"{source.stem}-routed.kicad_pcb"
    target = target if target.suffix == ".kicad_pcb" else target.with_name(f"{target.name}.kicad_pcb")
    text = _settled(best.text, (ctx.workspace / pcb_file).read_text(encoding="utf-8", errors="replace"))
    ctx.output_file(str(target)).write_text(text, encoding="utf-8")
    files = [OutputFile(target, "application/x-kicad-pcb", "board")]
    for suffix in (".kicad_pro", ".kicad_dru"):
        beside = ctx.workspace / source.with_suffix(suffix)
        if beside.is_file() and target.with_suffix(suffix) != source.with_suffix(suffix):
            ctx.output_file(str(target.with_suffix(suffix))).write_bytes(beside.read_bytes())
            files.append(OutputFile(target.with_suffix(suffix), "application/json", "project"))
    return files


def _settled(text: str, source: str) -> str:
    """Return a board whose new ids follow from what they belong to: KiCad's are random, and order the tracks."""
    seen: Counter[str] = Counter()
    named: list[str] = []
    for piece in sorted(_ID.sub("", piece) for piece in _PIECE.findall(text)):
        seen[piece] += 1
        uid = uuid.uuid5(_IDS, f"{piece} {seen[piece]}")
        named.append(f'{piece[: -len(_CLOSED)]}\n\t\t(uuid "{uid}"){_CLOSED}')
    settled = iter(named)
    text = _PIECE.sub(lambda _: next(settled), text)
    kept = set(_ANY_ID.findall(source)) | set(_ANY_ID.findall("".join(named)))
    new = [found for found in dict.fromkeys(_ANY_ID.findall(text)) if found not in kept]
    ids = {found: str(uuid.uuid5(_IDS, f"item {number}")) for number, found in enumerate(new)}
    return _ANY_ID.sub(lambda match: f'(uuid "{ids.get(match[1], match[1])}")', text)


def _answer(
    best: Attempt, before: list[Violation], connections: int, router: str, files: list[OutputFile], warnings: list[str]
) -> Answer[RoutedBoard]:
    after = best.violations
    unrouted = best.unrouted
    rules = [each for each in after if each.group == "violations"]
    errors = sum(1 for each in rules if each.blocks)
    answer = RoutedBoard(
        str(files[0].path), not unrouted and not errors, connections, connections - unrouted, unrouted,
        round(_length(best.routes), 2), len(best.routes.vias),
        sum(1 for each in before if each.blocks and each.group == "violations"), errors,
        sum(1 for each in rules if each.severity == "warning" and not each.excluded),
        told([each for each in after if each.blocks], "all", MOST_SHOWN), f"{router}, {best.engine}",
    )  # fmt: skip
    if max(connections, unrouted) >= KICAD_COUNTS_TO:
        warnings.append(f"KiCad counts to {KICAD_COUNTS_TO} connections only: there may be more")
    if errors and errors > answer.errors_before:
        warnings.append(f"{errors - answer.errors_before} errors more than before routing: see violations")
    share = f"{answer.routed_count} of {counted(connections, 'connection')} routed"
    verdict = "Routed whole, the rules hold" if answer.passed else (
        "Routed in part, what is routed keeps the rules" if not errors else f"Routed, {counted(errors, 'rule error')}"
    )  # fmt: skip
    next_step = f"kicad.run_drc pcb_file={answer.output_file}" if answer.passed else (
        f"kicad.render input_file={answer.output_file}; route the rest by hand, or move parts nearer and route again"
    )  # fmt: skip
    return Answer(
        answer,
        f"{verdict}: {share}, {answer.track_length_mm:g} mm of track, {counted(answer.vias_count, 'via')}; "
        f"{answer.output_file} ({answer.router}).",
        tuple(warnings),
        next_step,
        tuple(files),
        programs={"KiCad": kicad().version, "router": router},
    )
