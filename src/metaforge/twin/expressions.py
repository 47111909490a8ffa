"""A small language for requirements: `mass <= 15 g and 1.5 * max_von_mises <= 250 MPa`.

Comparisons (also chained), and/or/not, + - * / and powers, min max abs sqrt, numbers with units, names of metrics. A
name that ends in a unit, such as mass_kg, is the plain number in that unit. Nothing else can be said in it, so
nothing a caller writes is ever run.
"""

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from metaforge.core.errors import ToolError
from metaforge.twin.quantities import Quantity, close, dimension_words, read_unit

MAX_CHARS = 2000
MAX_DEPTH = 40
MAX_POWER = 12

Lookup = Callable[[str], Quantity]
"""Returns a metric's value; raises Undetermined where there is none."""


class Undetermined(Exception):
    """An expression has no answer: a value is missing, or two cannot be compared. The text says which."""


class DifferentKinds(Undetermined):
    """Two values are of different kinds, as a mass and a length are: whatever they are, they cannot be compared."""


@dataclass(frozen=True)
class Number:
    value: Quantity


@dataclass(frozen=True)
class Name:
    name: str


@dataclass(frozen=True)
class Call:
    function: str
    arguments: "tuple[Tree, ...]"


@dataclass(frozen=True)
class Arithmetic:
    operator: str
    left: "Tree"
    right: "Tree"


@dataclass(frozen=True)
class Comparison:
    first: "Tree"
    rest: "tuple[tuple[str, Tree], ...]"


@dataclass(frozen=True)
class Logic:
    operator: str
    parts: "tuple[Tree, ...]"


Tree = Number | Name | Call | Arithmetic | Comparison | Logic
_TRUTHS = (Comparison, Logic)

_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+(?:\.\d*)?(?:[eE][-+]?\d+)?|\.\d+)|(?P<name>[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*)"
    r"|(?P<sign><=|>=|==|!=|\*\*|[-+*/^()<>,≤≥≠·]|%|°C|°F|°|Ω|µ\w+|k?Ω))"
)
_UNIT = re.compile(
    r"\s*(?P<unit>(?:°C|°F|%|°|[µμ]?[A-Za-zΩ]+)(?:\s?\^\s?-?\d|[²³])?"
    r"(?:\s?[*/·]\s?\(?[µμ]?[A-Za-zΩ]+(?:\s?\^\s?-?\d|[²³])?(?:[*·][A-Za-z]+\)|\))?)*)(?![\w(.])"
)
_FUNCTIONS = ("min", "max", "abs", "sqrt")
_WORDS = ("and", "or", "not")
_SAME = {"≤": "<=", "≥": ">=", "≠": "!=", "^": "**", "·": "*"}
_COMPARE: dict[str, Callable[[float, float], bool]] = {
    "<": lambda a, b: a < b and not close(a, b),
    "<=": lambda a, b: a <= b or close(a, b),
    ">": lambda a, b: a > b and not close(a, b),
    ">=": lambda a, b: a >= b or close(a, b),
    "==": close,
    "!=": lambda a, b: not close(a, b),
}


def parse(text: str) -> Tree:
    """Read an expression.

    Raises:
        ToolError: `bad_expression`; the message names the place and what was expected there.
    """
    if len(text) > MAX_CHARS:
        raise _bad(text, MAX_CHARS, f"it has {len(text)} characters, at most {MAX_CHARS} are read")
    reader = _Reader(text)
    tree = reader.either(0)
    if reader.kind:
        raise reader.wrong("the end, or and, or, a comparison")
    if not isinstance(tree, _TRUTHS):
        raise _bad(text, 0, "it is a value and no condition: compare it, as in mass <= 15 g")
    return tree


def holds(tree: Tree, lookup: Lookup) -> bool:
    """Return whether a condition is met.

    Raises:
        Undetermined: a metric has no value, two values are of different kinds, or a number is out of range.
    """
    if isinstance(tree, Comparison):
        left = value(tree.first, lookup)
        for operator, part in tree.rest:
            right = value(part, lookup)
            if not left.same_kind(right):
                raise DifferentKinds(_different(left, right, "compared"))
            if not _COMPARE[operator](left.value, right.value):
                return False
            left = right
        return True
    assert isinstance(tree, Logic)
    if tree.operator == "not":
        return not holds(tree.parts[0], lookup)
    return _several(tree, lookup)


def _several(tree: Logic, lookup: Lookup) -> bool:
    """One part that settles the whole makes others' missing values irrelevant."""
    settles = tree.operator == "or"
    missing: Undetermined | None = None
    for part in tree.parts:
        try:
            if holds(part, lookup) is settles:
                return settles
        except Undetermined as fault:
            missing = missing or fault
    if missing is not None:
        raise missing
    return not settles


def value(tree: Tree, lookup: Lookup) -> Quantity:
    """Return the value of an arithmetic part; raises Undetermined."""
    if isinstance(tree, Number):
        return tree.value
    if isinstance(tree, Name):
        return lookup(tree.name)
    if isinstance(tree, Call):
        return _call(tree.function, [value(each, lookup) for each in tree.arguments])
    if isinstance(tree, Arithmetic):
        return _compute(tree.operator, value(tree.left, lookup), value(tree.right, lookup))
    raise Undetermined("a condition is no value")


def names(tree: Tree) -> Iterator[str]:
    """Yield the metrics an expression speaks of."""
    if isinstance(tree, Name):
        yield tree.name
    for part in _parts(tree):
        yield from names(part)


def compare(operator: str, left: float, right: float) -> bool:
    """Whether two numbers in one unit compare so."""
    return _COMPARE[operator](left, right)


def comparisons(tree: Tree) -> Iterator[Comparison]:
    """Yield the comparisons that a condition is made of."""
    if isinstance(tree, Comparison):
        yield tree
    elif isinstance(tree, Logic):
        for part in tree.parts:
            yield from comparisons(part)


def check_kinds(comparison: Comparison, lookup: Lookup) -> None:
    """Check that a comparison compares like with like, whether or not it holds.

    Raises:
        DifferentKinds: it does not; Undetermined where it cannot be told.
    """
    left = value(comparison.first, lookup)
    for _, part in comparison.rest:
        right = value(part, lookup)
        if not left.same_kind(right):
            raise DifferentKinds(_different(left, right, "compared"))
        left = right


def literals(tree: Tree) -> Iterator[Quantity]:
    """Yield the quantities written in an expression."""
    if isinstance(tree, Number):
        yield tree.value
    for part in _parts(tree):
        yield from literals(part)


def _parts(tree: Tree) -> tuple[Tree, ...]:
    if isinstance(tree, Call):
        return tree.arguments
    if isinstance(tree, Arithmetic):
        return (tree.left, tree.right)
    if isinstance(tree, Comparison):
        return (tree.first, *(part for _, part in tree.rest))
    return tree.parts if isinstance(tree, Logic) else ()


def _call(function: str, values: list[Quantity]) -> Quantity:
    first = values[0]
    if function == "abs":
        return Quantity(abs(first.value), first.dimension)
    if function == "sqrt":
        if first.value < 0:
            raise Undetermined(f"sqrt of {first.value:g}")
        return Quantity(math.sqrt(first.value), tuple((name, power / 2) for name, power in first.dimension))
    for other in values[1:]:
        if not first.same_kind(other):
            raise DifferentKinds(_different(first, other, "compared"))
    return Quantity((min if function == "min" else max)(each.value for each in values), first.dimension)


def _compute(operator: str, left: Quantity, right: Quantity) -> Quantity:
    if operator in "+-":
        if not left.same_kind(right):
            raise DifferentKinds(_different(left, right, "added"))
        return _finite(left.value + (right.value if operator == "+" else -right.value), left.dimension)
    if operator == "**":
        return _raise(left, right)
    if operator == "/":
        if right.value == 0:
            raise Undetermined("a division by 0")
        return _finite(left.value / right.value, _product(left, right, -1))
    return _finite(left.value * right.value, _product(left, right, 1))


def _raise(left: Quantity, right: Quantity) -> Quantity:
    power = right.value
    if right.dimension or abs(power) > MAX_POWER or (left.value < 0 and power != int(power)):
        raise Undetermined(f"a power of {power:g}: it must be a plain number within {MAX_POWER}")
    if left.value == 0 and power < 0:
        raise Undetermined("a division by 0")
    try:
        raised = float(left.value**power)
    except OverflowError:
        raise Undetermined("a number out of range") from None
    return _finite(raised, tuple((name, each * power) for name, each in left.dimension if power))


def _product(left: Quantity, right: Quantity, sign: int) -> tuple[tuple[str, float], ...]:
    powers = dict(left.dimension)
    for name, power in right.dimension:
        powers[name] = powers.get(name, 0.0) + sign * power
    return tuple(sorted((name, power) for name, power in powers.items() if power))


def _finite(number: float, dimension: tuple[tuple[str, float], ...]) -> Quantity:
    if not math.isfinite(number):
        raise Undetermined("a number out of range")
    return Quantity(number, dimension)


def _different(left: Quantity, right: Quantity, what: str) -> str:
    return f"{dimension_words(left.dimension)} cannot be {what} with {dimension_words(right.dimension)}"


def _bad(text: str, place: int, why: str) -> ToolError:
    shown = f"{text[max(place - 30, 0) : place]}>>>{text[place : place + 30]}" if place < len(text) else text[-60:]
    return ToolError(
        f"The expression cannot be read: {why}",
        kind="bad_expression", where=f"character {place + 1}: {shown}",
        fix="Write a condition over metrics, such as mass <= 15 g and 1.5 * max_von_mises <= 250 MPa. There are "
        "comparisons, and/or/not, + - * / ^, min max abs sqrt, numbers with units",
    )  # fmt: skip


class _Reader:
    """Reads one token ahead."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.place = 0
        self.kind = self.token = ""
        self._start = 0
        self.advance()

    def advance(self) -> None:
        rest = self.text[self.place :]
        if not rest.strip():
            self.kind, self.token, self._start = "", "", len(self.text)
            return
        match = _TOKEN.match(self.text, self.place)
        if match is None:
            place = self.place + len(rest) - len(rest.lstrip())
            raise _bad(self.text, place, f"{self.text[place]!r} is not in the language")
        self.kind = match.lastgroup or ""
        self.token = _SAME.get(match[match.lastgroup or 0], match[match.lastgroup or 0])
        self._start, self.place = match.start(match.lastgroup or 0), match.end()
        if self.kind == "name" and self.token.lower() in _WORDS:
            self.kind, self.token = "word", self.token.lower()

    def wrong(self, expected: str) -> ToolError:
        found = repr(self.token) if self.kind else "the end"
        return _bad(self.text, self._start, f"{found} stands where {expected} was expected")

    def take(self, *tokens: str) -> str:
        """Return the token and go on if it is one of these, else an empty text."""
        if self.kind in ("sign", "word") and self.token in tokens:
            token = self.token
            self.advance()
            return token
        return ""

    def either(self, depth: int) -> Tree:
        return self._logic("or", self._both, depth)

    def _both(self, depth: int) -> Tree:
        return self._logic("and", self._negated, depth)

    def _logic(self, word: str, read: Callable[[int], Tree], depth: int) -> Tree:
        self._check_depth(depth)
        parts = [read(depth)]
        while self.take(word):
            parts.append(read(depth))
        return parts[0] if len(parts) == 1 else Logic(word, tuple(map(self._truth, parts)))

    def _check_depth(self, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise _bad(self.text, self._start, f"it is nested more than {MAX_DEPTH} levels deep")

    def _truth(self, tree: Tree) -> Tree:
        if not isinstance(tree, _TRUTHS):
            raise _bad(self.text, self._start, "and, or, not join conditions, and one of these is a value")
        return tree

    def _negated(self, depth: int) -> Tree:
        if self.take("not"):
            self._check_depth(depth)
            return Logic("not", (self._truth(self._negated(depth + 1)),))
        return self._comparison(depth)

    def _comparison(self, depth: int) -> Tree:
        first = self._sum(depth)
        rest: list[tuple[str, Tree]] = []
        while operator := self.take(*_COMPARE):
            rest.append((operator, self._value(self._sum(depth))))
        return Comparison(self._value(first), tuple(rest)) if rest else first

    def _value(self, tree: Tree) -> Tree:
        if isinstance(tree, _TRUTHS):
            raise _bad(self.text, self._start, "a condition stands where a value was expected")
        return tree

    def _sum(self, depth: int) -> Tree:
        tree = self._product(depth)
        while operator := self.take("+", "-"):
            tree = Arithmetic(operator, self._value(tree), self._value(self._product(depth)))
        return tree

    def _product(self, depth: int) -> Tree:
        tree = self._signed(depth)
        while operator := self.take("*", "/"):
            tree = Arithmetic(operator, self._value(tree), self._value(self._signed(depth)))
        return tree

    def _signed(self, depth: int) -> Tree:
        self._check_depth(depth)
        if self.take("-"):
            inner = self._value(self._signed(depth + 1))
            return Arithmetic("*", Number(Quantity(-1.0)), inner)
        tree = self._atom(depth)
        if self.take("**"):
            return Arithmetic("**", self._value(tree), self._value(self._signed(depth + 1)))
        return tree

    def _atom(self, depth: int) -> Tree:
        if self.kind == "number":
            return self._number()
        if self.kind == "name":
            name = self.token
            self.advance()
            return self._function(name, depth) if self.take("(") else Name(name)
        if self.take("("):
            tree = self.either(depth + 1)
            if not self.take(")"):
                raise self.wrong("')'")
            return tree
        raise self.wrong("a number, a metric or '('")

    def _number(self) -> Tree:
        number = float(self.token)
        unit = ""
        if (match := _UNIT.match(self.text, self.place)) and match["unit"].lower() not in _WORDS:
            unit = self._longest_unit(match["unit"])
            if unit:
                self.place = match.start("unit") + len(unit)
        self.advance()
        if not math.isfinite(number):
            raise _bad(self.text, self._start, "a number is out of range")
        return Number(Quantity.of(number, unit))

    def _longest_unit(self, text: str) -> str:
        """Of `mm / wall` only `mm` is a unit: give up the last part until the rest reads as one."""
        while text:
            try:
                read_unit(text)
            except ToolError:
                cut = max(text.rfind(each) for each in "*/·")
                if cut < 0:
                    raise _bad(self.text, self.place, f"{text!r} after a number is no unit") from None
                text = text[:cut].rstrip()
            else:
                return text
        return ""

    def _function(self, name: str, depth: int) -> Tree:
        if name not in _FUNCTIONS:
            raise _bad(self.text, self._start, f"there is no function {name!r}; there are {', '.join(_FUNCTIONS)}")
        arguments = [self._value(self._sum(depth + 1))]
        while self.take(","):
            arguments.append(self._value(self._sum(depth + 1)))
        if not self.take(")"):
            raise self.wrong("',' or ')'")
        if name in ("abs", "sqrt") and len(arguments) != 1:
            raise _bad(self.text, self._start, f"{name} takes one value, and {len(arguments)} are given")
        return Call(name, tuple(arguments))
