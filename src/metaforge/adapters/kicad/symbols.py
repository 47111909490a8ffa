"""Find the symbols that a schematic embeds: KiCad's own, those of library files in the workspace, or a box."""

import difflib
import math
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from metaforge.adapters.kicad.program import install, kicad
from metaforge.core.errors import FailureMode, ToolError
from metaforge.formats.kicad_sexpr import BadExpression, Node, Quoted
from metaforge.formats.kicad_symbol import NoSuchSymbol, Symbol, SymbolPin, find_symbol

GRID_MM = 2.54
OWN_LIBRARY = "drawn"
"""Name of the library that boxes of our own say they are from."""


class Shelf:
    """The libraries at hand, each read once.

    Args:
        files: `.kicad_sym` files, their stems the libraries' names.
    """

    def __init__(self, files: Sequence[Path]) -> None:
        self._files = {file.stem: file for file in files}
        self._folder = Path(kicad().path).resolve().parents[1] / "share" / "kicad" / "symbols"
        self._texts: dict[str, str] = {}

    @property
    def has_standard(self) -> bool:
        """Whether KiCad's own libraries are installed."""
        return (self._folder / "Device.kicad_sym").is_file()

    def find(self, name: str) -> Symbol | None:
        """Return a symbol by `LIBRARY:NAME`, or None where its library is not there.

        Raises:
            ToolError: the library is there and has no such symbol, or cannot be read.
        """
        library, _, symbol = name.partition(":")
        text = self._text(library)
        if text is None or not symbol:
            return None
        try:
            return find_symbol(text, symbol)
        except NoSuchSymbol as fault:
            close = difflib.get_close_matches(symbol, fault.names, 5, 0.4) or fault.names[:5]
            raise ToolError(
                f"The library {library} has no symbol {symbol!r}", kind="no_such_symbol", where=name,
                fix=f"there is: {', '.join(close)}",
            ) from None  # fmt: skip
        except BadExpression as fault:
            raise ToolError(f"The symbol library {library} cannot be read: {fault}", kind="bad_library",
                            where=f"{library}.kicad_sym, line {fault.line}") from None  # fmt: skip

    def _text(self, library: str) -> str | None:
        if library not in self._texts:
            file = self._files.get(library, self._folder / f"{PurePosixPath(library).name}.kicad_sym")
            if not file.is_file():
                return None
            self._texts[library] = file.read_text(encoding="utf-8", errors="replace")
        return self._texts[library]

    def power(self, net: str) -> Symbol | None:
        """Return the power symbol of a net's name, or None."""
        text = self._text("power")
        if text is None:
            return None
        try:
            return find_symbol(text, net)
        except (NoSuchSymbol, BadExpression):
            return None

    def flag(self) -> Symbol:
        """Return the symbol that tells that a net is supplied.

        Raises:
            ToolError: KiCad's own libraries are not there.
        """
        found = self.power("PWR_FLAG")
        if found is None:
            raise ToolError(
                "KiCad's symbol library is not installed, and nothing else can tell that a net is supplied",
                kind="no_libraries", fix=install(), failure_mode=FailureMode.ENVIRONMENT,
            )  # fmt: skip
        return found


def box(name: str, pins: Sequence[tuple[str, str, str]]) -> Symbol:
    """Draw a part as a box with its pins: the first half down the left side, the rest down the right.

    Args:
        pins: (number, name, kind) of each.
    """
    left = math.ceil(len(pins) / 2)
    height = GRID_MM * (max(left, 1) + 1)
    top = GRID_MM * round(height / GRID_MM / 2)
    longest = max([len(text or number) for number, text, _ in pins] or [1])
    half = GRID_MM * math.ceil((longest * 1.3 + 2.54) / GRID_MM)
    placed: list[SymbolPin] = []
    drawn: list[Node] = []
    for index, (number, text, kind) in enumerate(pins):
        row = index if index < left else index - left
        x, angle = (-half - GRID_MM, 0) if index < left else (half + GRID_MM, 180)
        y = top - GRID_MM * (row + 1)
        kind = str(kind) if kind in _KINDS else "passive"
        placed.append(SymbolPin(1, number, text, kind, (x, y), angle))
        drawn.append(_pin(kind, x, y, angle, text or "~", number))
    bottom = top - height
    body: Node = [
        "symbol", Quoted(f"{name}_1_1"),
        ["rectangle", ["start", f"{-half:g}", f"{top:g}"], ["end", f"{half:g}", f"{bottom:g}"],
         ["stroke", ["width", "0.254"], ["type", "default"]], ["fill", ["type", "background"]]],
        *drawn,
    ]  # fmt: skip
    node: Node = [
        "symbol", Quoted(name), ["exclude_from_sim", "no"], ["in_bom", "yes"], ["on_board", "yes"],
        _property("Reference", "U", top + GRID_MM), _property("Value", name, bottom - GRID_MM),
        _property("Footprint", "", 0.0), _property("Datasheet", "", 0.0), body,
    ]  # fmt: skip
    return Symbol(name, node, tuple(placed), False, 1, {1: (-half - GRID_MM, bottom, half + GRID_MM, top)})


_KINDS = ("input", "output", "bidirectional", "tri_state", "passive", "free", "unspecified", "power_in", "power_out",
          "open_collector", "open_emitter", "no_connect")  # fmt: skip
_FONT: Node = ["effects", ["font", ["size", "1.27", "1.27"]]]


def _pin(kind: str, x: float, y: float, angle: int, name: str, number: str) -> Node:
    return [
        "pin", kind, "line", ["at", f"{x:g}", f"{y:g}", str(angle)], ["length", f"{GRID_MM:g}"],
        ["name", Quoted(name), _FONT], ["number", Quoted(number), _FONT],
    ]  # fmt: skip


def _property(name: str, text: str, y: float) -> Node:
    return ["property", Quoted(name), Quoted(text), ["at", "0", f"{y:g}", "0"], _FONT]
