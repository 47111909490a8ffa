"""Read what only CalculiX's print file (.dat) holds: frequencies and buckling factors.

Versions print different tables, so tables are found by their headings, never by position.
"""

import re
from dataclasses import dataclass

_SPACED = {
    "frequency": "E I G E N V A L U E",
    "buckling": "B U C K L I N G   F A C T O R",
    "mass": "E F F E C T I V E   M O D A L",
}
_ROW = re.compile(r"^\s*(\d+)((?:\s+[-+]?(?:\d+\.?\d*(?:E[-+]?\d+)?|nan|inf\w*))+)\s*$", re.IGNORECASE)


@dataclass(frozen=True)
class Mode:
    """One eigenvalue: `eigenvalue` in 1/s2, negative for an unstable or rigid-body motion."""

    number: int
    eigenvalue: float
    frequency_hz: float


def read_frequencies(text: str) -> list[Mode]:
    """Return the modes of the last eigenvalue table; none when there is no table."""
    return [Mode(number, values[0], values[2]) for number, values in _table(text, "frequency") if len(values) >= 3]


def read_buckling_factors(text: str) -> list[float]:
    """Return the buckling factors of the last table: load times factor is the critical load."""
    return [values[0] for _, values in _table(text, "buckling") if values]


def read_effective_mass(text: str) -> list[tuple[int, tuple[float, ...]]]:
    """Return per mode the effective modal mass in x, y, z (t) and about them (t mm2)."""
    return [(number, tuple(values[:6])) for number, values in _table(text, "mass") if len(values) >= 6]


def _table(text: str, name: str) -> list[tuple[int, list[float]]]:
    start = text.rfind(_SPACED[name])
    if start < 0:
        return []
    rows: list[tuple[int, list[float]]] = []
    for line in text[start:].splitlines()[1:]:
        if match := _ROW.match(line):
            rows.append((int(match[1]), [float(word) for word in match[2].split()]))
        elif rows and line.strip():
            break
    return rows
