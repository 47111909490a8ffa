"""Read and write the S-expressions that KiCad's files are made of.

Numbers stay text: what is read and written again is unchanged. Where a file ends too early or holds something between
its lists, the fault says the line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TypeAlias

MAX_DEPTH = 200
_TOKEN = re.compile(r'\s+|([()])|"((?:[^"\\]|\\.)*)"|([^\s()"]+)|(.)', re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}


class Quoted(str):
    """Text that stood in quotes; other text is a keyword or a number."""

    __slots__ = ()


Node: TypeAlias = "list[str | Node]"
"""A list: its keyword, then text and lists."""


class BadExpression(ValueError):
    """The text is no S-expression.

    Attributes:
        why: what is wrong.
        line: where, from 1.
        column: where in that line, from 1.
    """

    def __init__(self, why: str, text: str, offset: int) -> None:
        self.why = why
        self.line = text.count("\n", 0, offset) + 1
        self.column = offset - (text.rfind("\n", 0, offset) + 1) + 1
        super().__init__(f"{why}, line {self.line}, column {self.column}")


def parse(text: str) -> Node:
    """Return the one list that a file holds.

    Raises:
        BadExpression: it holds none, several, or one that is not closed.
    """
    found = parse_all(text)
    if len(found) != 1:
        raise BadExpression(
            "the file holds no list" if not found else "something follows the file's one list", text, len(text)
        )
    return found[0]


def parse_all(text: str) -> list[Node]:
    """Return the lists of a file that holds several, such as design rules.

    Raises:
        BadExpression: a list is not closed, or text stands between lists.
    """
    top: Node = []
    stack: list[tuple[Node, int]] = []
    here = top
    for match in _TOKEN.finditer(text):
        kind = match.lastindex
        if kind is None:
            continue
        if kind == 3:
            here.append(match[3])
        elif kind == 2:
            here.append(_quoted(match[2]))
        elif kind == 4:
            raise BadExpression("a quoted text is not closed", text, match.start())
        elif match[1] == "(":
            new: Node = []
            here.append(new)
            stack.append((here, match.start()))
            here = new
        elif not stack:
            raise BadExpression("a list is closed that was not opened", text, match.start())
        else:
            here = stack.pop()[0]
        if len(stack) > MAX_DEPTH:
            raise BadExpression(f"lists are nested more than {MAX_DEPTH} deep", text, match.start())
    if stack:
        opened = text.count("\n", 0, stack[-1][1]) + 1
        raise BadExpression(f"the file ends inside a list opened in line {opened}", text, len(text))
    return _lists(top, text)


def _lists(top: Node, text: str) -> list[Node]:
    lists = [each for each in top if not isinstance(each, str)]
    if len(lists) < len(top):
        raise BadExpression("text stands outside any list", text, 0)
    return lists


def _quoted(inside: str) -> Quoted:
    return Quoted(_ESCAPED.sub(_unescaped, inside) if "\\" in inside else inside)


def _unescaped(match: re.Match[str]) -> str:
    return _ESCAPES.get(match[1], match[1])


def head(node: Node) -> str:
    """Return a list's keyword; empty where it has none."""
    first = node[0] if node else ""
    return first if isinstance(first, str) else ""


def children(node: Node, *names: str) -> Iterator[Node]:
    """Yield the lists directly inside one whose keyword is among `names`."""
    for each in node:
        if not isinstance(each, str) and each and each[0] in names:
            yield each


def child(node: Node, name: str) -> Node | None:
    """Return the first list inside with this keyword."""
    return next(children(node, name), None)


def texts(node: Node) -> list[str]:
    """Return the text of a list after its keyword, without the lists in it."""
    return [each for each in node[1:] if isinstance(each, str)]


def value(node: Node, name: str, default: str = "") -> str:
    """Return the first text of the list with this keyword inside, such as `A4` of `(paper "A4")`."""
    found = child(node, name)
    inside = texts(found) if found else []
    return inside[0] if inside else default


def numbers(node: Node, name: str) -> tuple[float, ...]:
    """Return the numbers of the list with this keyword inside, up to the first text that is none."""
    found = child(node, name)
    listed: list[float] = []
    for each in texts(found) if found else ():
        try:
            listed.append(float(each))
        except ValueError:
            break
    return tuple(listed)


def properties(node: Node) -> dict[str, str]:
    """Return a part's properties, name -> value."""
    found: dict[str, str] = {}
    for each in children(node, "property"):
        words = texts(each)
        # From version 9 on a private property says so before its name.
        if words and words[0] == "private" and not isinstance(words[0], Quoted):
            words = words[1:]
        if len(words) >= 2:
            found.setdefault(words[0], words[1])
    return found


def write(node: Node, indent: int = 0) -> str:
    """Return a list as text, one line for each list inside it."""
    start = "\t" * indent + "("
    words = [_written(each) for each in node if isinstance(each, str)]
    lists = [each for each in node if not isinstance(each, str)]
    if not lists:
        return f"{start}{' '.join(words)})"
    inner = "\n".join(write(each, indent + 1) for each in lists)
    return f"{start}{' '.join(words)}\n{inner}\n" + "\t" * indent + ")"


def _written(text: str) -> str:
    if isinstance(text, Quoted):
        escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
        return f'"{escaped}"'
    return text
