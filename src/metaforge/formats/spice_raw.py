"""Read a SPICE raw file, binary or ASCII, and write it in one form. Bytes in, arrays out.

Layout: a text header of `Key: value` lines and a table of variables, then `Binary:` and eight-byte floats row by row
(pairs of them when the flags say complex), or `Values:` and one number a line. A file may hold several plots. A run
that broke off leaves `No. Points: 0` in the header and the points it got to behind it: they are read.
"""

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from metaforge.core.errors import ToolError

Floats = NDArray[np.float64]
Numbers = NDArray[np.complex128] | NDArray[np.float64]

_MOST_DIGITS = 12
MAX_VARIABLES = 200_000
_NUMBER = rb"[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|nan|inf(?:inity)?)"
_ROW_START = re.compile(rb"^\s*(\d+)\s+", re.MULTILINE)
_VALUE = re.compile(rb"(" + _NUMBER + rb")(?:,(" + _NUMBER + rb"))?", re.IGNORECASE)


class UnreadableRaw(ToolError):
    """The file is no SPICE raw file, or is damaged where it matters."""

    default_kind = "unreadable_raw"


@dataclass(frozen=True)
class Variable:
    """One column: its name as written, such as `v(out)`, and its type, such as `voltage`."""

    name: str
    type: str


@dataclass(frozen=True)
class Plot:
    """The result of one analysis.

    Attributes:
        title: of the circuit.
        name: of the plot, such as `Transient Analysis`.
        variables: the columns; the first is what the others are plotted over, where the analysis sweeps anything.
        values: shape (points, variables), complex or real.
        complete: False when the header promises more points than there are, or the run broke off.
    """

    title: str
    name: str
    variables: tuple[Variable, ...]
    values: Numbers
    complete: bool = True

    @property
    def is_complex(self) -> bool:
        return bool(np.iscomplexobj(self.values))

    @property
    def scale(self) -> Floats:
        """What the other variables are plotted over.

        Only its real part: the imaginary part of a frequency is whatever lay in memory.
        """
        column: Floats = np.ascontiguousarray(self.values[:, 0].real)
        return column

    def column(self, name: str) -> Numbers | None:
        """Return a variable's values by its name, in any case; None where there is none."""
        wanted = name.lower()
        for index, variable in enumerate(self.variables):
            if variable.name.lower() == wanted:
                return self.values[:, index]
        return None


def read_raw(content: bytes) -> tuple[Plot, ...]:
    """Read every plot of a raw file.

    Args:
        content: the file's bytes.

    Raises:
        UnreadableRaw: it is empty, no raw file, or has a type of numbers that is not read here.
    """
    plots: list[Plot] = []
    at = 0
    while at < len(content) and content[at : at + 4096].strip():
        plot, at = _read_plot(content, at)
        plots.append(plot)
    if not plots:
        raise UnreadableRaw("The raw file is empty", fix="run the analysis again")
    return tuple(plots)


def write_raw(plots: tuple[Plot, ...]) -> bytes:
    """Write plots as a binary raw file that says nothing but what was computed.

    Without the clock, and without what lay in memory where a frequency's imaginary part should be, the same plots
    are the same bytes.
    """
    parts: list[bytes] = []
    for plot in plots:
        values = plot.values
        if plot.is_complex and plot.variables[0].type == "frequency":
            values = values.copy()
            values[:, 0] = values[:, 0].real
        rows = [f"\t{index}\t{variable.name}\t{variable.type}" for index, variable in enumerate(plot.variables)]
        head = [
            f"Title: {plot.title}", f"Plotname: {plot.name}", f"Flags: {'complex' if plot.is_complex else 'real'}",
            f"No. Variables: {len(plot.variables)}", f"No. Points: {len(values)}", "Variables:", *rows, "Binary:", "",
        ]  # fmt: skip
        parts += ["\n".join(head).encode(), values.astype("<c16" if plot.is_complex else "<f8").tobytes()]
    return b"".join(parts)


def last_scale_value(head: bytes, tail: bytes) -> float | None:
    """Return how far a binary file that is still being written has got.

    Args:
        head: the first few kB of the file.
        tail: everything after the header's end up to now, or its last part, which must end where the file ends now.

    Returns:
        The scale of the last whole row, or None where that cannot be told yet.
    """
    end = head.find(b"Binary:\n")
    count = re.search(rb"No\. Variables:\s*(\d+)", head)
    if end < 0 or count is None:
        return None
    width = int(count[1]) * (16 if re.search(rb"Flags:.*complex", head) else 8)
    rows = len(tail) // width if width else 0
    return float(np.frombuffer(tail, "<f8", 1, (rows - 1) * width)[0]) if rows else None


def _read_plot(content: bytes, at: int) -> tuple[Plot, int]:
    fields: dict[str, str] = {}
    variables: tuple[Variable, ...] = ()
    while True:
        end = content.find(b"\n", at)
        line = content[at : end if end >= 0 else len(content)]
        at = end + 1 if end >= 0 else len(content)
        key, colon, value = line.decode("utf-8", "replace").partition(":")
        key = key.strip().lower()
        if key in ("binary", "values") and colon:
            break
        if not colon and line.strip():
            shown = line[:40].decode("latin-1").strip()
            raise UnreadableRaw(f"Not a SPICE raw file: a header line reads {shown!r}", fix="give a .raw file")
        if key == "variables" and not value.strip():
            variables, at = _variables(content, at, _count(fields, "no. variables"))
        elif colon:
            fields.setdefault(key, value.strip())
        if end < 0:
            raise UnreadableRaw("The raw file ends inside its header", fix="run the analysis again")
    flags = fields.get("flags", "real").lower()
    if "compressed" in flags or "fastaccess" in flags:
        raise UnreadableRaw(f"Raw files with flags {flags!r} are not read here", fix="write an uncompressed raw file")
    if not variables:
        raise UnreadableRaw("The raw file's header names no variables", fix="run the analysis again")
    points, is_complex = _count(fields, "no. points"), "complex" in flags
    read = _binary if key == "binary" else _ascii
    values, at = read(content, at, len(variables), points, is_complex)
    complete = 0 < points == len(values)
    return Plot(fields.get("title", ""), fields.get("plotname", ""), variables, values, complete), at


def _count(fields: dict[str, str], key: str) -> int:
    text = fields.get(key, "")
    if not (text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS):
        raise UnreadableRaw(f"The raw file's header has no usable {key!r}: {text!r}", fix="run the analysis again")
    return int(text)


def _variables(content: bytes, at: int, count: int) -> tuple[tuple[Variable, ...], int]:
    if not 0 < count <= MAX_VARIABLES:
        raise UnreadableRaw(f"The raw file says it has {count} variables", fix="run the analysis again")
    found: list[Variable] = []
    for _ in range(count):
        end = content.find(b"\n", at)
        words = content[at:end].decode("utf-8", "replace").split() if end >= 0 else []
        if len(words) < 3:
            raise UnreadableRaw("The raw file's table of variables is cut off", fix="run the analysis again")
        found.append(Variable(words[1], words[2]))
        at = end + 1
    return tuple(found), at


def _binary(content: bytes, at: int, columns: int, points: int, is_complex: bool) -> tuple[Numbers, int]:
    kind = np.dtype("<c16" if is_complex else "<f8")
    there = (len(content) - at) // (kind.itemsize * columns)
    rows = min(points, there) if points else there
    values = np.frombuffer(content, kind, rows * columns, at).reshape(rows, columns)
    end = at + rows * columns * kind.itemsize
    # A run that broke off leaves nothing readable behind its points.
    return values, end if points and rows == points else len(content)


def _ascii(content: bytes, at: int, columns: int, points: int, is_complex: bool) -> tuple[Numbers, int]:
    end = content.find(b"\nTitle:", at)
    body = content[at : end + 1 if end >= 0 else len(content)]
    numbers: list[complex] = []
    cursor = 0
    while (start := _ROW_START.match(body, cursor)) is not None:
        row: list[complex] = []
        cursor = start.end()
        while len(row) < columns and (found := _VALUE.match(body, cursor)) is not None:
            row.append(complex(float(found[1]), float(found[2] or 0)))
            cursor = found.end()
            while body[cursor : cursor + 1].isspace():
                cursor += 1
        if len(row) < columns:
            break
        numbers += row
    rows = len(numbers) // columns
    values = np.array(numbers[: rows * columns], np.complex128).reshape(rows, columns)
    return values if is_complex else np.ascontiguousarray(values.real), at + len(body)
