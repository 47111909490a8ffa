"""What readers make of a document, whatever its format: headings, paragraphs, rows and facts, in reading order."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Heading:
    """Begins a section; those of a higher level lie inside it."""

    text: str
    level: int
    line: int | None = None
    page: int | None = None


@dataclass(frozen=True)
class Paragraph:
    """Sentences that belong together.

    Attributes:
        text: with the source's own line ends.
        is_verbatim: code and the like: line ends and indents stay.
        lead: what introduces it when it is an item of a list: "Never store it:".
    """

    text: str
    line: int | None = None
    page: int | None = None
    is_verbatim: bool = False
    lead: str = ""


@dataclass(frozen=True)
class Row:
    """One row of a table, with the table's header where it has one."""

    cells: tuple[str, ...]
    header: tuple[str, ...] = ()
    line: int | None = None
    page: int | None = None
    caption: str = ""


@dataclass(frozen=True)
class Fact:
    """Something that the file says about itself or its parts."""

    text: str
    line: int | None = None
    context: str = ""


Block = Heading | Paragraph | Row | Fact
