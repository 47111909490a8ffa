"""Read what a STEP file says about itself before a kernel sees it: schema, length units, products, expansion.

A kernel crashes on some files, hangs on others and believes wrong units of a third kind. Text alone tells most of
that. Source: ISO 10303-21 (clear text encoding), ISO 10303-41/-43/-44 (units, representations, product structure).
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from metaforge.core.errors import ToolError

OCCURRENCE_LIMIT_COUNT = 20_000
"""Most part occurrences an assembly may unfold to; a small file can unfold to millions."""

_PREFIX_MM = {
    b"": 1000.0, b"EXA": 1e21, b"PETA": 1e18, b"TERA": 1e15, b"GIGA": 1e12, b"MEGA": 1e9, b"KILO": 1e6,
    b"HECTO": 1e5, b"DECA": 1e4, b"DECI": 100.0, b"CENTI": 10.0, b"MILLI": 1.0, b"MICRO": 1e-3, b"NANO": 1e-6,
    b"PICO": 1e-9, b"FEMTO": 1e-12, b"ATTO": 1e-15,
}  # fmt: skip
_UNIT_NAMES = (
    (1.0, "millimetre"), (10.0, "centimetre"), (100.0, "decimetre"), (1000.0, "metre"), (1e6, "kilometre"),
    (1e-3, "micrometre"), (1e-6, "nanometre"), (25.4, "inch"), (304.8, "foot"), (914.4, "yard"), (0.0254, "mil"),
    (1609344.0, "mile"),
)  # fmt: skip
_LOOKS_LIKE = (
    (b"solid", "STL"), (b"glTF", "GLB"), (b"PK\x03\x04", "a ZIP archive"), (b"\x1f\x8b", "a gzip archive"),
    (b"%PDF", "PDF"), (b"<?xml", "XML"), (b"DBRep_DrawableShape", "BREP"), (b"CASCADE Topology", "BREP"),
    (b"#VRML", "VRML"), (b"AC10", "DWG"), (b"ply", "PLY"), (b"<!DOCTYPE", "HTML"), (b"<html", "HTML"),
)  # fmt: skip
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class StepHeader:
    """What the text of a STEP file says.

    Attributes:
        schema: the application protocol, such as `AUTOMOTIVE_DESIGN`.
        length_units: name and size in mm of each length unit that a geometric context uses.
        products_count: PRODUCT entities.
        links_count: NEXT_ASSEMBLY_USAGE_OCCURRENCE entities (document order, not unfolded).
        occurrences_count: parts and sub-assemblies once the assembly is unfolded.
        solids_count: solid entities (not unfolded).
        colours_count: COLOUR_RGB entities.
        has_byte_order_mark: the file starts with a UTF-8 mark, which kernels refuse.
        is_closed: the end mark is there.
    """

    schema: str
    length_units: tuple[tuple[str, float], ...]
    products_count: int
    links_count: int
    occurrences_count: int
    solids_count: int
    colours_count: int
    has_byte_order_mark: bool
    is_closed: bool

    @property
    def source_unit(self) -> str:
        """The length unit; `undeclared (read as millimetre)` when the file names none."""
        return self.length_units[0][0] if self.length_units else "undeclared (read as millimetre)"

    @property
    def unit_mm(self) -> float:
        """Its size in mm."""
        return self.length_units[0][1] if self.length_units else 1.0


def read_step_header(data: bytes, name: str) -> StepHeader:
    """Read and judge the text of a STEP file.

    Args:
        data: the whole file.
        name: what to call it in messages.

    Raises:
        ToolError: not STEP (`not_step`), cut short (`step_truncated`), more than one length unit (`mixed_units`),
            unfolds without end or beyond the limit (`assembly_too_large`).
    """
    has_mark = data.startswith(_BOM)
    if has_mark:
        data = data[len(_BOM) :]
    _check_is_step(data, name)
    is_closed = _check_is_complete(data, name)
    if b"/*" in data:
        data = _COMMENT.sub(lambda found: found[0] if found[0].startswith(b"'") else b" ", data)
    entities = dict(_entities(data))
    units = _length_units(entities)
    if len({round(size, 12) for _, size in units}) > 1:
        named = " and ".join(unit for unit, _ in units)
        raise ToolError(
            f"{name} mixes length units ({named}): kernels scale its parts wrongly or crash on it",
            kind="mixed_units", where=name, fix="export it again from the CAD system with one length unit, such as mm",
        )  # fmt: skip
    return StepHeader(
        schema=_schema(data),
        length_units=tuple(units),
        products_count=sum(1 for _, kind, _ in _typed(entities) if kind == b"PRODUCT"),
        links_count=sum(1 for _, kind, _ in _typed(entities) if kind == b"NEXT_ASSEMBLY_USAGE_OCCURRENCE"),
        occurrences_count=_unfolded_count(entities, name),
        solids_count=len(_SOLID.findall(data)),
        colours_count=len(_COLOUR.findall(data)),
        has_byte_order_mark=has_mark,
        is_closed=is_closed,
    )


def size_warning(header: StepHeader, largest_mm: float) -> str:
    """Return a sentence when the declared unit and the size do not fit together, else an empty string."""
    if header.source_unit == "metre" and largest_mm >= 10_000:
        return (
            f"The part is {largest_mm / 1000:.4g} m long: the header says METRE, but the numbers "
            f"(up to {largest_mm / 1000:.4g}) look like millimetres; if so, scale it by 0.001"
        )
    if header.unit_mm == 1.0 and 0 < largest_mm < 0.1:
        return (
            f"The part is {largest_mm:.3g} mm long: the header says millimetre, but the numbers look like metres; "
            "if so, scale it by 1000"
        )
    if header.source_unit in ("inch", "foot") and largest_mm >= 10_000:
        return (
            f"The part is {largest_mm / 1000:.4g} m long: the header says {header.source_unit}, but the numbers "
            f"(up to {largest_mm / header.unit_mm:.4g}) look like millimetres"
        )
    return ""


_COMMENT = re.compile(rb"'[^']*'|/\*.*?\*/", re.DOTALL)
_STRUCTURE = (
    b"NEXT_ASSEMBLY_USAGE_OCCURRENCE|MAPPED_ITEM|REPRESENTATION_MAP|PRODUCT|LENGTH_MEASURE_WITH_UNIT"
    b"|MEASURE_WITH_UNIT|[A-Z_]*REPRESENTATION"
)
_ENTITY = re.compile(
    rb"#(\d+)\s*=\s*(?=\(|(?:" + _STRUCTURE + rb")\s*\()([A-Z_0-9]*)\s*([^;']*+(?:'[^']*+'[^;']*+)*+);", re.DOTALL
)
_SOLID = re.compile(rb"=\s*(?:MANIFOLD_SOLID_BREP|BREP_WITH_VOIDS|FACETED_BREP)\s*\(")
_COLOUR = re.compile(rb"=\s*COLOUR_RGB\s*\(")
_REFERENCE = re.compile(rb"#(\d+)")
_STRING = re.compile(rb"'[^']*'")

Entity = tuple[bytes, bytes]
"""Type name (empty for a complex entity) and the text after it, strings kept."""


def _check_is_step(data: bytes, name: str) -> None:
    start = data[:4096].lstrip()
    if start.startswith(b"ISO-10303-21"):
        return
    if not data.strip():
        raise ToolError(f"{name} is empty ({len(data)} bytes)", kind="not_step", where=name, fix="export it again")
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise ToolError(
            f"{name} is UTF-16 text; a STEP file is ASCII",
            kind="not_step", where=name, fix="save it as ASCII or UTF-8 without a byte order mark",
        )  # fmt: skip
    shown = data[:24].decode("latin-1")
    opening = re.match(r"[\x20-\x7e]{1,16}", shown)
    what = f"starts with '{opening[0].split()[0] if opening[0].split() else opening[0]}'" if opening else "is binary"
    guess = next((kind for mark, kind in _LOOKS_LIKE if start.startswith(mark)), "")
    if not guess and len(data) >= 84 and len(data) == 84 + 50 * int.from_bytes(data[80:84], "little"):
        guess = "binary STL"
    looks = f", looks like {guess}" if guess else ""
    raise ToolError(
        f"{name} is not a STEP file ({what}{looks})",
        kind="not_step", where=name, fix="give a STEP file (it starts with ISO-10303-21), or export the part as STEP",
    )  # fmt: skip


def _check_is_complete(data: bytes, name: str) -> bool:
    if b"\0" in data:
        raise ToolError(
            f"{name} holds NUL bytes at offset {data.index(0)}: it is damaged",
            kind="step_truncated", where=name, fix="copy or export the file again",
        )  # fmt: skip
    tail = data[-4096:].rstrip()
    if b"END-ISO-10303-21" in tail:
        return True
    if tail.endswith(b"ENDSEC;") and b"DATA" in data:
        return False
    raise ToolError(
        f"{name} is cut short: it ends after {len(data)} bytes without ENDSEC and END-ISO-10303-21",
        kind="step_truncated", where=name, fix="copy or export the file again; nothing of it was read",
    )  # fmt: skip


def _entities(data: bytes) -> Iterator[tuple[int, Entity]]:
    for found in _ENTITY.finditer(data):
        yield int(found[1]), (found[2], found[3])


def _typed(entities: Mapping[int, Entity]) -> Iterator[tuple[int, bytes, bytes]]:
    for number, (kind, body) in entities.items():
        yield number, kind, body


def _schema(data: bytes) -> str:
    found = re.search(rb"FILE_SCHEMA\s*\(\s*\(\s*'([^'{]*)", data)
    return found[1].decode("latin-1").strip() if found else ""


def _length_units(entities: Mapping[int, Entity]) -> list[tuple[str, float]]:
    """Return the distinct length units of every context that geometry lives in, in the file's order."""
    units: dict[float, str] = {}
    for _, kind, body in _typed(entities):
        found = re.search(rb"GLOBAL_UNIT_ASSIGNED_CONTEXT\s*\(\s*\(([^)]*)\)", body) if not kind else None
        if found is None:
            continue
        for reference in _REFERENCE.findall(found[1]):
            size = _unit_mm(entities, int(reference), 0)
            if size is not None:
                units.setdefault(float(f"{size:.9g}"), _unit_name(size, entities[int(reference)][1]))
    return [(name, size) for size, name in units.items()]


def _unit_mm(entities: Mapping[int, Entity], number: int, depth: int) -> float | None:
    """Return the size in mm of a length unit; None for any other unit."""
    _, body = entities.get(number, (b"", b""))
    if b"LENGTH_UNIT" not in body or depth > 4:
        return None
    if found := re.search(rb"CONVERSION_BASED_UNIT\s*\(\s*'[^']*'\s*,\s*#(\d+)", body):
        measure = entities.get(int(found[1]), (b"", b""))[1]
        value = re.match(rb"\(\s*(?:[A-Z_]*MEASURE\s*\(\s*)?([-+0-9.Ee]+)", measure)
        base = _REFERENCE.findall(measure)
        inner = _unit_mm(entities, int(base[-1]), depth + 1) if base else None
        return float(value[1]) * inner if value and inner else None
    if found := re.search(rb"SI_UNIT\s*\(\s*(?:\.(\w+)\.|\$|\*)\s*,\s*\.METRE\.\s*\)", body):
        return _PREFIX_MM.get(found[1] or b"")
    return None


def _unit_name(size_mm: float, body: bytes) -> str:
    for known, name in _UNIT_NAMES:
        if abs(size_mm - known) <= 1e-6 * known:
            return name
    declared = _STRING.search(body)
    return f"{declared[0].decode('latin-1').strip(chr(39)).lower() if declared else 'unit'} of {size_mm:g} mm"


def _unfolded_count(entities: Mapping[int, Entity], name: str) -> int:
    """Count occurrences of the unfolded product structure and of nested mapped items.

    Raises:
        ToolError: an assembly contains itself, or unfolds beyond the limit.
    """
    products: dict[int, list[int]] = {}
    mapped: dict[int, list[int]] = {}
    for number, kind, body in _typed(entities):
        references = [int(each) for each in _REFERENCE.findall(_STRING.sub(b"", body))]
        if kind == b"NEXT_ASSEMBLY_USAGE_OCCURRENCE" and len(references) >= 2:
            products.setdefault(references[0], []).append(references[1])
        elif kind in (b"MAPPED_ITEM", b"REPRESENTATION_MAP") or kind.endswith(b"SHAPE_REPRESENTATION"):
            mapped[number] = [each for each in references if entities.get(each, (b"", b""))[0] in _MAPPED_KINDS
                              or entities.get(each, (b"", b""))[0].endswith(b"SHAPE_REPRESENTATION")]  # fmt: skip
    return max(_count_paths(products, name), _count_paths(mapped, name))


_MAPPED_KINDS = (b"MAPPED_ITEM", b"REPRESENTATION_MAP")


def _count_paths(children: Mapping[int, list[int]], name: str) -> int:
    """Count nodes of the tree that a directed graph unfolds to, without unfolding it."""
    totals: dict[int, int] = {}
    for start in children:
        stack: list[tuple[int, bool]] = [(start, False)]
        open_nodes: set[int] = set()
        while stack:
            node, is_done = stack.pop()
            if is_done:
                open_nodes.discard(node)
                totals[node] = 1 + sum(totals[child] for child in children.get(node, ()))
                continue
            if node in totals:
                continue
            if node in open_nodes:
                raise ToolError(
                    f"{name} holds an assembly that contains itself (#{node}): it unfolds without end",
                    kind="assembly_too_large", where=f"{name} #{node}", fix="export the assembly again",
                )  # fmt: skip
            open_nodes.add(node)
            stack.append((node, True))
            stack.extend((child, False) for child in children.get(node, ()) if child not in totals)
    used = {child for node in children for child in children[node]}
    total = sum(totals[node] for node in children if node not in used) if children else 0
    if total > OCCURRENCE_LIMIT_COUNT:
        raise ToolError(
            f"{name} unfolds to {total:,} part occurrences; the limit is {OCCURRENCE_LIMIT_COUNT:,}",
            kind="assembly_too_large", where=name,
            fix=f"give a sub-assembly, or export fewer than {OCCURRENCE_LIMIT_COUNT:,} occurrences",
        )  # fmt: skip
    return total
