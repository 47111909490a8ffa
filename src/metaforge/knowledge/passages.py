"""The unit of knowledge: one passage of a document, and where in it it stands."""

from dataclasses import dataclass
from typing import Literal

Kind = Literal["prose", "table_row", "metadata"]


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
    """What is indexed beside the text and not quoted: a table's header, "Part | Vmax (V)"."""
