"""Read CSV: each row with the header's names beside it. What separates cells is found out."""

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator

from metaforge.knowledge.blocks import Block, Paragraph, Row
from metaforge.knowledge.refusals import damaged

_DELIMITERS = ",;\t|"
_SAMPLE_LINES = 40
_NUMBER = re.compile(r"[-+\u00b1~<>]?\s*\d[\d.,\s]*(?:[eE][-+]?\d+)?\s*\S{0,4}")


def read_csv(text: str, name: str) -> Iterator[Block]:
    """Yield a table's rows.

    Raises:
        ToolError: a cell has no end (`document_damaged`).
    """
    delimiter, width = _shape(text)
    header: tuple[str, ...] | None = None
    for line, cells in _rows(text, name, delimiter):
        if header is None:
            if len([cell for cell in cells if cell]) == 1 < width:
                # A title above the table.
                yield Paragraph(" ".join(cells).strip(), line)
                continue
            if _is_header(cells):
                header = cells
                continue
            header = ()
        yield Row(cells, header, line)


def _rows(text: str, name: str, delimiter: str) -> Iterator[tuple[int, tuple[str, ...]]]:
    reader = csv.reader(io.StringIO(text), delimiter=delimiter)
    begin = 1
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                yield begin, tuple(cell.strip() for cell in cells)
            begin = reader.line_num + 1
    except csv.Error as fault:
        raise damaged(name, "CSV", f"line {begin}: {fault}") from None


def _shape(text: str) -> tuple[str, int]:
    """Return what separates cells, and how many a row has: what most lines agree on."""
    lines = [line for line in text.split("\n", _SAMPLE_LINES)[:_SAMPLE_LINES] if line.strip()]
    best = (0.0, 1, ",")
    for delimiter in _DELIMITERS:
        try:
            widths = Counter(map(len, csv.reader(lines, delimiter=delimiter)))
        except csv.Error:
            continue
        width, agreeing = max(widths.items(), key=lambda found: (found[1], found[0]), default=(1, 0))
        if width > 1:
            best = max(best, (agreeing / max(sum(widths.values()), 1), width, delimiter))
    return best[2], best[1]


def _is_header(cells: tuple[str, ...]) -> bool:
    """Whether a first row names columns: no numbers in it, and hardly an empty or repeated cell."""
    named = [cell for cell in cells if cell]
    return (
        len(named) >= max(1, len(cells) - 1)
        and len(set(named)) == len(named)
        and not any(_NUMBER.fullmatch(cell) for cell in named)
    )
