"""Read a CalculiX/Abaqus input deck (.inp) into cards. Text in, cards out; reading included files is the caller's.

A card is a keyword line (`*ELEMENT, TYPE=C3D10, ELSET=E`) with the data lines below it. Keywords and parameter
names are upper-cased and their blanks closed up; `**` lines are comments; a keyword line that ends with a comma
goes on in the next line.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from metaforge.core.errors import ToolError

MAX_LINES = 20_000_000
MAX_INCLUDE_DEPTH = 8
MAX_LINE_LENGTH = 1300
"""CalculiX reads 1320 characters and takes the rest as a new line, which could start with a keyword."""

Include = Callable[[str, int], str]
"""Return the text of an included file, given the name in the deck and its line; raises ToolError to refuse."""


class BadDeck(ToolError):
    """The deck cannot be read as one."""

    default_kind = "bad_deck"


@dataclass(frozen=True)
class Card:
    """One keyword with its data.

    Attributes:
        keyword: `NODE`, `SOLID SECTION`, ... upper-case, single blanks.
        parameters: upper-case name -> value as written, empty for flags.
        line: line number of the keyword in its file, from 1.
        rows: data lines, comments and blank lines left out.
        row_lines: their line numbers.
        file: name of the included file it stands in; empty for the deck itself.
        text: the keyword line as written.
    """

    keyword: str
    parameters: dict[str, str]
    line: int
    rows: list[str] = field(default_factory=list)
    row_lines: list[int] = field(default_factory=list)
    file: str = ""
    text: str = ""

    def name(self, parameter: str) -> str:
        """Return a set, material or surface name the way CalculiX compares them: upper-case."""
        return self.parameters.get(parameter, "").strip().strip('"').upper()

    def where(self, row: int | None = None) -> str:
        """Say where the card, or one of its data lines, stands."""
        line = self.line if row is None else self.row_lines[row]
        return f"line {line}" + (f" of {self.file}" if self.file else "") + f", *{self.keyword}"


def refuse_include(name: str, line: int) -> str:
    """The include reader of callers that allow none."""
    raise BadDeck(f"The deck includes {name!r}", where=f"line {line}", fix="put everything into one file")


def read_cards(text: str, include: Include = refuse_include) -> list[Card]:
    """Read a deck.

    Args:
        text: the deck.
        include: reads `*INCLUDE` files.

    Raises:
        BadDeck: it holds NUL bytes, data before the first keyword, or includes nested too deep.
    """
    cards = list(_cards(text, include, "", 0))
    if not cards:
        raise BadDeck("The file holds no keyword (no line starts with one *)", fix="give a CalculiX .inp deck or mesh")
    return cards


def _cards(text: str, include: Include, file: str, depth: int) -> Iterator[Card]:
    if depth > MAX_INCLUDE_DEPTH:
        raise BadDeck(f"*INCLUDE nested more than {MAX_INCLUDE_DEPTH} deep", where=file, fix="flatten the deck")
    _check_text(text, file)
    card: Card | None = None
    lines = text.split("\n")
    number = 0
    while number < len(lines):
        line = lines[number].strip()
        number += 1
        if not line or line.startswith("**"):
            continue
        if not line.startswith("*"):
            if card is None:
                raise BadDeck(
                    f"Data before the first keyword: {line[:40]!r}",
                    where=f"line {number} {file}".strip(),
                    fix="start with a keyword such as *NODE",
                )
            card.rows.append(line)
            card.row_lines.append(number)
            continue
        if card is not None:
            yield card
            card = None
        start = number
        line, number = _whole_keyword(lines, number)
        keyword, parameters = _keyword(line)
        if squeezed(keyword).startswith("INCLUDE"):
            name = parameters.get("INPUT", "").strip().strip('"')
            yield from _cards(include(name, start), include, name, depth + 1)
            continue
        card = Card(keyword, parameters, start, file=file, text=line)
    if card is not None:
        yield card


def _whole_keyword(lines: list[str], number: int) -> tuple[str, int]:
    """Return the keyword line above `number`, with the lines it goes on in, and the number of the line after it."""
    start, line = number, lines[number - 1].strip()
    while line.endswith(",") and number < len(lines):
        line += lines[number].strip()
        number += 1
    if len(line) > MAX_LINE_LENGTH:
        raise BadDeck(
            f"A keyword goes on over more than {MAX_LINE_LENGTH} characters", where=f"line {start}", fix="shorten it"
        )
    return line, number


def _check_text(text: str, file: str) -> None:
    named = file or "the deck"
    if max(map(len, text.split("\n"))) > MAX_LINE_LENGTH:
        number = next(n for n, line in enumerate(text.split("\n"), start=1) if len(line) > MAX_LINE_LENGTH)
        raise BadDeck(
            f"{named} has a line of more than {MAX_LINE_LENGTH} characters",
            where=f"line {number}",
            fix="break the line",
        )
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise BadDeck(
            f"{named} holds a NUL byte", where=f"line {line}", fix="write the deck as plain text without NUL bytes"
        )
    if text.count("\n") > MAX_LINES:
        raise BadDeck(f"{named} has more than {MAX_LINES:,} lines", fix="coarsen the mesh")


def _keyword(line: str) -> tuple[str, dict[str, str]]:
    parts = _split(line[1:])
    keyword = " ".join(parts[0].upper().split())
    parameters: dict[str, str] = {}
    for part in parts[1:]:
        name, _, value = part.partition("=")
        if name.strip():
            parameters["".join(name.upper().split())] = value.strip()
    return keyword, parameters


def squeezed(keyword: str) -> str:
    """Return a keyword without blanks: CalculiX leaves them out before it compares, and compares beginnings only."""
    return keyword.replace(" ", "")


def _split(line: str) -> list[str]:
    """Split at commas outside quotes: file names may hold commas."""
    if '"' not in line:
        return line.split(",")
    parts, quoted = [""], False
    for character in line:
        quoted ^= character == '"'
        if character == "," and not quoted:
            parts.append("")
        else:
            parts[-1] += character
    return parts


def numbers(row: str) -> list[float]:
    """Return the numbers of a data line; blank fields are zero; Fortran's `1.d3` is read.

    Raises:
        ValueError: a field is no number.
    """
    return [_number(part) for part in row.rstrip().rstrip(",").split(",")]


def _number(text: str) -> float:
    text = text.strip()
    if not text:
        return 0.0
    try:
        return float(text)
    except ValueError:
        return float(text.lower().replace("d", "e"))


def fields(row: str) -> list[str]:
    """Return the fields of a data line, stripped, trailing empty ones left out."""
    parts = [part.strip() for part in row.split(",")]
    while parts and not parts[-1]:
        parts.pop()
    return parts
