"""Electrical rule check of a schematic."""

from collections.abc import Mapping, Sequence
from statistics import median

from metaforge.adapters.kicad.answers import ErcAnswer, RulesUsed
from metaforge.adapters.kicad.hierarchy import read_hierarchy
from metaforge.adapters.kicad.mirror import mirrored
from metaforge.adapters.kicad.program import Deadline, failed, kicad, remove, run_kicad
from metaforge.adapters.kicad.project import project_of
from metaforge.adapters.kicad.verdict import by_type, count, counted, first_blocking, name_of, told
from metaforge.core.errors import ToolError
from metaforge.formats.kicad_report import UnreadableReport, Violation, read_erc
from metaforge.tools.context import Answer, ToolContext

REPORT = "erc.json"
WRONG_SCALE = 100.0
"""KiCad 9 writes the positions of its ERC report a hundred times too small."""
_LIBRARY = ("footprint_link_issues", "lib_symbol_issues")


def run_erc(schematic_file: str, severity_filter: str, max_violations: int, ctx: ToolContext) -> Answer[ErcAnswer]:
    """Check a schematic.

    Raises:
        ToolError: a file of the schematic or its project cannot be used, or KiCad left no report.
    """
    hierarchy = read_hierarchy(ctx.workspace, schematic_file)
    project, project_file = project_of(ctx.workspace, schematic_file)
    violations = check(schematic_file, hierarchy.places(), Deadline(ctx), ctx)
    errors, warnings = count(violations, "error"), count(violations, "warning")
    excluded = sum(1 for each in violations if each.excluded)
    answer = ErcAnswer(
        schematic_file, not errors, errors + warnings, errors, warnings, excluded, by_type(violations),
        told(violations, severity_filter, max_violations), hierarchy.instances_count,
        RulesUsed(project_file, list(project.ignored_schematic_checks), project.schematic_exclusions_count),
    )  # fmt: skip
    return Answer(
        answer,
        _summary(answer, violations),
        tuple([*hierarchy.warnings, *library_warnings(violations), *_shortened(answer, violations, severity_filter)]),
        next_step=f"kicad.render input_file={schematic_file} shows the sheet"
        if errors
        else f"kicad.export_netlist schematic_file={schematic_file}, or kicad.run_drc on the board",
        programs={"KiCad": kicad().version},
    )


def check(
    schematic_file: str, places: Mapping[str, tuple[float, float]], deadline: Deadline, ctx: ToolContext
) -> list[Violation]:
    """Run the check and return its findings, positions in mm.

    Args:
        schematic_file: the root schematic, relative to the workspace.
        places: where the schematic's items really are, by uuid.
    """
    return check_file(str(mirrored(schematic_file, ctx)), schematic_file, places, deadline, ctx)


def check_file(
    file: str, name: str, places: Mapping[str, tuple[float, float]], deadline: Deadline, ctx: ToolContext
) -> list[Violation]:
    """The same for a file that may lie elsewhere; `name` is what a caller knows it by."""
    report = ctx.scratch / REPORT
    remove(report)
    words = ("sch", "erc", "--severity-all", "--format", "json", "--units", "mm", "-o", str(report), file)
    result = run_kicad(words, deadline, cwd=ctx.scratch, doing="checking the schematic")
    if not report.is_file():
        raise failed(result, "check the schematic", name, "open it in KiCad 9, which says more, and save it")
    try:
        violations = read_erc(report.read_text(encoding="utf-8", errors="replace"))
    except UnreadableReport as fault:
        raise ToolError(f"KiCad's report cannot be used: {fault}", kind="bad_report", where=name) from None
    factor = position_factor(violations, places)
    return [each.scaled(factor) for each in violations]


def position_factor(violations: Sequence[Violation], places: Mapping[str, tuple[float, float]]) -> float:
    """Return what the report's positions are to be multiplied by: measured on items whose place is known."""
    ratios = [
        real / reported
        for each in violations
        for item in each.items
        if item.uuid in places
        for real, reported in zip(places[item.uuid], (item.x_mm, item.y_mm), strict=True)
        if abs(reported) > 1e-6 and abs(real) > 1e-6
    ]
    if ratios:
        return 1.0 if abs(median(ratios) - 1.0) < 0.01 else WRONG_SCALE
    # Pins have no place of their own in the file. Real sheets are hundreds of millimetres wide.
    reported_mm = [max(item.x_mm, item.y_mm) for each in violations for item in each.items]
    return 1.0 if reported_mm and max(reported_mm) > 12.0 else WRONG_SCALE


def library_warnings(violations: Sequence[Violation]) -> list[str]:
    """Say when findings are about this machine's libraries instead of the schematic."""
    absent = [
        each
        for each in violations
        if each.kind in _LIBRARY and not each.excluded and "current configuration does not include" in each.description
    ]
    names = sorted({each.description.rsplit("'", 2)[-2] for each in absent if each.description.count("'") >= 2})
    if not names:
        return []
    return [
        f"{len(absent)} findings say only that a library is not set up here ({', '.join(names[:5])}): name it in the "
        "project's library table; KiCad's own come with the packages kicad-symbols and kicad-footprints"
    ]


def _shortened(answer: ErcAnswer, violations: Sequence[Violation], severity: str) -> list[str]:
    wanted = sum(1 for each in violations if severity in ("all", each.severity))
    shown = len(answer.violations)
    return [f"{shown} of {wanted} violations are listed; pass a larger max_violations for the rest"] * (shown < wanted)


def _summary(answer: ErcAnswer, violations: Sequence[Violation]) -> str:
    verdict = "ERC passed, nothing blocks" if answer.passed else f"ERC blocks: {counted(answer.errors, 'error')}"
    counts = (
        f"{counted(answer.warnings, 'warning')}, {answer.excluded} accepted, {counted(answer.sheets_count, 'sheet')}"
    )
    went_by = f"rules of {name_of(answer.rules.project_file)}" if answer.rules.project_file else "KiCad's default rules"
    first = first_blocking(violations)
    return f"{verdict} in {answer.schematic_file}; {counts}; {went_by}." + (f" First: {first}" if first else "")
