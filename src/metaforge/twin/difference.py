"""What differs between two bodies, field by field. Plain values, no I/O."""

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

ABSENT = object()
"""Stands for a value on the side that has none."""
_NAMES = ("name", "id", "ref", "item_key", "mpn")
_LONG_CHARS = 80


@dataclass(frozen=True)
class FieldChange:
    """One value that differs. `path` leads to it: `constraints[max_mass].limit`."""

    path: str
    before: Any
    after: Any

    @property
    def what(self) -> str:
        """added, removed or changed."""
        return "added" if self.before is ABSENT else "removed" if self.after is ABSENT else "changed"

    @property
    def is_text(self) -> bool:
        """Whether both sides are texts too long to stand beside each other."""
        both = isinstance(self.before, str) and isinstance(self.after, str)
        return both and ("\n" in self.before + self.after or max(len(self.before), len(self.after)) > _LONG_CHARS)

    def text_lines(self) -> list[str]:
        """Return the lines of a long text that differ, with one line around them, each after `+`, `-` or a space."""
        lines = difflib.unified_diff(self.before.splitlines(), self.after.splitlines(), n=1, lineterm="")
        return list(lines)[2:]

    def as_json(self) -> dict[str, Any]:
        """Return the wire form; the side that has no value is left out."""
        sides = {"before": self.before, "after": self.after}
        row = {"path": self.path, "what": self.what}
        return row | {side: value for side, value in sides.items() if value is not ABSENT}


def differences(before: Any, after: Any, path: str = "") -> Iterator[FieldChange]:
    """Yield what differs between two JSON values.

    Entries of lists are compared by their name, id or key where every entry has its own, else by their place.
    """
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for name in [*before, *(each for each in after if each not in before)]:
            where = f"{path}.{name}" if path else str(name)
            yield from differences(before.get(name, ABSENT), after.get(name, ABSENT), where)
    elif _is_list(before) and _is_list(after):
        yield from _list_differences(before, after, path)
    elif not _same(before, after):
        yield FieldChange(path, before, after)


def _list_differences(before: Sequence[Any], after: Sequence[Any], path: str) -> Iterator[FieldChange]:
    left, right = _by_name(before), _by_name(after)
    if left is None or right is None:
        left = {str(number): value for number, value in enumerate(before)}
        right = {str(number): value for number, value in enumerate(after)}
    for name in [*left, *(each for each in right if each not in left)]:
        yield from differences(left.get(name, ABSENT), right.get(name, ABSENT), f"{path}[{name}]")


def _by_name(values: Sequence[Any]) -> dict[str, Any] | None:
    if not values or not all(isinstance(value, Mapping) for value in values):
        return None if values else {}
    for field in _NAMES:
        names = [value.get(field) for value in values]
        if all(isinstance(name, str) and name for name in names) and len(set(names)) == len(names):
            return dict(zip(names, values, strict=True))
    return None


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple)


def _same(before: Any, after: Any) -> bool:
    if isinstance(before, bool) or isinstance(after, bool):
        return before is after
    return bool(before == after)
