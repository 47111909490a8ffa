"""Numbers with units in prose: `2 W`, `$20`, `10-15 mm`, `50 x 30 x 10 mm`."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from metaforge.core.errors import ToolError
from metaforge.twin.quantities import Quantity

_PREFIXED = "m g N Pa W V A J Hz F H Ω ohm ohms s L l mol K eV Wh Ah VA bit B b T Nm lm lx cd Bq Sv rad sr C"
_PREFIXES = ("", "f", "p", "n", "µ", "μ", "u", "m", "c", "d", "k", "M", "G", "T", "Ki", "Mi", "Gi", "Ti")
_PLAIN = (
    "°C ℃ °F ° % ppm rpm min h d day days week weeks month months year years hour hours minute minutes second seconds "
    "sec psi ksi bar mbar atm lb lbs lbf oz ft inch inches mil mils mph kt t tonne tonnes dB dBA dBm degC degF deg "
    "degree degrees percent USD EUR GBP VDC VAC Vrms Nmm kgf µs us cd mol F H T"
)
_WORDS = (
    "metre metres meter meters millimetre millimetres millimeter millimeters centimetre centimetres centimeter "
    "centimeters kilometre kilometres micrometre micrometres micron microns gram grams kilogram kilograms milligram "
    "milligrams newton newtons kilonewton kilonewtons pascal pascals megapascal megapascals gigapascal gigapascals "
    "kilopascal kilopascals watt watts kilowatt kilowatts milliwatt milliwatts volt volts millivolt millivolts amp "
    "amps ampere amperes milliamp milliamps joule joules hertz kilohertz megahertz gigahertz kelvin litre litres "
    "liter liters millisecond milliseconds microsecond microseconds ounce ounces pound pounds foot feet dollar "
    "dollars euro euros"
)
_NO_UNITS = "b B C F H T am as ad pm us dB min mol TA Mb cd mad"
"""What prefix and base would make, and is a word, a label or another unit more often."""
_MEANT = {
    "dollar": "USD", "dollars": "USD", "euro": "EUR", "euros": "EUR", "d": "day", "h": "hour", "mil": "thou",
    "mils": "thou", "t": "tonne", "kt": "knot", "kgf": "kgf", "B": "byte", "b": "bit", "C": "coulomb",
}  # fmt: skip


def _symbols() -> list[str]:
    prefixed = {prefix + base for prefix in _PREFIXES for base in _PREFIXED.split()} - set(_NO_UNITS.split())
    known = prefixed | set(_PLAIN.split()) | set(_WORDS.split())
    return sorted((re.escape(each) for each in known), key=len, reverse=True)


_DIGITS = r"\d{1,3}(?:[,\u202f\u00a0 ]\d{3}){1,5}(?:\.\d{1,15})?|\d{1,15}(?:[.]\d{1,15})?(?:[eE][-+]?\d{1,3})?"
_NUMBER = rf"[-+\u2212]?(?:{_DIGITS})"
_JOIN = r"\s{0,2}(?:x|\u00d7|by|to|-|\u2013|\u2014|\.{2,3}|and|or|±|\+/-|/)\s{0,2}"
_START = r"(?<![\w.$€£])"
_CURRENCY = re.compile(rf"(?P<sign>[$€£])\s?(?P<number>{_DIGITS})(?P<scale>k\b|M\b)?")
_ITEM_NUMBER = re.compile(_NUMBER)
_INCH = re.compile(rf"{_START}(?P<numbers>{_NUMBER})(?:-in\b|\s?in(?=[.,;:)]|$)|\s?\u2033)")


@cache
def _measure() -> re.Pattern[str]:
    """Return the pattern of numbers with a unit; hundreds of units take some 30 ms to compile."""
    one = rf"(?:{'|'.join(_symbols())})(?:\^-?\d|[²³]|\d(?!\d))?"
    unit = rf"(?:{one})(?:[/·*](?:{one})){{0,4}}"
    # At most four numbers in a row: looking for the unit of a longer one from each of its numbers would take for ever.
    numbers = rf"(?:{_NUMBER})(?:{_JOIN}(?:{_NUMBER})){{0,3}}"
    return re.compile(rf"{_START}(?P<numbers>{numbers})(?:\s?|-)(?P<unit>{unit})(?![\w²³])")


@dataclass(frozen=True)
class Written:
    """A number with a unit as somebody wrote it."""

    text: str
    quantity: Quantity
    place: int


def find_quantities(text: str) -> Iterator[Written]:
    """Yield every number with a unit, in the order of the text; of `10-15 mm` both numbers.

    A number without a unit is no quantity, nor is one before a word that is no unit.
    """
    found = [*_currencies(text), *_measures(text), *_inches(text)]
    yield from sorted(found, key=lambda each: each.place)


def _currencies(text: str) -> Iterator[Written]:
    for match in _CURRENCY.finditer(text):
        scale = {"k": 1e3, "M": 1e6}.get(match["scale"] or "", 1.0)
        yield Written(match[0].strip(), Quantity.of(_value(match["number"]) * scale, match["sign"]), match.start())


def _measures(text: str) -> Iterator[Written]:
    for match in _measure().finditer(text):
        numbers = list(_ITEM_NUMBER.finditer(match["numbers"]))
        unit = match["unit"]
        for number in numbers:
            # Of `10-15` the dash is no sign.
            digits = number[0] if number is numbers[0] else number[0].lstrip("-+\u2212")
            written = match[0] if len(numbers) == 1 else f"{digits} {unit}"
            try:
                quantity = Quantity.of(_value(digits), _meant(unit))
            except ToolError:
                continue
            yield Written(written, quantity, match.start() + number.start())


def _inches(text: str) -> Iterator[Written]:
    for match in _INCH.finditer(text):
        yield Written(match[0], Quantity.of(_value(match["numbers"]), "inch"), match.start())


def _meant(unit: str) -> str:
    """Return a unit as `quantities` reads it: `mm2` is mm^2."""
    words = re.split(r"([/·*])", unit)
    return "".join(_power(_MEANT.get(word, word)) for word in words)


def _power(word: str) -> str:
    return re.sub(r"(?<=[A-Za-zµΩ])(\d)$", r"^\1", word)


def _value(digits: str) -> float:
    return float(re.sub(r"[,\u202f\u00a0 ]", "", digits).replace("\u2212", "-"))
