"""SPICE's own way of writing numbers: what it reads, and where that is not what was meant."""

import math
import re
from dataclasses import dataclass
from decimal import Decimal

POWERS = {"t": 12, "g": 9, "meg": 6, "k": 3, "m": -3, "u": -6, "n": -9, "p": -12, "f": -15}
MIL = 25.4e-6
MICRO_SIGNS = "µμ"

_NUMBER = re.compile(r"(?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?)(?P<rest>.*)", re.IGNORECASE | re.DOTALL)
_SCALE = re.compile(r"meg|mil|[tgkmunpf]", re.IGNORECASE)
_DIGIT_INSIDE = re.compile(r"[-+]?\d+([a-zµμ]+)(\d+)[a-z]*", re.IGNORECASE)
_MEGA_MEANT = re.compile(r"[-+]?[\d.]+M(?!eg|il)[A-Za-zΩ]*", re.IGNORECASE)
_UNITS = ("s", "sec", "hz", "v", "a", "ohm", "ohms", "f", "h", "c", "")


@dataclass(frozen=True)
class Doubt:
    """A number that SPICE reads otherwise than people do.

    Attributes:
        token: as written.
        read_as: what SPICE makes of it.
        instead: how to write what was probably meant.
    """

    token: str
    read_as: str
    instead: str


def read_value(token: str) -> float | None:
    """Return the number SPICE reads, or None when the token is no number."""
    match = _NUMBER.fullmatch(token)
    if match is None:
        return None
    rest = match["rest"]
    if rest[:1] and not (rest[0].isalpha() or rest[0] in "%Ω°"):
        return None
    if rest[:1] in MICRO_SIGNS and rest:
        return _scaled(match["number"], "u")
    scale = _SCALE.match(rest)
    return _scaled(match["number"], scale[0].lower() if scale else "")


def _scaled(number: str, scale: str) -> float:
    """Return a decimal number times a scale, rounded once: `75n` is 7.5e-08 exactly."""
    if scale == "mil":
        return float(number) * MIL
    try:
        return float(Decimal(number).scaleb(POWERS.get(scale, 0)))
    except ArithmeticError:
        # An exponent beyond what decimals hold: infinite, or nothing.
        return float(number)


def doubt_of(token: str, unit: str = "") -> Doubt | None:
    """Return why a number is probably not what was meant, or None.

    Args:
        token: as written in the netlist.
        unit: of what it gives, such as `ohm`, for the message.
    """
    number = read_value(token)
    digits = _DIGIT_INSIDE.fullmatch(token)
    if digits and number is not None and not re.fullmatch(r"e", digits[1], re.IGNORECASE):
        whole, _, _ = token.partition(digits[1])
        letter = "" if digits[1].lower() in ("r", "v", "f", "h", "a") else digits[1]
        return Doubt(token, f"{_shown(number)}{unit and ' ' + unit}", f"{whole}.{digits[2]}{letter}")
    if number is None:
        return None
    rest = token[len(_NUMBER.fullmatch(token)["number"]) :]  # type: ignore[index]
    if rest.startswith("M") and not rest.lower().startswith(("meg", "mil")):
        return Doubt(token, f"{_shown(number * 1e3)} milli{unit}", f"{token[: -len(rest)]}MEG")
    if rest in ("F", "Farad", "FARAD", "A", "Amp"):
        named = "femto" if rest[0] == "F" else "atto, in newer versions"
        return Doubt(token, f"{token[: -len(rest)]} {named}{unit if rest[0] == 'F' else ''}", token[: -len(rest)])
    return None


def _shown(value: float) -> str:
    return f"{value:.6g}"


class AmbiguousQuantity(ValueError):
    """The text is no quantity, or means two things."""


def read_quantity(value: float | str) -> float:
    """Return the number that an argument such as `1meg`, `10 us` or `2.2kHz` means.

    Raises:
        AmbiguousQuantity: it is no number, or ends in a capital M, which is milli to SPICE and mega to people.
    """
    number = float(value) if not isinstance(value, str) else _read_text(value)
    if not math.isfinite(number):
        raise AmbiguousQuantity(f"{value!r} is not a finite number")
    return number


def _read_text(value: str) -> float:
    text = value.strip().replace(" ", "")
    if _MEGA_MEANT.fullmatch(text) and "M" in text:
        plain = re.match(r"[-+]?[\d.]+", text)
        number = plain[0] if plain else "1"
        raise AmbiguousQuantity(f"{value!r}: M is milli to SPICE; write {number}meg for mega or {number}m for milli")
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise AmbiguousQuantity(f"{value!r} is no number; write one such as 1e6, 1meg, 10u or 2.2k")
    rest = match["rest"].lower().replace("ω", "ohm")
    for sign in MICRO_SIGNS:
        rest = rest.replace(sign, "u")
    if rest in _UNITS and not rest.startswith("f"):
        return float(match["number"])
    scale = _SCALE.match(rest)
    if scale is None or rest[scale.end() :] not in _UNITS:
        raise AmbiguousQuantity(f"{value!r} is no number with a SPICE scale; write one such as 1e6, 1meg, 10u or 2.2k")
    return _scaled(match["number"], scale[0])


def spice_number(value: float) -> str:
    """Write a number so that SPICE reads exactly it."""
    return repr(float(value))


def engineering(value: float, unit: str = "") -> str:
    """Write a number for a person: `1.5 kHz`, `20 us`, four significant digits."""
    if value == 0 or value != value or value in (float("inf"), float("-inf")):
        return f"{value:g} {unit}".rstrip()
    for scale, prefix in ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""), (1e-3, "m"), (1e-6, "u"), (1e-9, "n")):
        if abs(value) >= scale * 0.99995:
            return f"{value / scale:.4g} {prefix}{unit}".rstrip()
    for scale, prefix in ((1e-12, "p"), (1e-15, "f")):
        if abs(value) >= scale * 0.99995:
            return f"{value / scale:.4g} {prefix}{unit}".rstrip()
    return f"{value:.4g} {unit}".rstrip()
