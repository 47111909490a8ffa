"""Numbers with units, so that 15 g and 0.015 kg are one value. Units are read by pint, loaded at the first one."""

import re
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from metaforge.core.errors import ToolError

Dimension = tuple[tuple[str, float], ...]
_TOLERANCE = 1e-9
_UNIT_CHARS = re.compile(r"[A-Za-zµμΩ°%$€£²³·*/^().0-9 -]{1,40}")
_LONG_NUMBER = re.compile(r"\d{3}|\d\.\d|[*^]{3}|\^ *\(|\*\* *\(")

# What engineers write and pint spells otherwise.
_SPELLINGS = {
    "°C": "degC", "°F": "degF", "°": "deg", "%": "percent", "Ω": "ohm", "μ": "µ", "$": "USD", "€": "EUR", "£": "GBP",
    "²": "^2", "³": "^3", "·": "*", "℃": "degC",
}  # fmt: skip
_ALIASES = {
    "C": "degC", "F": "degF", "Nm": "N*m", "Nmm": "N*mm", "kNm": "kN*m", "mNm": "mN*m", "lbs": "lb", "rpm": "rpm",
    "VDC": "V", "VAC": "V", "Vdc": "V", "Vrms": "V", "Arms": "A", "ohms": "ohm", "in": "inch", "sec": "s",
}  # fmt: skip
_OWN_DIMENSIONS = {
    "USD": "usd", "EUR": "eur", "GBP": "gbp", "dB": "decibel", "dBA": "decibel_a", "dBm": "decibel_mw",
    "RH": "humidity",
}  # fmt: skip

SUFFIXES = {
    "mm": "mm", "mm2": "mm^2", "mm3": "mm^3", "mm4": "mm^4", "mm5": "mm^5", "m": "m", "um": "um", "n": "N", "kn": "kN",
    "nm": "N*m", "nmm": "N*mm", "pa": "Pa", "kpa": "kPa", "mpa": "MPa", "gpa": "GPa", "kg": "kg", "g": "g",
    "kg_m3": "kg/m^3", "kg_mm2": "kg*mm^2", "hz": "Hz", "khz": "kHz", "mhz": "MHz", "v": "V", "mv": "mV", "a": "A",
    "ma": "mA", "ohm": "ohm", "deg": "deg", "rad": "rad", "c": "degC", "k": "K", "w": "W", "mw": "mW",
    "w_mk": "W/(m*K)",
    "w_m2k": "W/(m^2*K)", "w_m2": "W/m^2", "w_mm2": "W/mm^2", "j": "J", "j_kgk": "J/(kg*K)", "per_k": "1/K",
    "mm_s2": "mm/s^2", "m_s2": "m/s^2", "m_s": "m/s", "mm_s": "mm/s", "seconds": "s", "s": "s", "ms": "ms",
    "min": "min",
    "hours": "hour", "mb": "MiB", "bytes": "byte", "usd": "USD", "eur": "EUR", "percent": "percent", "ratio": "",
    "count": "",
    "factor": "", "db": "dB", "rpm": "rpm", "mah": "mA*hour", "wh": "W*hour",
}  # fmt: skip
"""What a name's ending says of its number: mass_kg is in kg."""


@dataclass(frozen=True)
class Unit:
    """How a number in this unit becomes one in base units: `value * factor + offset`."""

    text: str
    factor: float
    offset: float
    dimension: Dimension


@dataclass(frozen=True)
class Quantity:
    """A number in base units (SI) with its dimension; an empty dimension is a plain number."""

    value: float
    dimension: Dimension = ()

    @classmethod
    def of(cls, number: float, unit: str = "") -> "Quantity":
        """Make one of a number in a unit; raises ToolError `unknown_unit`."""
        found = read_unit(unit)
        return cls(number * found.factor + found.offset, found.dimension)

    def same_kind(self, other: "Quantity") -> bool:
        """Whether the two can be compared and added."""
        return self.dimension == other.dimension

    def equals(self, other: "Quantity") -> bool:
        """Whether the two are one value, whatever units they were written in."""
        return self.same_kind(other) and close(self.value, other.value)

    def in_unit(self, unit: Unit) -> float:
        """Return the number in a unit of the same kind."""
        return (self.value - unit.offset) / unit.factor


def close(a: float, b: float) -> bool:
    """Whether two numbers differ by no more than conversion can."""
    return abs(a - b) <= _TOLERANCE * max(abs(a), abs(b), 1e-300)


@lru_cache(maxsize=1024)
def read_unit(text: str) -> Unit:
    """Read a unit such as `MPa`, `N/mm^2`, `°C`, `%`, `kg·m²`; an empty text is no unit.

    Raises:
        ToolError: `unknown_unit`.
    """
    plain = text.strip()
    if not plain:
        return Unit("", 1.0, 0.0, ())
    if plain in _OWN_DIMENSIONS or plain in ("$", "€", "£"):
        name = {"$": "USD", "€": "EUR", "£": "GBP"}.get(plain, plain)
        return Unit(plain, 1.0, 0.0, ((_OWN_DIMENSIONS[name], 1.0),))
    if not _UNIT_CHARS.fullmatch(plain) or _LONG_NUMBER.search(plain):
        raise _unknown(text)
    spelled = plain
    for written, meant in _SPELLINGS.items():
        spelled = spelled.replace(written, meant)
    spelled = re.sub(r"[A-Za-zµ]+", lambda found: _ALIASES.get(found[0], found[0]), spelled)
    return _read_by_pint(text, spelled)


def _read_by_pint(text: str, spelled: str) -> Unit:
    registry, faults = _pint()
    try:
        unit = registry.parse_units(spelled)
        zero = registry.Quantity(0.0, unit).to_base_units()
        one = registry.Quantity(1.0, unit).to_base_units()
    except faults as fault:
        raise _unknown(text) from fault
    dimension = tuple(sorted((str(name), float(power)) for name, power in unit.dimensionality.items()))
    return Unit(text, float(one.magnitude - zero.magnitude), float(zero.magnitude), dimension)


@cache
def _pint() -> tuple[Any, tuple[type[Exception], ...]]:
    import tokenize

    import pint

    # pint reads text as Python tokens; what its reader makes of nonsense is of many kinds.
    faults = (
        pint.PintError, tokenize.TokenError, SyntaxError, ValueError, TypeError, AttributeError, KeyError,
        IndexError, ZeroDivisionError, OverflowError, AssertionError,
    )  # fmt: skip
    return pint.UnitRegistry(), faults


def _unknown(text: str) -> ToolError:
    return ToolError(
        f"{text[:40]!r} is no unit",
        kind="unknown_unit", where=text[:40],
        fix="Write it as in 15 g, 250 MPa, 0.5 N/mm^2, 40 degC, 12 V, 30 %, 5 USD; capitals count (MPa, not Mpa)",
    )  # fmt: skip


def split_name(name: str) -> tuple[str, str | None]:
    """Split a name into what it measures and the unit its ending tells.

    Returns:
        (`mass`, `kg`) for mass_kg; None for a unit where the ending tells none.
    """
    parts = name.split("_")
    for count in (3, 2, 1):
        ending = "_".join(parts[-count:])
        if len(parts) > count and ending in SUFFIXES:
            return "_".join(parts[:-count]), SUFFIXES[ending]
    return name, None


def dimension_words(dimension: Dimension) -> str:
    """Say a dimension: `mass * length^-3`, or `no unit`."""
    words = [name.strip("[]") + ("" if power == 1 else f"^{power:g}") for name, power in dimension]
    return " * ".join(words) or "no unit"
