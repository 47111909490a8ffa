"""Count a check's findings and tell them: what blocks first."""

from collections import Counter
from collections.abc import Sequence

from metaforge.adapters.kicad.answers import Place, ViolationTold
from metaforge.adapters.kicad.hints import FIXES
from metaforge.formats.kicad_report import Violation

FIRST_LENGTH = 120
"""Of the finding that a summary tells: it is to stand alone in 120 tokens."""


def told(violations: Sequence[Violation], severity: str, most: int) -> list[ViolationTold]:
    """Return what is shown: of the severity asked for, blocking ones first, at most so many."""
    wanted = [each for each in violations if severity in ("all", each.severity)]
    return [_told(each) for each in sorted(wanted, key=_rank)[:most]]


def _rank(each: Violation) -> tuple[bool, bool, bool, bool]:
    """Shorts first: what is not connected yet is seldom news."""
    is_short = each.kind in ("shorting_items", "tracks_crossing")
    return each.excluded, each.severity != "error", not is_short, each.group == "unconnected_items"


def _told(each: Violation) -> ViolationTold:
    items = [Place(item.description, [item.x_mm, item.y_mm]) for item in each.items]
    accepted = (each.comment or "accepted in the project") if each.excluded else None
    return ViolationTold(
        each.kind, each.severity, each.blocks, each.description, items, each.sheet or None, accepted,
        None if each.excluded else FIXES.get(each.kind),
    )  # fmt: skip


def by_type(violations: Sequence[Violation]) -> dict[str, int]:
    """Return how many there are of each kind, accepted ones left out, most frequent first."""
    return dict(Counter(each.kind for each in violations if not each.excluded).most_common())


def count(violations: Sequence[Violation], severity: str) -> int:
    """Return how many have a severity and are not accepted."""
    return sum(1 for each in violations if each.severity == severity and not each.excluded)


def counted(number: int, word: str) -> str:
    """Return a number with its word, such as `1 error` or `3 errors`."""
    return f"{number} {word}{'' if number == 1 else 's'}"


def first_blocking(violations: Sequence[Violation]) -> str:
    """Tell the first finding that blocks, in short, with where it is."""
    for each in sorted(violations, key=_rank):
        if each.blocks:
            where = f" at ({each.items[0].x_mm:g}, {each.items[0].y_mm:g}) mm" if each.items else ""
            words = f"{each.kind}, {each.description}"
            return f"{words if len(words) <= FIRST_LENGTH else words[: FIRST_LENGTH - 3] + '...'}{where}"
    return ""


def name_of(path: str) -> str:
    """Return a file's name without its folders."""
    return path.rpartition("/")[2]
