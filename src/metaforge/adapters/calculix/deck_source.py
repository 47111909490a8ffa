"""Read a deck or mesh file from the workspace: includes put in, dangers refused, its mesh in our own shape.

CalculiX never reads the caller's file: it gets a deck that is complete in itself, so no card of it can name
another file.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from metaforge.core.errors import ToolError
from metaforge.engineering.element_types import ELEMENT_TYPES
from metaforge.engineering.mesh import ElementBlock, Mesh, Surface
from metaforge.engineering.surface_geometry import measure_surface
from metaforge.formats.deck_model import DeckModel
from metaforge.formats.inp import BadDeck, Card, read_cards, squeezed
from metaforge.formats.inp_model import read_model
from metaforge.tools.paths import find_below

MAX_DECK_BYTES = 512_000_000
_FILE_PARAMETERS = ("INPUT", "FILE")
_READS_FILES = {"RESTART": "READ", "SUBMODEL": "", "CFD": "", "MASSLESSCONTACT": ""}


@dataclass(frozen=True)
class Source:
    """A deck or mesh file.

    Attributes:
        path: relative to the workspace, for messages.
        cards: every card, includes in place.
        model: what they mean.
        mesh: its nodes and elements; element blocks carry the section they belong to.
        included: files that were included, relative to the workspace.
    """

    path: str
    cards: list[Card]
    model: DeckModel
    mesh: Mesh
    included: tuple[str, ...]

    @property
    def has_step(self) -> bool:
        return "STEP" in self.model.keywords

    def text(self, extra_requests: dict[int, list[str]] | None = None) -> str:
        """Return the deck without includes and comments, with result requests added to the steps that lack them."""
        lines: list[str] = []
        step = 0
        for card in self.cards:
            if card.keyword == "STEP":
                step += 1
            if card.keyword == "END STEP":
                lines += (extra_requests or {}).get(step, [])
            lines.append(card.text)
            lines += card.rows
        return "\n".join(lines) + "\n"


def read_source(path: str, workspace: Path) -> Source:
    """Read a deck or mesh.

    Args:
        path: relative to the workspace.
        workspace: its root; includes must lie inside it.

    Raises:
        ToolError: it is not a deck, reads files it may not, or is damaged; the line is named.
    """
    root = workspace.resolve()
    file = root / path
    included: list[str] = []

    def include(name: str, line: int) -> str:
        target = _include_target(name, file.parent, root, line)
        included.append(target.relative_to(root).as_posix())
        return _text(target)

    cards = read_cards(_text(file), include)
    _refuse_dangers(cards)
    model = read_model(cards)
    return Source(path, cards, model, mesh_of(model), tuple(included))


def _text(path: Path) -> str:
    if path.stat().st_size > MAX_DECK_BYTES:
        raise BadDeck(f"{path.name} is larger than {MAX_DECK_BYTES / 1e6:.0f} MB", fix="coarsen the mesh")
    content = path.read_bytes()
    if content[:3] == b"\xef\xbb\xbf":
        content = content[3:]
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise BadDeck(f"{path.name} is UTF-16 text", fix="save it as plain ASCII or UTF-8")
    return content.decode("utf-8", "replace")


def _include_target(name: str, folder: Path, root: Path, line: int) -> Path:
    target, is_file = find_below(root, folder / name)
    if not name or target is None:
        raise BadDeck(
            f"*INCLUDE names {name!r}, which lies outside the workspace",
            kind="path_outside_workspace",
            where=f"line {line}",
            fix="copy the file into the workspace and include it by a relative path",
        )
    if not is_file:
        raise BadDeck(
            f"*INCLUDE names {name!r}, which does not exist",
            kind="missing_include",
            where=f"line {line}",
            fix="put the file beside the deck, or correct INPUT=",
        )
    return target


def _refuse_dangers(cards: Iterable[Card]) -> None:
    """Refuse cards that make CalculiX open files: it reads whatever they name."""
    for card in cards:
        keyword = squeezed(card.keyword)
        wanted = next((need for name, need in _READS_FILES.items() if keyword.startswith(name)), None)
        named = [name for name in card.parameters if name.startswith(_FILE_PARAMETERS)]
        if named or (wanted is not None and (not wanted or wanted in card.parameters)):
            shown = f"{named[0]}={card.parameters[named[0]]}" if named else "a file of another job"
            raise BadDeck(
                f"*{card.keyword} reads {shown}: a deck may not open files",
                kind="deck_reads_files",
                where=card.where(),
                fix="put the data into the deck, or use *INCLUDE with a file of the workspace",
            )


def mesh_of(model: DeckModel) -> Mesh:
    """Return a deck's mesh; every element block carries the element set of its section.

    Raises:
        BadDeck: an element names a node that is not there.
    """
    section_of = _sections_by_element(model)
    blocks: list[ElementBlock] = []
    for rows in model.elements:
        _check_nodes(model, rows.nodes, rows.ids, rows.type, rows.line)
        names = np.array([section_of.get(int(i), "") for i in rows.ids], dtype=object)
        for name in dict.fromkeys(names.tolist()):
            mine = names == name
            blocks.append(ElementBlock(rows.type, rows.ids[mine], rows.nodes[mine], str(name)))
    mesh = Mesh(model.node_ids, model.coordinates, tuple(blocks), dict(model.node_sets), dict(model.element_sets))
    return Mesh(
        mesh.node_ids, mesh.coordinates_mm, mesh.blocks, mesh.node_sets, mesh.element_sets, _surfaces(model, mesh)
    )


def _sections_by_element(model: DeckModel) -> dict[int, str]:
    found: dict[int, str] = {}
    for section in model.sections:
        for ident in model.element_sets.get(section.elset, np.empty(0, np.int64)).tolist():
            found[ident] = section.elset
    return found


def _check_nodes(
    model: DeckModel, nodes: "np.ndarray[tuple[int, int], np.dtype[np.int64]]",
    ids: "np.ndarray[tuple[int], np.dtype[np.int64]]", kind: str, line: int,
) -> None:  # fmt: skip
    known = np.isin(nodes, model.node_ids)
    # B31 and the like may leave a node field 0 for "no direction node".
    bad = ~(known | (nodes == 0))
    if bad.any():
        row, column = np.argwhere(bad)[0]
        raise BadDeck(
            f"Element {ids[row]} ({kind}) names node {nodes[row, column]}, which the deck does not define",
            kind="unknown_node",
            where=f"line {line}, *ELEMENT",
            fix="define the node with *NODE, or correct the element",
        )


def _surfaces(model: DeckModel, mesh: Mesh) -> dict[str, Surface]:
    """Measure every element surface that lies on solids; others are of no use for choosing faces."""
    solids = [b.ids for b in mesh.blocks if (kind := ELEMENT_TYPES.get(b.type)) and kind.use == "solid"]
    known = np.concatenate(solids) if solids else np.empty(0, np.int64)
    surfaces: dict[str, Surface] = {}
    for name, members in model.surfaces.items():
        faces = np.array(members, dtype=np.int64).reshape(-1, 2)
        if len(faces) and np.isin(faces[:, 0], known).all():
            try:
                surfaces[name] = measure_surface(mesh, faces)
            except KeyError as fault:
                raise BadDeck(
                    f"*SURFACE {name} names {fault.args[0]}, which its elements do not have",
                    fix="number faces S1 to S4 (tetrahedra), S1 to S5 (wedges), S1 to S6 (hexahedra)",
                ) from None
    return surfaces


def step_analysis(source: Source) -> str:
    """Return what the deck's steps compute: `static_stress`, `modal`, `buckling` or `thermal`.

    Raises:
        ToolError: no step, or a procedure that is not read here.
    """
    kinds = {
        "STATIC": "static_stress", "VISCO": "static_stress", "FREQUENCY": "modal", "BUCKLE": "buckling",
        "HEAT TRANSFER": "thermal", "UNCOUPLED TEMPERATURE-DISPLACEMENT": "static_stress",
        "COUPLED TEMPERATURE-DISPLACEMENT": "static_stress",
    }  # fmt: skip
    last = ""
    for keyword, card in source.model.procedures:
        if keyword not in kinds:
            raise ToolError(
                f"The deck asks for *{keyword}, whose results are not read here",
                kind="unsupported_procedure",
                where=card.where(),
                fix="use *STATIC, *FREQUENCY, *BUCKLE or *HEAT TRANSFER",
            )
        last = kinds[keyword]
    if not last:
        raise ToolError(
            "The deck has *STEP but no procedure in it",
            kind="no_procedure",
            fix="add *STATIC, *FREQUENCY, *BUCKLE or *HEAT TRANSFER below *STEP",
        )
    return last
