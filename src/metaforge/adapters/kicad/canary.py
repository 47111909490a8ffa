"""Learn whether KiCad took a board's own rules.

A rules file that it does not understand is passed over in silence, all of it. So one rule is added that must be broken:
when its violation is missing, the rules were not used.
"""

import re
from collections.abc import Sequence

from metaforge.formats.kicad_report import Violation

NAME = "metaforge-rules-are-used"
_RULE = (
    f'\n(rule "{NAME}" (severity error) (constraint assertion "A.Type == \'Nothing\'") '
    f"(condition \"A.Type == 'Text' && A.Text == '{NAME}'\"))\n"
)
_LAYER = re.compile(r'\(\d+\s+"?(Cmts\.User|Dwgs\.User|Eco1\.User|Eco2\.User)"?\s')
_FAR_MM = -500


def with_canary(board: str, rules: str) -> tuple[str, str, bool]:
    """Return a board and its rules with what shows their use, and whether it can show on this board."""
    layer = _LAYER.search(board)
    if layer:
        item = (
            f'(gr_text "{NAME}" (at {_FAR_MM} {_FAR_MM}) (layer "{layer[1]}") '
            "(effects (font (size 1.27 1.27) (thickness 0.2))))"
        )
        board = f"{board.rstrip()[:-1]}{item}\n)\n"
    return board, rules + _RULE, layer is not None


def without_canary(violations: Sequence[Violation]) -> tuple[list[Violation], bool]:
    """Return the findings without the one that was provoked, and whether it was there."""
    kept = [each for each in violations if not any(NAME in item.description for item in each.items)]
    return kept, len(kept) < len(violations)
