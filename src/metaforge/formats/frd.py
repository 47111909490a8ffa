"""Read a CalculiX result file (.frd, ASCII). Bytes in, arrays out.

Layout: fixed columns. A node line is ` -1`, a ten-digit id (five in the short format) and twelve-character
numbers; an element is a ` -1` line with id and type and ` -2` lines with nodes; a result block is headed by
`100CL` (time or frequency), ` -4` (name) and ` -5` (components), and ends with ` -3`.
"""

import re
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from metaforge.core.errors import ToolError

Ids = NDArray[np.int64]
Floats = NDArray[np.float64]

NODES_OF_TYPE = {1: 8, 2: 6, 3: 4, 4: 20, 5: 15, 6: 10, 7: 3, 8: 6, 9: 4, 10: 8, 11: 2, 12: 3}
"""Nodes per element by the file's own element type number: he8 pe6 te4 he20 pe15 te10 tr3 tr6 qu4 qu8 be2 be3."""

_NUMBER = re.compile(rb"[-+]?\d\.\d+E[-+]\d{2,3}|[-+]?nan|[-+]?inf(?:inity)?|[-+]?\d+\.\d*", re.IGNORECASE)
_WIDTH = 12


class UnreadableResults(ToolError):
    """The file is not a CalculiX ASCII result file, or nothing in it can be used."""

    default_kind = "unreadable_results"


@dataclass(frozen=True)
class ResultBlock:
    """One field at one moment.

    Attributes:
        name: `DISP`, `STRESS`, `FORC`, `NDTEMP` ... as in the file.
        components: names such as `SXX`, without derived ones such as `ALL`.
        step: number of the result within the file.
        value: time in s, frequency in Hz or buckling factor, whichever the analysis has.
        node_ids: shape (n,).
        values: shape (n, components).
        complete: False when the file ends inside the block.
    """

    name: str
    components: tuple[str, ...]
    step: int
    value: float
    node_ids: Ids
    values: Floats
    complete: bool = True


@dataclass(frozen=True)
class Results:
    """A whole .frd file."""

    node_ids: Ids
    coordinates_mm: Floats
    elements: dict[int, tuple[Ids, Ids]] = field(default_factory=dict)
    """File's element type -> element ids (m,), their nodes (m, nodes per element)."""
    blocks: tuple[ResultBlock, ...] = ()
    version: str = ""
    truncated: bool = False

    def named(self, name: str) -> list[ResultBlock]:
        """Return every block of that name in the file's order."""
        return [block for block in self.blocks if block.name == name]

    def last(self, name: str) -> ResultBlock | None:
        """Return the last complete block of that name."""
        complete = [block for block in self.named(name) if block.complete]
        return complete[-1] if complete else None


def read_frd(content: bytes) -> Results:
    """Read a result file.

    Args:
        content: the file's bytes.

    Raises:
        UnreadableResults: it is empty, binary, or no .frd at all.
    """
    if not content.lstrip().startswith((b"1C", b"1U", b"2C")):
        shown = content[:12].decode("latin-1").strip() or "nothing"
        raise UnreadableResults(f"Not a CalculiX result file: it starts with {shown!r}", fix="give an .frd file")
    cursor = _Cursor(content)
    return cursor.read()


class _Cursor:
    """Walks the blocks of one file; `at` is the offset of the next line."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.at = 0
        self.truncated = False
        self.node_ids: Ids = np.empty(0, np.int64)
        self.coordinates: Floats = np.empty((0, 3))
        self.elements: dict[int, tuple[Ids, Ids]] = {}
        self.blocks: list[ResultBlock] = []
        self.version = ""
        self.step, self.value, self.id_width = 0, 0.0, 10

    def read(self) -> Results:
        while (line := self.line()) is not None:
            head = line[:6].strip()
            if head == b"2C":
                self.id_width = _id_width(line)
                self.node_ids, self.coordinates, _ = self.table(3)
            elif head == b"3C":
                self.id_width = _id_width(line)
                self.read_elements()
            elif line.startswith(b"  100C"):
                self.read_moment(line)
            elif line.startswith(b" -4"):
                self.read_block(line)
            elif b"1UVERSION" in line[:20]:
                self.version = line[20:].decode("latin-1").replace("Version", "").strip()
        return Results(self.node_ids, self.coordinates, self.elements, tuple(self.blocks), self.version, self.truncated)

    def line(self) -> bytes | None:
        if self.at >= len(self.content):
            return None
        end = self.content.find(b"\n", self.at)
        end = len(self.content) if end < 0 else end
        line = self.content[self.at : end]
        self.at = end + 1
        return line

    def section(self) -> bytes:
        """Return the bytes up to the ` -3` that closes a block, and step over it."""
        end = self.content.find(b"\n -3", self.at - 1)
        if end < 0:
            self.truncated = True
            body, self.at = self.content[self.at :], len(self.content)
            return body[: body.rfind(b"\n") + 1]
        body = self.content[self.at : end + 1]
        self.at = end + 4
        self.line()
        return body

    def read_moment(self, line: bytes) -> None:
        try:
            self.value = float(line[12:24])
            self.step = int(line[58:63])
        except ValueError:
            self.value, self.step = float("nan"), self.step + 1
        self.id_width = _id_width(line)

    def read_block(self, line: bytes) -> None:
        name = line[5:13].split()[0].decode("latin-1") if line[5:13].split() else "?"
        components: list[str] = []
        while self.content[self.at : self.at + 3] == b" -5":
            row = self.line() or b""
            words = row[5:].split()
            # `1ALL` marks a component that the viewer derives: it is not in the table.
            if words and not row.rstrip().endswith(b"ALL"):
                components.append(words[0].decode("latin-1"))
        was_truncated = self.truncated
        ids, values, _ = self.table(len(components))
        complete = self.truncated == was_truncated
        self.blocks.append(ResultBlock(name, tuple(components), self.step, self.value, ids, values, complete))

    def table(self, columns: int) -> tuple[Ids, Floats, bytes]:
        body = self.section()
        if columns == 0 or not body:
            return np.empty(0, np.int64), np.empty((0, columns)), body
        fast = _fixed_table(body, columns, self.id_width)
        ids, values = fast if fast is not None else _loose_table(body, columns, self.id_width)
        return ids, values, body

    def read_elements(self) -> None:
        found: dict[int, tuple[list[int], list[bytes]]] = {}
        width, row = self.id_width, b""
        kind, ident, nodes = 0, 0, b""

        def keep() -> None:
            if kind in NODES_OF_TYPE and len(nodes) == width * NODES_OF_TYPE[kind]:
                ids, rows = found.setdefault(kind, ([], []))
                ids.append(ident)
                rows.append(nodes)

        for row in self.section().split(b"\n"):
            if row.startswith(b" -2"):
                nodes += row[3:].rstrip(b"\r")
            elif row.startswith(b" -1"):
                keep()
                nodes = b""
                try:
                    ident, kind = int(row[3 : 3 + width]), int(row[3 + width : 8 + width])
                except ValueError:
                    kind = 0
        keep()
        for each, (ids, rows) in found.items():
            try:
                table = np.frombuffer(b"".join(rows), dtype=f"S{width}").astype(np.int64)
            except ValueError:
                continue
            self.elements[each] = (np.array(ids, dtype=np.int64), table.reshape(len(ids), -1))


def _id_width(header: bytes) -> int:
    """Return the width of ids from a block's header, whose last number is the format.

    Raises:
        UnreadableResults: the block is binary.
    """
    words = header.split()
    code = words[-1] if len(words) > 2 else b"1"
    if code in (b"2", b"3"):
        raise UnreadableResults(
            "The result file is binary; only ASCII results can be read",
            fix="ask for *NODE FILE and *EL FILE instead of *NODE OUTPUT with BINARY",
        )
    return 5 if code == b"0" else 10


def _fixed_table(body: bytes, columns: int, id_width: int) -> tuple[Ids, Floats] | None:
    """Read a table whose lines all have the same length; None when they have not."""
    if columns > 6:
        return None
    width = 3 + id_width + _WIDTH * columns + 1
    if len(body) % width:
        return None
    grid = np.frombuffer(body, dtype=np.uint8).reshape(-1, width)
    if not (grid[:, -1] == ord("\n")).all() or not (grid[:, :3] == np.frombuffer(b" -1", np.uint8)).all():
        return None
    try:
        ids = _column_text(grid[:, 3 : 3 + id_width], id_width).astype(np.int64)
        numbers = _column_text(grid[:, 3 + id_width : -1], _WIDTH).astype(np.float64)
    except ValueError:
        return None
    return ids.ravel(), numbers.reshape(-1, columns)


def _column_text(grid: NDArray[np.uint8], width: int) -> NDArray[np.bytes_]:
    return np.ascontiguousarray(grid).view(f"S{width}")


def _loose_table(body: bytes, columns: int, id_width: int) -> tuple[Ids, Floats]:
    """Read a table line by line: three-digit exponents, continuation lines, damaged lines left out."""
    ids: list[int] = []
    rows: list[list[float]] = []
    for line in body.split(b"\n"):
        numbers = [float(text) for text in _NUMBER.findall(line[3 + id_width :])]
        if line.startswith(b" -1"):
            try:
                ids.append(int(line[3 : 3 + id_width]))
            except ValueError:
                continue
            rows.append(numbers)
        elif line.startswith(b" -2") and rows:
            rows[-1] += numbers
    whole = [index for index, row in enumerate(rows) if len(row) == columns]
    table = np.array([rows[index] for index in whole], dtype=np.float64).reshape(len(whole), columns)
    return np.array([ids[index] for index in whole], dtype=np.int64), table


def von_mises(stress: Floats) -> Floats:
    """Return the von Mises stress of rows (xx, yy, zz, xy, yz, zx), in the unit given."""
    xx, yy, zz, xy, yz, zx = stress[:, :6].T
    normal = (xx - yy) ** 2 + (yy - zz) ** 2 + (zz - xx) ** 2
    return np.asarray(np.sqrt(0.5 * normal + 3.0 * (xy**2 + yz**2 + zx**2)), dtype=np.float64)
