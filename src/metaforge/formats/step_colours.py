"""Colours of a STEP file, by product: read them, write them, and give equal models equal bytes. Text in, text out.

A colour is a COLOUR_RGB in sRGB, reached from a STYLED_ITEM through its presentation styles; the styled item is a solid
or shell of the shape representation of a product. Source: ISO 10303-46 (presentation), ISO 10303-41/-43 (products).
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

Colour = tuple[float, float, float]
"""Red, green and blue in sRGB, 0 to 1."""

# A quote inside a string is two: read as two strings side by side, there is one way to read it. Nothing is tried twice.
_ENTITY = re.compile(r"#(\d+)\s*=\s*((?:'[^']*+'|[^';]++)*+);")
_KIND = re.compile(r"([A-Z_0-9]+)\s*\(")
_STRING = re.compile(r"'((?:[^']|'')*)'")
_REFERENCE = re.compile(r"#(\d+)")
_NUMBERS = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_WIDE = re.compile(r"\\X2\\([0-9A-F]+)\\X0\\")
_OCCURRENCE = re.compile(r"(NEXT_ASSEMBLY_USAGE_OCCURRENCE\s*\(\s*)'\d+'")
_TIME = re.compile(r"(FILE_NAME\s*\(\s*'(?:[^']|'')*'\s*,\s*)'[^']*'")
_NAME = re.compile(r"(FILE_NAME\s*\(\s*)'(?:[^']|'')*'")
_ITEMS = ("MANIFOLD_SOLID_BREP", "BREP_WITH_VOIDS", "FACETED_BREP", "SHELL_BASED_SURFACE_MODEL")
_HOLDERS = (
    "ADVANCED_BREP_SHAPE_REPRESENTATION", "SHAPE_REPRESENTATION", "MANIFOLD_SURFACE_SHAPE_REPRESENTATION",
    "FACETED_BREP_SHAPE_REPRESENTATION",
)  # fmt: skip
_PREDEFINED: dict[str, Colour] = {
    "red": (1, 0, 0), "green": (0, 1, 0), "blue": (0, 0, 1), "yellow": (1, 1, 0), "magenta": (1, 0, 1),
    "cyan": (0, 1, 1), "black": (0, 0, 0), "white": (1, 1, 1),
}  # fmt: skip
EPOCH = "1970-01-01T00:00:00"


@dataclass(frozen=True)
class _Entities:
    """The data section: text by number, and the numbers of each kind."""

    text: dict[int, str]
    kinds: dict[str, list[int]]

    def of(self, *names: str) -> Iterable[int]:
        return (number for name in names for number in self.kinds.get(name, ()))

    def references(self, number: int) -> list[int]:
        return [int(found) for found in _REFERENCE.findall(_STRING.sub("''", self.text[number]))]


def _parsed(text: str) -> _Entities:
    found = {int(number): body for number, body in _ENTITY.findall(text)}
    kinds: dict[str, list[int]] = {}
    for number, body in found.items():
        # Instances of several kinds at once, in brackets, count as each of them.
        names = _KIND.findall(_STRING.sub("''", body)) if body.startswith("(") else _KIND.findall(body)[:1]
        for name in names:
            kinds.setdefault(name, []).append(number)
    return _Entities(found, kinds)


def read_colours(text: str) -> dict[str, Colour]:
    """Return the colour of each product that has one.

    Args:
        text: the whole file.
    """
    entities = _parsed(text)
    products = _products_by_item(entities)
    faces = {
        face: name
        for item, name in products.items()
        for shell in entities.references(item)
        if shell in entities.text
        for face in entities.references(shell)
    }
    colours: dict[str, Colour] = {}
    on_faces: dict[str, set[Colour]] = {}
    for number in entities.of("STYLED_ITEM"):
        *styles, item = entities.references(number) or [0]
        name = products.get(item) or faces.get(item)
        colour = None if name is None else _colour_below(entities, styles)
        if name is None or colour is None:
            continue
        if item in products:
            colours.setdefault(name, colour)
        else:
            on_faces.setdefault(name, set()).add(colour)
    # Faces that all have one colour colour the part; several colours are nobody's.
    return {name: next(iter(found)) for name, found in on_faces.items() if len(found) == 1} | colours


def _products_by_item(entities: _Entities) -> dict[int, str]:
    """Return the product that each solid or shell belongs to."""
    related: dict[int, list[int]] = {}
    for number in entities.of("SHAPE_REPRESENTATION_RELATIONSHIP"):
        ends = entities.references(number)
        if not entities.text[number].startswith("(") and len(ends) >= 2:
            related.setdefault(ends[0], []).append(ends[1])
            related.setdefault(ends[1], []).append(ends[0])
    found: dict[int, str] = {}
    for number in entities.of("SHAPE_DEFINITION_REPRESENTATION"):
        ends = entities.references(number)
        if len(ends) < 2:
            continue
        definition, representation = ends[:2]
        name = _product_name(entities, definition)
        if name is None:
            continue
        for each in (representation, *related.get(representation, ())):
            for item in entities.references(each) if each in entities.text else ():
                if _kind(entities, item) in _ITEMS:
                    found.setdefault(item, name)
    return found


def _kind(entities: _Entities, number: int) -> str:
    match = _KIND.match(entities.text.get(number, ""))
    return match[1] if match else ""


def _product_name(entities: _Entities, number: int) -> str | None:
    """Follow a definition shape to its product; shapes of placed occurrences lead to none."""
    for _ in range(6):
        if _kind(entities, number) == "PRODUCT":
            told = _STRING.search(entities.text[number])
            return decode(told[1]) if told else None
        if _kind(entities, number) == "NEXT_ASSEMBLY_USAGE_OCCURRENCE" or number not in entities.text:
            return None
        references = entities.references(number)
        if not references:
            return None
        number = references[0]
    return None


def _colour_below(entities: _Entities, numbers: list[int]) -> Colour | None:
    pending, seen = list(numbers), set[int]()
    while pending:
        number = pending.pop(0)
        if number in seen or number not in entities.text:
            continue
        seen.add(number)
        body = entities.text[number]
        kind = _kind(entities, number)
        if kind == "COLOUR_RGB":
            parts = [float(value) for value in _NUMBERS.findall(_STRING.sub("", body.partition("(")[2]))[:3]]
            return (parts[0], parts[1], parts[2]) if len(parts) > 2 else None
        if kind == "DRAUGHTING_PRE_DEFINED_COLOUR":
            named = _STRING.search(body)
            return _PREDEFINED.get(named[1].lower()) if named else None
        if kind != "CURVE_STYLE":
            pending += entities.references(number)
    return None


def write_colours(text: str, colours: Mapping[str, Colour]) -> str:
    """Return the file with the solids of each named product styled.

    Args:
        text: a STEP file without colours of these products.
        colours: by product name.

    Raises:
        KeyError: the file has no such product with a solid.
    """
    entities = _parsed(text)
    products = _products_by_item(entities)
    following = max(entities.text, default=0) + 1
    lines: list[str] = []
    for name, colour in colours.items():
        items = [item for item, product in products.items() if product == name]
        if not items:
            raise KeyError(name)
        lines.append(f"#{following}=COLOUR_RGB('',{','.join(_real(value) for value in colour)});")
        for kind in (
            "FILL_AREA_STYLE_COLOUR('',#{})", "FILL_AREA_STYLE('',(#{}))", "SURFACE_STYLE_FILL_AREA(#{})",
            "SURFACE_SIDE_STYLE('',(#{}))", "SURFACE_STYLE_USAGE(.BOTH.,#{})", "PRESENTATION_STYLE_ASSIGNMENT((#{}))",
        ):  # fmt: skip
            lines.append(f"#{following + 1}={kind.format(following)};")
            following += 1
        style, following = following, following + 1
        for item in items:
            lines.append(f"#{following}=STYLED_ITEM('color',(#{style}),#{item});")
            lines.append(
                f"#{following + 1}=MECHANICAL_DESIGN_GEOMETRIC_PRESENTATION_REPRESENTATION('',(#{following}),"
                f"#{_context(entities, item)});"
            )
            following += 2
    head, end, tail = text.rpartition("ENDSEC;")
    return head + "\n".join([*lines, ""]) + end + tail


def _context(entities: _Entities, item: int) -> int:
    """Return the geometric context of the representation that holds an item."""
    for number in entities.of(*_HOLDERS):
        references = entities.references(number)
        if item in references[:-1]:
            return references[-1]
    raise KeyError(f"#{item}")


def _real(value: float) -> str:
    written = f"{value:.9g}"
    if "e" in written:
        mantissa, _, exponent = written.partition("e")
        return f"{mantissa if '.' in mantissa else mantissa + '.'}E{int(exponent)}"
    return written if "." in written else f"{written}."


def decode(string: str) -> str:
    """Return what a STEP string means."""
    wide = _WIDE.sub(lambda found: bytes.fromhex(found[1]).decode("utf-16-be", "replace"), string)
    return wide.replace("''", "'").replace("\\\\", "\\")


def settle(text: str, name: str) -> str:
    """Return a file without what changes from one writing to the next: its time, and running numbers of the process.

    Characters beyond ASCII are written as the standard has it.

    Args:
        name: the file's name, for its header.
    """
    text = _TIME.sub(rf"\g<1>'{EPOCH}'", text, count=1)
    text = _NAME.sub(lambda found: f"{found[1]}'{_escaped(name)}'", text, count=1)
    count = iter(range(1, 1 << 30))
    text = _OCCURRENCE.sub(lambda found: f"{found[1]}'{next(count)}'", text)
    return re.sub(r"[^\x00-\x7f]+", lambda found: f"\\X2\\{found[0].encode('utf-16-be').hex().upper()}\\X0\\", text)


def _escaped(name: str) -> str:
    return name.replace("\\", "\\\\").replace("'", "''")
