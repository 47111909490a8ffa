"""The lines of a netlist as cards: continuations joined, comments gone, each with where it stands."""

import re
from dataclasses import dataclass

from metaforge.core.errors import ToolError


class BadNetlist(ToolError):
    """The netlist is damaged, or asks for what a netlist may not do."""

    default_kind = "bad_netlist"


@dataclass(frozen=True)
class Card:
    """One logical line.

    Attributes:
        text: continuations joined by one space, comments cut off.
        line: number of its first line in its file, from 1.
        file: the included file it stands in, relative to the workspace; empty for the netlist itself.
    """

    text: str
    line: int
    file: str = ""

    @property
    def words(self) -> list[str]:
        return self.text.split()

    @property
    def directive(self) -> str:
        """`.tran` for a line that starts with a dot, in lower case, else nothing."""
        return self.text.split(None, 1)[0].lower() if self.text.startswith(".") else ""

    def where(self) -> str:
        """Name the line for a message."""
        shown = self.text if len(self.text) <= 80 else self.text[:77] + "..."
        return f"line {self.line}{f' of {self.file}' if self.file else ''}: {shown}"


_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_PLAIN = str.maketrans({"\u00b5": "u", "\u03bc": "u", "\u00a0": " ", "\u2212": "-"})
"""Micro signs, the blank that does not break and the long minus: not every version of ngspice reads them."""
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
_COMMENT_INSIDE = re.compile(r"\s\$\s.*|\s\$$|;.*|\s//.*")
MAX_LINE_CHARACTERS = 2_000_000


def decode(content: bytes, name: str) -> str:
    """Return a netlist's text.

    Raises:
        BadNetlist: it is UTF-16 or holds control characters, as binary files do.
    """
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise BadNetlist(f"{name} is UTF-16 text", fix="save it as plain ASCII or UTF-8")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = content.decode("latin-1")
    text = text.replace("\r\n", "\n").replace("\r", "\n").translate(_PLAIN)
    if (odd := _CONTROL.search(text)) is not None:
        line = text.count("\n", 0, odd.start()) + 1
        raise BadNetlist(
            f"{name} holds control characters (byte {ord(odd[0]):#04x}), so it is no netlist as people write them",
            where=f"line {line}",
            fix="give a plain-text SPICE netlist without NUL or other control bytes",
        )
    return text


def cards_of(text: str, file: str = "", first_line: int = 1) -> list[Card]:
    """Split text into cards; blank and comment lines give none.

    Raises:
        BadNetlist: a continuation line has nothing to continue, or a line is far too long.
    """
    found: list[tuple[list[str], int]] = []
    for number, raw in enumerate(text.split("\n"), first_line):
        line = raw.strip()
        if not line or line[0] in "*#$;" or line.startswith("//"):
            continue
        line = without_comment(line)
        if line.startswith("+"):
            if not found:
                raise BadNetlist("A line starts with + but there is nothing before it", where=f"line {number}: {line}",
                                 fix="remove the +, or put the line it continues before it")  # fmt: skip
            found[-1][0].append(line[1:].strip())
        elif line:
            found.append(([line], number))
    cards = [Card(" ".join(filter(None, parts)), number, file) for parts, number in found]
    for card in cards:
        if len(card.text) > MAX_LINE_CHARACTERS:
            raise BadNetlist(f"A line is longer than {MAX_LINE_CHARACTERS:,} characters", where=f"line {card.line}",
                             fix="split the values over several sources")  # fmt: skip
    return cards


def without_comment(line: str) -> str:
    """Cut off a comment that ends a line: `; ...`, ` $ ...`, ` // ...`; quoted text stays."""
    covered = _QUOTED.sub(lambda quoted: "q" * len(quoted[0]), line)
    found = _COMMENT_INSIDE.search(covered)
    return line[: found.start()].rstrip() if found else line
