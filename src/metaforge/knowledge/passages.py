"""The unit of knowledge: one passage of a document, and where in it it stands."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Kind = Literal["prose", "table_row", "metadata"]

CELLS_APART = " | "
"""Between the cells of a row, in its text and in the header that is its context."""


@dataclass(frozen=True)
class Passage:
    """What is indexed, and quoted back word for word."""

    text: str
    heading: str = ""
    """The headings above it, outermost first: "Power > Regulator"."""
    page: int | None = None
    """Counted from 1, where the format has pages."""
    line: int | None = None
    """The line of the source where it begins, counted from 1, where the format has lines."""
    kind: Kind = "prose"
    context: str = ""
    """What is indexed beside the text and not quoted: a row's header, the sentence before, a list's first words."""


def join_row(cells: Sequence[str]) -> str:
    """Return cells as one text; empty ones keep their place."""
    return CELLS_APART.join(" ".join(cell.split()).replace("|", "\\|") for cell in cells)


def split_row(text: str) -> list[str]:
    """Return the cells that `join_row` joined."""
    return [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", text)]
