"""Read Markdown: headings, paragraphs, items of lists, tables and code, with their lines; quoted as they stand."""

import re
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from typing import TYPE_CHECKING

from metaforge.knowledge.blocks import Block, Fact, Heading, Paragraph, Row

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.*?\n)(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)


def read_markdown(text: str) -> Iterator[Block]:
    """Yield a document's blocks."""
    line = 0
    if front := _FRONT_MATTER.match(text):
        yield Fact(front[1].strip(), 2)
        line = front[0].count("\n")
        text = text[front.end() :]
    yield from _Walk(_parser().parse(text), line + 1).blocks()


@cache
def _parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark").enable("table")
    # What stands inside a line is quoted as it stands.
    parser.core.ruler.enableOnly(["normalize", "block"])
    return parser


class _Walk:
    """Goes over the tokens once, knowing the list and the table it is in."""

    def __init__(self, tokens: "list[Token]", first_line: int) -> None:
        self._tokens = tokens
        self._first_line = first_line
        self._markers: list[str] = []
        """Of the items around, outermost first; empty once it has been written."""
        self._leads: list[str] = []
        self._said = ""
        self._cells: list[str] = []
        self._header: tuple[str, ...] = ()

    def blocks(self) -> Iterator[Block]:
        for at, token in enumerate(self._tokens):
            line = self._first_line + (token.map[0] if token.map else 0)
            match token.type:
                case "inline":
                    yield from self._inline(self._tokens[at - 1], token.content, line)
                case "fence" | "code_block":
                    yield Paragraph(token.content.rstrip("\n"), line + (token.type == "fence"), is_verbatim=True)
                case "html_block":
                    if text := _visible(token.content):
                        yield Paragraph(text, line)
                case "tr_close":
                    yield from self._row(at)
                case _:
                    self._enter_or_leave(token)

    def _inline(self, around: "Token", content: str, line: int) -> Iterator[Block]:
        if around.type == "heading_open":
            yield Heading(content.strip("# \t"), int(around.tag[1:]), line)
            return
        if around.type in ("td_open", "th_open"):
            self._cells.append(content)
            return
        marker = "".join(self._markers)
        self._markers = ["" for _ in self._markers]
        self._said = content
        yield Paragraph(f"{marker}{content}", line, lead=self._leads[-1] if self._leads else "")

    def _enter_or_leave(self, token: "Token") -> None:
        match token.type:
            case "bullet_list_open" | "ordered_list_open":
                said = self._said.strip()
                self._leads.append(said if said.endswith(":") else "")
            case "bullet_list_close" | "ordered_list_close":
                self._leads.pop()
                self._said = ""
            case "list_item_open":
                self._markers.append(f"{token.info}{token.markup} ")
            case "list_item_close":
                self._markers.pop()
            case "table_open":
                self._header = ()

    def _row(self, at: int) -> Iterator[Block]:
        cells, self._cells = tuple(self._cells), []
        if self._tokens[at + 1].type == "thead_close":
            self._header = cells
            return
        opened = next(each for each in reversed(self._tokens[:at]) if each.type == "tr_open")
        line = self._first_line + (opened.map[0] if opened.map else 0)
        yield Row(cells, self._header, line)


class _Visible(HTMLParser):
    """Gathers what a reader would see."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._hidden += tag in ("script", "style")

    def handle_endtag(self, tag: str) -> None:
        self._hidden -= tag in ("script", "style") and self._hidden > 0

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.parts.append(data)


def _visible(markup: str) -> str:
    parser = _Visible()
    parser.feed(markup)
    parser.close()
    return "".join(parser.parts).strip()
