"""See whether a STEP file places its parts by assembly transforms. Text in, answer out.

A transform is an ITEM_DEFINED_TRANSFORMATION between two AXIS2_PLACEMENT_3D, or a MAPPED_ITEM from one to another; it
moves nothing where both are the same.
"""

import re

Point = tuple[float, ...]
Placement = tuple[Point, Point, Point]

_TRANSFORM = re.compile(
    r"ITEM_DEFINED_TRANSFORMATION\s*\(\s*'[^']*'\s*,\s*(?:'[^']*'|\$)\s*,\s*#(\d+)\s*,\s*#(\d+)\s*\)"
)
_MAPPED = re.compile(r"MAPPED_ITEM\s*\(\s*'[^']*'\s*,\s*#(\d+)\s*,\s*#(\d+)\s*\)")
_MAP = re.compile(r"#(\d+)\s*=\s*REPRESENTATION_MAP\s*\(\s*#(\d+)\s*,")
_PLACEMENT = re.compile(
    r"#(\d+)\s*=\s*AXIS2_PLACEMENT_3D\s*\(\s*'[^']*'\s*,\s*#(\d+)\s*,\s*(#\d+|\$)\s*,\s*(#\d+|\$)\s*\)"
)
_TRIPLE = re.compile(r"#(\d+)\s*=\s*(?:CARTESIAN_POINT|DIRECTION)\s*\(\s*'[^']*'\s*,\s*\(([^)]*)\)\s*\)")
_TOLERANCE = 1e-9


def has_placement(text: str) -> bool:
    """Return whether any part of a STEP file is moved or turned by a transform."""
    pairs = [(int(a), int(b)) for a, b in _TRANSFORM.findall(text)]
    if mapped := _MAPPED.findall(text):
        origins = {int(entity): int(origin) for entity, origin in _MAP.findall(text)}
        pairs += [(origins.get(int(source), 0), int(target)) for source, target in mapped]
    if not pairs:
        return False
    wanted = {entity for pair in pairs for entity in pair}
    frames = {int(m[0]): m[1:] for m in _PLACEMENT.findall(text) if int(m[0]) in wanted}
    triples = _triples(text, frames)

    def placement(entity: int) -> Placement | None:
        if entity not in frames:
            return None
        point, axis, reference = (int(ref.lstrip("#")) if ref != "$" else 0 for ref in frames[entity])
        return triples.get(point, ()), triples.get(axis, (0.0, 0.0, 1.0)), triples.get(reference, (1.0, 0.0, 0.0))

    return any(not _same(placement(a), placement(b)) for a, b in pairs)


def _triples(text: str, frames: dict[int, tuple[str, ...]]) -> dict[int, Point]:
    wanted = {ref.lstrip("#") for refs in frames.values() for ref in refs}
    found: dict[int, Point] = {}
    for entity, numbers in _TRIPLE.findall(text):
        if entity in wanted:
            try:
                found[int(entity)] = tuple(float(n) for n in numbers.split(","))
            except ValueError:
                continue
    return found


def _same(a: Placement | None, b: Placement | None) -> bool:
    if a is None or b is None:
        return a is b
    return all(
        len(p) == len(q) and all(abs(x - y) <= _TOLERANCE for x, y in zip(p, q, strict=True))
        for p, q in zip(a, b, strict=True)
    )
