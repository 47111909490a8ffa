"""Read plain text: paragraphs between empty lines, and the lines among them that are headings."""

import re
from collections.abc import Iterator

from metaforge.knowledge.blocks import Block, Heading, Paragraph

_UNDERLINE = re.compile(r"([=\-~^#*])\1{2,}\s*")
_NUMBERED = re.compile(r"(\d{1,2}(?:\.\d{1,3}){0,4})\.?\s+[^\W\d_].*")
_HEADING_WORDS = 12


def read_plain(text: str) -> Iterator[Block]:
    """Yield a text's blocks. A line alone is a heading when it is underlined, numbered or in capitals."""
    number = 1
    lines = text.split("\n")
    while number <= len(lines):
        end = number
        while end <= len(lines) and lines[end - 1].strip():
            end += 1
        if end > number:
            yield from _paragraph(lines[number - 1 : end - 1], number)
        number = end + 1


def _paragraph(lines: list[str], number: int) -> Iterator[Block]:
    if len(lines) >= 2 and (found := _UNDERLINE.fullmatch(lines[1])) and len(lines[0].split()) <= _HEADING_WORDS:
        yield Heading(lines[0].strip(), 1 if found[1] in "=#*" else 2, number)
        if len(lines) > 2:
            yield from _paragraph(lines[2:], number + 2)
        return
    if len(lines) == 1 and (level := _level(lines[0].strip())):
        yield Heading(lines[0].strip(), level, number)
        return
    yield Paragraph("\n".join(lines), number)


def _level(line: str) -> int:
    """Return a heading's level; 0 for a line that is none."""
    if len(line.split()) > _HEADING_WORDS or line.endswith((".", ",", ";", ":", "!", "?")):
        return 0
    if found := _NUMBERED.fullmatch(line):
        return found[1].count(".") + 1
    letters = [letter for letter in line if letter.isalpha()]
    return int(len(letters) >= 4 and len(line.split()) >= 2 and all(letter.isupper() for letter in letters))
