"""Design rule check of a board."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from metaforge.adapters.kicad.answers import DrcAnswer, RulesUsed
from metaforge.adapters.kicad.canary import with_canary, without_canary
from metaforge.adapters.kicad.hierarchy import MAX_FILE_BYTES, BadSchematic, decode, read_hierarchy
from metaforge.adapters.kicad.mirror import mirrored
from metaforge.adapters.kicad.program import Deadline, failed, kicad, remove, run_kicad
from metaforge.adapters.kicad.project import project_of
from metaforge.adapters.kicad.shorts import find_shorts, missed_by
from metaforge.adapters.kicad.verdict import by_type, count, counted, first_blocking, name_of, told
from metaforge.core.errors import FailureMode, ToolError
from metaforge.formats.kicad_board import NEWEST_VERSION, Board, NotABoard, read_board
from metaforge.formats.kicad_project import Project
from metaforge.formats.kicad_report import UnreadableReport, Violation, read_drc
from metaforge.formats.kicad_rules import Rules, read_rules
from metaforge.formats.kicad_schematic import first_words
from metaforge.formats.kicad_sexpr import BadExpression
from metaforge.tools.context import Answer, ToolContext

REPORT = "drc.json"
TESTED = "tested"
KICAD_COUNTS_TO = 199


class BadBoard(ToolError):
    """The board cannot be used."""

    default_kind = "bad_board"


@dataclass(frozen=True)
class RulesFile:
    """A board's own rules."""

    path: str
    text: str
    rules: Rules


@dataclass(frozen=True)
class Checked:
    """A board and what was found on it."""

    board: Board
    violations: list[Violation]
    custom_rules_loaded: bool | None


def run_drc(
    pcb_file: str, rule_set: str | None, severity_filter: str, max_violations: int, ctx: ToolContext
) -> Answer[DrcAnswer]:
    """Check a board.

    Raises:
        ToolError: the board, its project or its rules cannot be used, or KiCad left no report.
    """
    text, warning = read_file(ctx.workspace, pcb_file)
    project, project_file = project_of(ctx.workspace, pcb_file)
    custom = _rules_file(ctx.workspace, pcb_file, rule_set)
    parity = _parity(ctx.workspace, pcb_file)
    checked = check(pcb_file, text, custom, Deadline(ctx), ctx)
    answer = _answer(pcb_file, checked, severity_filter, max_violations, _used(project, project_file, custom, checked),
                     parity)  # fmt: skip
    warnings = [
        *filter(None, [warning]),
        *([f"schematic parity was not tested: {parity}"] if parity != TESTED else []),
        *(
            f"{doubt}: KiCad cannot evaluate it, and does not say so"
            for doubt in (custom.rules.doubts if custom else ())
        ),
        *_about_zones(checked.board),
        *_stopped(answer),
        *_shortened(answer, checked.violations, severity_filter),
    ]
    next_step = (
        f"kicad.render input_file={pcb_file} marks_mm={_places(answer)}"
        if answer.errors
        else f"kicad.export_gerber pcb_file={pcb_file}"
    )
    return Answer(answer, _summary(answer, checked), tuple(warnings), next_step, programs={"KiCad": kicad().version})


def _places(answer: DrcAnswer) -> list[list[float]]:
    return [item.position_mm for each in answer.violations[:3] for item in each.items[:1]]


def read_file(workspace: Path, pcb_file: str) -> tuple[str, str]:
    """Return a board file's text, and a warning where it is not UTF-8.

    Raises:
        BadBoard: it is too large.
    """
    path = workspace / pcb_file
    if path.stat().st_size > MAX_FILE_BYTES:
        raise BadBoard(f"{pcb_file} is larger than {MAX_FILE_BYTES / 1e6:.0f} MB", kind="file_too_large",
                       where=pcb_file, failure_mode=FailureMode.LIMIT)  # fmt: skip
    return decode(path.read_bytes(), pcb_file)


def board_of(text: str, pcb_file: str) -> Board:
    """Read a board.

    Raises:
        BadBoard: it is damaged, no board, or of a newer KiCad.
    """
    try:
        board = read_board(text)
    except BadExpression as fault:
        begins = f"; it begins with {first_words(text)!r}" if not text.lstrip().startswith("(") else ""
        raise BadBoard(
            f"{pcb_file} cannot be loaded: {fault.why}, line {fault.line}, offset {fault.column}{begins}",
            where=f"{pcb_file}, line {fault.line}, offset {fault.column}",
            fix="restore the file from a backup or from version control",
        ) from None
    except NotABoard as fault:
        raise BadBoard(f"{pcb_file} cannot be loaded: {fault}", where=pcb_file, fix="name a .kicad_pcb file") from None
    if board.version > NEWEST_VERSION:
        raise BadBoard(
            f"{pcb_file} was written by a newer KiCad (format {board.version}; KiCad 9 reads up to {NEWEST_VERSION})",
            kind="newer_format", where=pcb_file, fix="save it in KiCad 9, or install the newer KiCad",
        )  # fmt: skip
    return board


def check(pcb_file: str, text: str, custom: RulesFile | None, deadline: Deadline, ctx: ToolContext) -> Checked:
    """Run the check beside a look at the board of our own, and return what both found.

    Raises:
        ToolError: the board or the rules cannot be used.
    """
    with ThreadPoolExecutor(1) as pool:
        # KiCad is another process: reading the board meanwhile costs no time.
        reading = pool.submit(lambda: _look(text, pcb_file))
        shows, instead = False, {}
        if custom is not None:
            with_item, with_rule, shows = with_canary(text, custom.text)
            instead = {name: text for name, text in zip(_names(pcb_file), (with_item, with_rule), strict=True)}
        file = mirrored(pcb_file, ctx, instead)
        violations = report_of(file, pcb_file, reading.result, deadline, ctx)
        board, shorts = reading.result()
    loaded: bool | None = None
    if custom is not None:
        violations, used = without_canary(violations)
        loaded = used or (None if not shows else False)
        if loaded is False:
            raise _not_used(custom)
    return Checked(board, [*violations, *missed_by(violations, shorts)], loaded)


def _names(pcb_file: str) -> tuple[str, str]:
    path = PurePosixPath(pcb_file)
    return path.name, path.with_suffix(".kicad_dru").name


def _look(text: str, pcb_file: str) -> tuple[Board, list[Violation]]:
    board = board_of(text, pcb_file)
    return board, find_shorts(board)


def report_of(
    file: Path, pcb_file: str, explain: Callable[[], object] | None, deadline: Deadline, ctx: ToolContext
) -> list[Violation]:
    """Let KiCad check a board and return its findings.

    Args:
        file: the board that KiCad opens.
        pcb_file: what the caller knows it by.
        explain: raises where the file itself is at fault.

    Raises:
        ToolError: KiCad left no report.
    """
    report = ctx.scratch / REPORT
    remove(report)
    words = ("pcb", "drc", "--schematic-parity", "--severity-all", "--format", "json", "--units", "mm",
             "-o", str(report), str(file))  # fmt: skip
    result = run_kicad(words, deadline, cwd=ctx.scratch, doing="checking the board")
    if not report.is_file():
        if explain is not None:
            explain()
        raise failed(result, "check the board", pcb_file, "open it in KiCad 9, which says more, and save it")
    try:
        return read_drc(report.read_text(encoding="utf-8", errors="replace"))
    except UnreadableReport as fault:
        raise ToolError(f"KiCad's report cannot be used: {fault}", kind="bad_report", where=pcb_file) from None


def _rules_file(workspace: Path, pcb_file: str, rule_set: str | None) -> RulesFile | None:
    path = rule_set or str(PurePosixPath(pcb_file).with_suffix(".kicad_dru"))
    if not (workspace / path).is_file():
        return None
    text = (workspace / path).read_text(encoding="utf-8", errors="replace")
    try:
        return RulesFile(path, text, read_rules(text))
    except BadExpression as fault:
        raise ToolError(
            f"The design rules in {path} cannot be read: {fault.why}. KiCad would use none of them, in silence",
            kind="bad_rules", where=f"{path}, line {fault.line}, column {fault.column}", fix="close the list there",
        ) from None  # fmt: skip


def _not_used(custom: RulesFile) -> ToolError:
    suspects = "; ".join(custom.rules.doubts[:3])
    return ToolError(
        f"KiCad does not understand the design rules in {custom.path} and uses none of its "
        f"{counted(len(custom.rules.names), 'rule')}; the board was not judged",
        kind="bad_rules",
        where=custom.path,
        fix=(f"suspicious: {suspects}. " if suspects else "")
        + "Check them in KiCad: Board Setup, Custom Rules, Check Rule Syntax",
    )


def _parity(workspace: Path, pcb_file: str) -> str:
    """Return whether board and schematic can be compared: KiCad finds no difference where it has no schematic."""
    schematic = PurePosixPath(pcb_file).with_suffix(".kicad_sch")
    if not (workspace / schematic).is_file():
        return f"there is no {schematic.name} beside the board"
    try:
        read_hierarchy(workspace, str(schematic))
    except BadSchematic as fault:
        return fault.message
    return TESTED


def _used(project: Project, project_file: str | None, custom: RulesFile | None, checked: Checked) -> RulesUsed:
    return RulesUsed(
        project_file, list(project.ignored_board_checks), project.board_exclusions_count,
        project.limits_mm or None, custom.path if custom else None,
        len(custom.rules.names) if custom else None, checked.custom_rules_loaded,
    )  # fmt: skip


def _answer(pcb_file: str, checked: Checked, severity: str, most: int, rules: RulesUsed, parity: str) -> DrcAnswer:
    violations = checked.violations
    errors, warnings = count(violations, "error"), count(violations, "warning")
    grouped = {
        group: sum(1 for each in violations if each.group == group and not each.excluded)
        for group in ("violations", "unconnected_items", "schematic_parity")
    }
    return DrcAnswer(
        pcb_file, not errors, grouped["violations"], grouped["unconnected_items"], grouped["schematic_parity"],
        parity, errors, warnings, sum(1 for each in violations if each.excluded), by_type(violations),
        told(violations, severity, most), rules,
    )  # fmt: skip


def _about_zones(board: Board) -> list[str]:
    if not board.empty_zones:
        return []
    nets = sorted({name or "no net" for name in board.empty_zones})
    return [
        f"{len(board.empty_zones)} of {board.zones_count} copper zones have no filled copper ({', '.join(nets[:5])}): "
        "they were checked as they are; fill them in KiCad (B) and save"
    ]


def _stopped(answer: DrcAnswer) -> list[str]:
    """Say where KiCad stopped counting."""
    kinds = [kind for kind, number in answer.by_type.items() if number >= KICAD_COUNTS_TO]
    return [f"KiCad stops at {KICAD_COUNTS_TO} findings of a kind: there may be more {', '.join(kinds)}"] * bool(kinds)


def _shortened(answer: DrcAnswer, violations: Sequence[Violation], severity: str) -> list[str]:
    wanted = sum(1 for each in violations if severity in ("all", each.severity))
    shown = len(answer.violations)
    return [f"{shown} of {wanted} findings are listed; pass a larger max_violations for the rest"] * (shown < wanted)


def _summary(answer: DrcAnswer, checked: Checked) -> str:
    verdict = "DRC passed, nothing blocks" if answer.passed else f"DRC blocks: {counted(answer.errors, 'error')}"
    parity = counted(answer.parity_issues, "parity issue") if answer.schematic_parity == TESTED else "parity not tested"
    counts = (
        f"{counted(answer.warnings, 'warning')}, {answer.unconnected_items} unconnected, {parity}, "
        f"{answer.excluded} accepted"
    )
    rules = answer.rules
    went_by = f"rules of {name_of(rules.project_file)}" if rules.project_file else "KiCad's default rules"
    if rules.custom_rules_file:
        how = "" if rules.custom_rules_loaded else " (use not proven)"
        went_by += f" and {rules.custom_rules_count} of {name_of(rules.custom_rules_file)}{how}"
    first = first_blocking(checked.violations)
    return f"{verdict} on {answer.pcb_file}; {counts}; {went_by}." + (f" First: {first}" if first else "")
