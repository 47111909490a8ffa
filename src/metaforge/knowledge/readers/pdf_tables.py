"""Make rows of a PDF's tables: of ruled ones by their cells, of others by columns that line up."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from metaforge.knowledge.readers.pdf_lines import Line

MAX_EDGES = 4_000
"""A page with more ruling lines is a drawing: looking for cells in it would take minutes."""
_MIN_LINES = 3
_MIN_CELLS = 3
_NUMBER = re.compile(r"[-+\u00b1\u2212~<>\u2264\u2265]?\s*\d[\d.,]*\s*\S{0,4}")


@dataclass(frozen=True)
class Table:
    """A table on a page.

    Attributes:
        box: left, top, right, bottom, pt.
        rows: its texts by column, the header's among them.
        header_rows: how many of the first name the columns; 0 where none does.
    """

    box: tuple[float, float, float, float]
    rows: tuple[tuple[str, ...], ...]
    header_rows: int
    page: int

    @property
    def header(self) -> tuple[str, ...]:
        """The columns' names; "Limits" over "Min" is "Limits Min"."""
        columns = zip(*self.rows[: self.header_rows], strict=True)
        return tuple(" ".join(dict.fromkeys(each for each in column if each)) for column in columns)

    def holds(self, word: dict[str, Any]) -> bool:
        x, y = (word["x0"] + word["x1"]) / 2, (word["top"] + word["bottom"]) / 2
        return bool(self.box[0] <= x <= self.box[2] and self.box[1] <= y <= self.box[3])


def ruled_tables(page: Any, number: int) -> list[Table]:
    """Return the tables of a pdfplumber page whose cells are drawn."""
    if len(page.edges) > MAX_EDGES:
        return []
    return [table for found in page.find_tables() if (table := _ruled(found, number))]


def _ruled(found: Any, page: int) -> Table | None:
    texts = found.extract()
    cells = [row.cells for row in found.rows]
    width = max(map(len, cells), default=0)
    if len(cells) < 2 or width < 2:
        return None
    boxes = [box for row in cells for box in row if box]
    # The narrowest cell of a column shows where it is: others reach over several.
    columns = [
        min((row[at] for row in cells if at < len(row) and row[at]), key=lambda box: box[2] - box[0], default=None)
        for at in range(width)
    ]
    by_box = {
        box: " ".join((text or "").split())
        for row, said in zip(cells, texts, strict=True)
        for box, text in zip(row, said, strict=True)
        if box
    }
    tops = [min((box for box in row if box), key=lambda box: box[3] - box[1]) for row in cells]
    rows = tuple(
        tuple(_text_at(column, top, boxes, by_box) for column in columns) for top in tops
    )  # fmt: skip
    rows = tuple(row for row in rows if any(row))
    if len(rows) < 2 or sum(sum(map(bool, row)) >= 2 for row in rows) < len(rows) / 2:
        return None
    return Table(found.bbox, rows, _header_rows(rows), page)


def _text_at(column: Any, row: Any, boxes: Sequence[Any], by_box: dict[Any, str]) -> str:
    """Return what the cell over a column and a row says: one over several is in each of them."""
    if column is None:
        return ""
    x, y = (column[0] + column[2]) / 2, row[1] + min(2.0, (row[3] - row[1]) / 2)
    return next((by_box[box] for box in boxes if box[0] <= x <= box[2] and box[1] <= y <= box[3]), "")


def _header_rows(rows: Sequence[tuple[str, ...]]) -> int:
    """Return how many rows name columns: one without numbers, and a second where the first groups columns."""
    if len(rows) < 2 or any(_NUMBER.fullmatch(cell) for cell in rows[0] if cell) or not _is_mostly_full(rows[0]):
        return 0
    groups = len({cell for cell in rows[0] if cell}) < sum(map(bool, rows[0]))
    return 2 if groups and len(rows) > 2 and not any(_NUMBER.fullmatch(cell) for cell in rows[1]) else 1


def _is_mostly_full(row: tuple[str, ...]) -> bool:
    return sum(map(bool, row)) * 2 > len(row)


def aligned_table(lines: Sequence[Line], begin: int) -> tuple[Table, int] | None:
    """Return a table without rulings that begins at a line, and the line after it."""
    end = begin
    while end < len(lines) and len(lines[end].cells) >= _MIN_CELLS and _is_below(lines, begin, end):
        end += 1
    if end - begin < _MIN_LINES:
        return None
    run = lines[begin:end]
    columns = _columns([span for line in run for span in line.spans])
    if len(columns) < _MIN_CELLS:
        return None
    rows = tuple(_by_column(line, columns) for line in run)
    box = (columns[0][0], run[0].top, columns[-1][1], run[-1].bottom)
    return Table(box, rows, min(_header_rows(rows), 1), run[0].page), end


def _is_below(lines: Sequence[Line], begin: int, at: int) -> bool:
    return at == begin or 0 < lines[at].top - lines[at - 1].top < 4 * lines[at].size


def _columns(spans: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Join spans that overlap: what is left apart are columns."""
    columns: list[tuple[float, float]] = []
    for left, right in sorted(spans):
        if columns and left < columns[-1][1]:
            columns[-1] = (columns[-1][0], max(right, columns[-1][1]))
        else:
            columns.append((left, right))
    return columns


def _by_column(line: Line, columns: list[tuple[float, float]]) -> tuple[str, ...]:
    texts = ["" for _ in columns]
    for cell, (left, _) in zip(line.cells, line.spans, strict=True):
        at = next(at for at, column in enumerate(columns) if column[0] <= left <= column[1])
        texts[at] = f"{texts[at]} {cell}".strip()
    return tuple(texts)
