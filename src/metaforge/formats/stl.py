"""Read and write STL triangle surfaces. Bytes in, arrays out, and back."""

import re

import numpy as np
from numpy.typing import NDArray

from metaforge.core.errors import ToolError

Triangles = NDArray[np.float64]
"""Corners, shape (t, 3, 3), in the file's unit."""

_HEADER_BYTES = 80
_RECORD = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])
_VERTEX = re.compile(rb"vertex\s+(\S+)\s+(\S+)\s+(\S+)", re.IGNORECASE)


class BadStl(ToolError):
    """The file is no STL surface."""

    default_kind = "bad_stl"


def read_stl(data: bytes, name: str) -> Triangles:
    """Read binary or text STL.

    Args:
        name: what to call the file in messages.

    Raises:
        BadStl: cut short, not numbers, or without facets.
    """
    count = int.from_bytes(data[_HEADER_BYTES : _HEADER_BYTES + 4], "little")
    expected = _HEADER_BYTES + 4 + count * _RECORD.itemsize
    if len(data) >= _HEADER_BYTES + 4 and len(data) == expected:
        corners = np.frombuffer(data, dtype=_RECORD, offset=_HEADER_BYTES + 4)["corners"].astype(np.float64)
    elif data.lstrip()[:5].lower() == b"solid":
        corners = _read_text(data, name)
    else:
        raise BadStl(
            f"{name} is not STL, or is cut short: {len(data)} bytes for {count} facets of 50 bytes", where=name
        )
    if not len(corners):
        raise BadStl(f"{name} holds no facets", where=name)
    if not np.isfinite(corners).all():
        raise BadStl(f"{name} holds coordinates that are not numbers", where=name)
    return corners


def _read_text(data: bytes, name: str) -> Triangles:
    if b"endsolid" not in data[-4096:].lower():
        raise BadStl(f"{name} is cut short: it has no endsolid", where=name)
    found = _VERTEX.findall(data)
    if len(found) % 3:
        raise BadStl(f"{name} has {len(found)} vertices, which is no multiple of 3", where=name)
    try:
        return np.array(found, dtype=np.float64).reshape(-1, 3, 3)
    except ValueError as fault:
        raise BadStl(f"{name} holds a vertex that is no number: {fault}", where=name) from None


def write_stl(triangles: Triangles) -> bytes:
    """Return binary STL with each facet's normal by the right-hand rule."""
    records = np.zeros(len(triangles), dtype=_RECORD)
    normals = np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])
    records["normal"] = normals / np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-300)
    records["corners"] = triangles
    header = b"surface mesh, mm".ljust(_HEADER_BYTES, b" ")
    return header + len(triangles).to_bytes(4, "little") + records.tobytes()
