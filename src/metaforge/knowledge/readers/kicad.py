"""Read what KiCad's files name: title block, parts with their fields, notes, labels, nets, rules of the project."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence

from metaforge.formats.kicad_board import NotABoard, read_board
from metaforge.formats.kicad_project import UnreadableProject, read_project
from metaforge.formats.kicad_schematic import NotASchematic, read_schematic
from metaforge.formats.kicad_sexpr import BadExpression, Node, child, children, parse, properties, texts, value
from metaforge.knowledge.blocks import Block, Fact, Paragraph, Row
from metaforge.knowledge.refusals import damaged

_TITLE = (("Title", "title"), ("Revision", "rev"), ("Date", "date"), ("Company", "company"))
_LABELS = ("global_label", "hierarchical_label", "label")
_PRIVATE = ("ki_", "Sim.", "Sheet")
_NAMES_A_FACT = 60

Part = tuple[str, tuple[tuple[str, str], ...]]
"""Its value, and its other fields."""


def read_schematic_facts(text: str, name: str) -> Iterator[Block]:
    """Yield a schematic's facts, and a row for each kind of part on it.

    Raises:
        ToolError: it is no schematic (`document_damaged`).
    """
    try:
        found = read_schematic(text)
        root = parse(text)
    except (BadExpression, NotASchematic) as fault:
        raise damaged(name, "KiCad schematic", str(fault)) from None
    parts = [node for node in children(root, "symbol") if not _reference(node).startswith("#")]
    sheets = "".join(f"\nSheet: {sheet.name} ({sheet.file})" for sheet in found.sheets)
    yield Fact(f"KiCad schematic {name}{_title(root)}\nParts: {len(parts)}{sheets}", 1)
    yield from _parts(parts, text)
    for note in children(root, "text"):
        if said := " ".join(texts(note)[:1]):
            yield Paragraph(said)
    yield from _names("Labels", {label for node in children(root, *_LABELS) for label in texts(node)[:1]})


def read_board_facts(text: str, name: str) -> Iterator[Block]:
    """Yield a board's facts, and a row for each kind of part on it.

    Raises:
        ToolError: it is no board (`document_damaged`).
    """
    try:
        board = read_board(text)
        root = parse(text)
    except (BadExpression, NotABoard) as fault:
        raise damaged(name, "KiCad board", str(fault)) from None
    width, height = board.size_mm
    thickness = value(child(root, "general") or [], "thickness")
    yield Fact(
        f"KiCad board {name}{_title(root)}\nSize: {width:g} mm x {height:g} mm"
        + (f", {thickness} mm thick" if thickness else "")
        + f"\nCopper layers: {len(board.copper_layers)} ({', '.join(board.copper_layers)})"
        f"\nFootprints: {board.footprints_count}; vias: {len(board.vias)}; zones: {board.zones_count}",
        1,
    )
    yield from _parts(list(children(root, "footprint", "module")), text)
    yield from _names("Nets", {net for net in board.nets if net})


def read_project_facts(text: str, name: str) -> Iterator[Block]:
    """Yield the limits and net classes of a project.

    Raises:
        ToolError: it is no project (`document_damaged`).
    """
    try:
        project = read_project(text)
    except UnreadableProject as fault:
        where = f"line {fault.line}: " if fault.line else ""
        raise damaged(name, "KiCad project", f"{where}{fault}") from None
    limits = [f"Smallest {limit.replace('_', ' ')}: {size_mm:g} mm" for limit, size_mm in project.limits_mm.items()]
    yield Fact("\n".join([f"KiCad project {name}", *limits]), 1)
    for net_class, sizes in project.net_classes.items():
        yield Row(
            (net_class, *(f"{size_mm:g}" for size_mm in sizes.values())),
            ("Net class", *(f"{size.replace('_', ' ')} (mm)" for size in sizes)),
        )


def _title(root: Node) -> str:
    block = child(root, "title_block") or []
    said = [f"\n{shown}: {text}" for shown, key in _TITLE if (text := value(block, key))]
    comments = [texts(comment)[-1] for comment in children(block, "comment") if len(texts(comment)) > 1]
    return "".join([*said, *(f"\nComment: {comment}" for comment in comments)])


def _reference(node: Node) -> str:
    named = properties(node).get("Reference", "")
    if named:
        return named
    # Boards before version 8 write it as a text of the footprint.
    return next((words[1] for text in children(node, "fp_text") if (words := texts(text))[:1] == ["reference"]), "")


def _parts(nodes: Sequence[Node], text: str) -> Iterator[Row]:
    """Yield one row for all parts that are the same but for their reference."""
    alike: dict[Part, set[str]] = defaultdict(set)
    for node in nodes:
        alike[_part(node)].add(_reference(node))
    lines = _Lines(text)
    for (part_value, fields), references in alike.items():
        named = sorted((each for each in references if each), key=lambda each: (len(each), each))
        yield Row(
            (", ".join(named), part_value, *(said for _, said in fields)),
            ("References", "Value", *(field for field, _ in fields)),
            lines.of(f'"Reference" "{named[0]}"') if named else None,
        )


def _part(node: Node) -> Part:
    named = properties(node)
    fields = {"Footprint": texts(node)[0]} if node[0] in ("footprint", "module") and texts(node) else {}
    fields |= {
        field: said
        for field, said in named.items()
        if said not in ("", "~") and field not in ("Reference", "Value") and not field.startswith(_PRIVATE)
    }
    if node[0] == "symbol" and value(node, "dnp") == "yes":
        fields["Fitted"] = "no"
    return named.get("Value", ""), tuple(sorted(fields.items()))


def _names(what: str, names: set[str]) -> Iterator[Fact]:
    listed = sorted(names)
    for begin in range(0, len(listed), _NAMES_A_FACT):
        yield Fact(f"{what}: {', '.join(listed[begin : begin + _NAMES_A_FACT])}")


class _Lines:
    """Says in which line of a text something stands first."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._ends = [at for at, letter in enumerate(text) if letter == "\n"]

    def of(self, said: str) -> int | None:
        at = self._text.find(said)
        return bisect_left(self._ends, at) + 1 if at >= 0 else None
