"""Bill of materials of a schematic."""

import csv
import io
import json
from dataclasses import asdict
from pathlib import PurePosixPath

from metaforge.adapters.kicad.answers import BomAnswer, BomLine
from metaforge.adapters.kicad.hierarchy import read_hierarchy
from metaforge.adapters.kicad.mirror import mirrored, unmirrored
from metaforge.adapters.kicad.outputs import named, without_clock
from metaforge.adapters.kicad.program import Deadline, failed, kicad, remove, run_kicad
from metaforge.adapters.kicad.verdict import counted
from metaforge.core.errors import ToolError
from metaforge.tools.context import Answer, OutputFile, ToolContext

GROUPS = {"reference": "", "value": "Value", "footprint": "Footprint", "value_footprint": "Value,Footprint"}
MEDIA = {"csv": "text/csv", "xml": "application/xml", "json": "application/json"}
MOST_LINES = 200
_COLUMNS = ("Reference", "Value", "Footprint", "${QUANTITY}", "${DNP}")


def export_bom(
    schematic_file: str,
    output_format: str,
    group_by: str,
    fields: list[str],
    exclude_dnp: bool,
    output_path: str | None,
    ctx: ToolContext,
) -> Answer[BomAnswer]:
    """Write the parts of a schematic, one line for each group.

    Raises:
        ToolError: a sheet cannot be used, or KiCad listed something else than it was asked for.
    """
    hierarchy = read_hierarchy(ctx.workspace, schematic_file)
    deadline = Deadline(ctx)
    lines = _lines(schematic_file, group_by, fields, exclude_dnp, deadline, ctx)
    if output_format == "csv":
        text = _as_csv(lines, fields)
    elif output_format == "json":
        text = json.dumps({"source": schematic_file, "lines": [_plain(line) for line in lines]}, indent=1) + "\n"
    else:
        text = _as_xml(schematic_file, deadline, ctx)
    content = text.encode()
    path = named(output_path, schematic_file, f"-bom.{output_format}", content, ctx)
    ctx.output_file(str(path)).write_bytes(content)
    return _answer(path, output_format, lines, hierarchy.warnings, group_by)


def _lines(
    schematic_file: str, group_by: str, fields: list[str], exclude_dnp: bool, deadline: Deadline, ctx: ToolContext
) -> list[BomLine]:
    target = ctx.scratch / "bom.csv"
    remove(target)
    columns = [*_COLUMNS, *fields]
    labels = ["references", "value", "footprint", "quantity", "dnp", *(f"field{n}" for n in range(len(fields)))]
    words = (
        "sch", "export", "bom", "--fields", ",".join(columns), "--labels", ",".join(labels),
        "--group-by", GROUPS[group_by], "--ref-range-delimiter", "", "--sort-field", "Reference",
        *(["--exclude-dnp"] if exclude_dnp else []), "-o", str(target), str(mirrored(schematic_file, ctx)),
    )  # fmt: skip
    result = run_kicad(words, deadline, cwd=ctx.scratch, doing="listing the parts")
    if not target.is_file():
        raise failed(result, "list the parts", schematic_file, "open the schematic in KiCad 9, which says more")
    lines: list[BomLine] = []
    for row in csv.DictReader(io.StringIO(target.read_text(encoding="utf-8", errors="replace"))):
        references = [part.strip() for part in row["references"].split(",") if part.strip()]
        extra = {name: row[f"field{n}"] for n, name in enumerate(fields)}
        line = BomLine(
            references, row["value"], row["footprint"], int(row["quantity"] or 0), bool(row["dnp"]), extra or None
        )
        if line.quantity != len(references):
            raise ToolError(
                f"KiCad counts {line.quantity} parts on the line of {', '.join(references[:5])}, which names "
                f"{len(references)}",
                kind="bad_report", where=schematic_file, fix="annotate the schematic: two parts share a reference",
            )  # fmt: skip
        lines.append(line)
    return lines


def _plain(line: BomLine) -> dict[str, object]:
    return {name: value for name, value in asdict(line).items() if value is not None}


def _as_csv(lines: list[BomLine], fields: list[str]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["References", "Value", "Footprint", "Quantity", "DNP", *fields])
    for line in lines:
        extra = [(line.fields or {}).get(name, "") for name in fields]
        dnp = "DNP" if line.dnp else ""
        writer.writerow([", ".join(line.references), line.value, line.footprint, line.quantity, dnp, *extra])
    return text.getvalue()


def _as_xml(schematic_file: str, deadline: Deadline, ctx: ToolContext) -> str:
    """Return KiCad's own XML, which BOM scripts read: every part, not grouped."""
    target = ctx.scratch / "bom.xml"
    remove(target)
    words = ("sch", "export", "python-bom", "-o", str(target), str(mirrored(schematic_file, ctx)))
    result = run_kicad(words, deadline, cwd=ctx.scratch, doing="writing XML")
    if not target.is_file():
        raise failed(result, "write the XML", schematic_file, "open the schematic in KiCad 9, which says more")
    return unmirrored(without_clock(target.read_text(encoding="utf-8", errors="replace")), ctx)


def _answer(
    path: PurePosixPath, output_format: str, lines: list[BomLine], warnings: list[str], group_by: str
) -> Answer[BomAnswer]:
    parts = sum(line.quantity for line in lines)
    dnp = sum(line.quantity for line in lines if line.dnp)
    without = [line.references[0] for line in lines if not line.footprint]
    told = [*warnings]
    if without:
        told.append(f"{counted(len(without), 'line')} without a footprint: {', '.join(without[:8])}")
    if output_format == "xml" and group_by != "reference":
        told.append("the XML lists every part, as BOM scripts expect; the lines of this answer are grouped")
    if len(lines) > MOST_LINES:
        told.append(f"{MOST_LINES} of {len(lines)} lines are told here; the file has all")
    answer = BomAnswer(str(path), output_format, parts, len(lines), dnp, lines[:MOST_LINES])
    grouped = "one line per part" if group_by == "reference" else f"grouped by {group_by.replace('_', ' and ')}"
    return Answer(
        answer,
        f"BOM {path}: {counted(parts, 'part')} in {counted(len(lines), 'line')}, {grouped}, {dnp} marked DNP.",
        tuple(told),
        files=(OutputFile(path, MEDIA[output_format], "bom"),),
        programs={"KiCad": kicad().version},
    )
