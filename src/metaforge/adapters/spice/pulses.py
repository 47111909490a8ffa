"""Write out what a PULSE source leaves out.

SPICE says that a pulse without a width lasts to the end of the run, and one without a period comes once. Some versions
of ngspice take the width as zero and the period as just long enough instead: a step becomes a triangle wave, without a
word.
"""

import re

from metaforge.adapters.spice.analysis import Analysis
from metaforge.adapters.spice.cards import Card
from metaforge.adapters.spice.values import read_value, spice_number

_PULSE = re.compile(r"\bpulse\b\s*(\(?)((?:[^()]|\{[^{}]*\})*)(\)?)", re.IGNORECASE)
_END = re.compile(r"\s(?:ac|dc|distof1|distof2|portnum|z0|trrandom|external)\b.*", re.IGNORECASE)
_FULL = 7


def completed(card: Card, analysis: Analysis) -> tuple[str, str]:
    """Return a card's text with the pulse's width and period in it, and a warning; where nothing is missing, its text.

    Args:
        card: of any element.
        analysis: a transient gives step and end, which are the defaults.
    """
    if card.text[0] not in "vViI" or analysis.kind != "transient" or not analysis.stop_seconds:
        return card.text, ""
    match = _PULSE.search(card.text)
    if match is None:
        return card.text, ""
    inside = match[2] if match[1] else _END.sub("", match[2])
    values = re.findall(r"\{[^{}]*\}|'[^']*'|[^\s,]+", inside)
    if not 2 <= len(values) < _FULL:
        return card.text, ""
    step, stop = spice_number(analysis.step_seconds), spice_number(analysis.stop_seconds)
    once = spice_number(2 * analysis.stop_seconds)
    filled = [*values, *["0", step, step, stop, once][len(values) - 2 :]]
    for place in (3, 4):
        if read_value(filled[place]) == 0:
            filled[place] = step
    start = match.start(1) if match[1] else match.start(2)
    end = match.end(3) if match[1] else match.start(2) + len(inside)
    text = f"{card.text[:start]}({' '.join(filled)}) {card.text[end:]}".rstrip()
    missing = "width and period" if len(values) < _FULL - 1 else "period"
    return text, (
        f"{card.words[0]}: PULSE leaves out its {missing}, which versions of ngspice read differently; it was read as "
        "one pulse" + (" that lasts to the end of the run" if len(values) < _FULL - 1 else "")
    )
