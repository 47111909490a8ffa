"""Lists a part at a time, with the part in the address."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from starlette.datastructures import URL
from starlette.requests import Request

T = TypeVar("T")
MAX_START = 1_000_000


@dataclass(frozen=True)
class Part:
    """Rows `start` to `start + count` of a list; `total` where it is known, else whether there is more."""

    url: URL
    start: int
    count: int
    total: int = 0

    @classmethod
    def of(cls, request: Request, count: int) -> "Part":
        """Read which part a request asks for; the first where it says nothing sensible."""
        text = request.query_params.get("start", "0")
        return cls(request.url, min(int(text), MAX_START) if text.isascii() and text.isdigit() else 0, count)

    def with_total(self, total: int) -> "Part":
        """Return the same part of a list of this length."""
        return replace(self, total=total)

    @property
    def last(self) -> int:
        """The number of the last row shown, from 1."""
        return min(self.start + self.count, self.total)

    @property
    def earlier(self) -> str:
        """The address of the part before; empty on the first."""
        return self._at(max(self.start - self.count, 0)) if self.start else ""

    @property
    def later(self) -> str:
        """The address of the part after; empty on the last."""
        return self._at(self.start + self.count) if self.start + self.count < self.total else ""

    def _at(self, start: int) -> str:
        changed = self.url.include_query_params(start=start) if start else self.url.remove_query_params("start")
        return changed.path + (f"?{changed.query}" if changed.query else "")


def part_of(request: Request, rows: Sequence[T], count: int) -> tuple[Sequence[T], Part]:
    """Return the rows that a request asks for, and which part they are."""
    part = Part.of(request, count).with_total(len(rows))
    return rows[part.start : part.start + count], part
