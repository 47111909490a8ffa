"""Tool ids as people and models really write them: separator variants resolve, near misses are named."""

import re
from collections.abc import Iterable

_SEPARATORS = re.compile(r"[./_\-:]+")
_CLOSEST = 3
_SIMILARITY = 0.6


def fold(name: str) -> str:
    """Return a name with every separator alike: `twin/get_node` and `twin_get_node` fold to the same."""
    return _SEPARATORS.sub("_", name.strip().lower())


class NameIndex:
    """Exact ids first, then separator variants; an alias that fits two ids fits none."""

    def __init__(self, ids: Iterable[str]) -> None:
        self._ids = tuple(ids)
        self._exact = frozenset(self._ids)
        self._folded: dict[str, list[str]] = {}
        for each in self._ids:
            self._folded.setdefault(fold(each), []).append(each)

    def __len__(self) -> int:
        return len(self._ids)

    def matches(self, name: str) -> list[str]:
        """Return the ids that `name` may mean: one when it is clear, several when it is ambiguous."""
        if name in self._exact:
            return [name]
        return list(self._folded.get(fold(name), ()))

    def closest(self, name: str) -> list[str]:
        """Return up to three ids that look most like `name`, best first."""
        import difflib

        wanted = fold(name)
        by_whole = difflib.get_close_matches(wanted, self._folded, n=_CLOSEST, cutoff=_SIMILARITY)
        found = [each for key in by_whole for each in self._folded[key]]
        # A right verb under the wrong adapter is a common slip: `cad.create_parametric`.
        verb = name.rpartition(".")[2]
        found += [each for each in self._ids if each.rpartition(".")[2] == verb and each not in found]
        return found[:_CLOSEST]
