"""Read the cards of a deck into a `DeckModel`; every fault names its line."""

from collections.abc import Iterable

import numpy as np

from metaforge.formats.deck_model import (
    NODES_PER_ELEMENT,
    PROCEDURES,
    DeckModel,
    ElementRows,
    Fixing,
    Floats,
    Ids,
    Material,
    PointLoad,
    Section,
    is_id,
)
from metaforge.formats.inp import BadDeck, Card, fields, numbers
from metaforge.formats.inp_tables import (
    check_ids,
    element_table,
    integer_at,
    node_table,
    number_at,
    row_numbers,
    set_members,
)


def read_model(cards: Iterable[Card]) -> DeckModel:
    """Read a deck's cards.

    Raises:
        BadDeck: a number, id or set cannot be read; the line is named.
    """
    return _Reader().read(list(cards))


class _Reader:
    def __init__(self) -> None:
        self.model = DeckModel()
        self.nodes: list[tuple[Ids, Floats]] = []
        self.material: Material | None = None
        self.step = 0

    def read(self, cards: list[Card]) -> DeckModel:
        # Sets may be used before they are defined in the file, so nodes, elements and sets come first.
        for card in cards:
            if read := _MESH_CARDS.get(card.keyword):
                read(self, card)
        self._gather_nodes()
        for card in cards:
            self.model.keywords.add(card.keyword)
            if card.keyword in PROCEDURES:
                self.model.procedures.append((card.keyword, card))
            if read := _MODEL_CARDS.get(card.keyword):
                read(self, card)
        return self.model

    def _gather_nodes(self) -> None:
        if not self.nodes:
            return
        ids = np.concatenate([block[0] for block in self.nodes])
        coordinates = np.concatenate([block[1] for block in self.nodes])
        # A node given twice keeps its last position, as in CalculiX.
        _, last = np.unique(ids[::-1], return_index=True)
        keep = len(ids) - 1 - last
        self.model.node_ids, self.model.coordinates = ids[keep], coordinates[keep]

    def node(self, card: Card) -> None:
        table = node_table(card)
        if not np.isfinite(table).all():
            row = int(np.flatnonzero(~np.isfinite(table).all(axis=1))[0])
            raise BadDeck(
                f"Not a position: {card.rows[row][:60]!r}", where=card.where(row), fix="write finite coordinates"
            )
        # What no integer holds is beyond the highest id all the same.
        ids = np.clip(table[:, 0], -(2.0**62), 2.0**62).astype(np.int64)
        check_ids(card, ids, "node")
        self.nodes.append((ids, table[:, 1:4]))
        if name := card.name("NSET"):
            _join(self.model.node_sets, name, ids)

    def element(self, card: Card) -> None:
        kind = card.name("TYPE")
        if not kind:
            raise BadDeck("*ELEMENT without TYPE", where=card.where(), fix="name the type, such as TYPE=C3D10")
        table = element_table(card, NODES_PER_ELEMENT.get(kind))
        check_ids(card, table[:, 0], "element")
        elset = card.name("ELSET")
        self.model.elements.append(ElementRows(kind, elset, table[:, 0], table[:, 1:], card.line))
        if elset:
            _join(self.model.element_sets, elset, table[:, 0])

    def node_set(self, card: Card) -> None:
        # A set made from a surface or from other sets' nodes is known to CalculiX only.
        _join(self.model.node_sets, card.name("NSET"), set_members(card, self.model.node_sets))

    def element_set(self, card: Card) -> None:
        _join(self.model.element_sets, card.name("ELSET"), set_members(card, self.model.element_sets))

    def surface(self, card: Card) -> None:
        faces = self.model.surfaces.setdefault(card.name("NAME"), [])
        for row in card.rows:
            parts = fields(row)
            if len(parts) < 2 or parts[1][:1].upper() != "S" or not is_id(parts[1][1:]):
                continue
            members = self.model.element_sets.get(parts[0].upper())
            if members is None:
                members = np.array([int(parts[0])] if is_id(parts[0]) else [], dtype=np.int64)
            faces += [(int(each), int(parts[1][1:])) for each in members]

    def begin_material(self, card: Card) -> None:
        self.material = Material(card.name("NAME"), card.line)
        self.model.materials[self.material.name] = self.material

    def material_value(self, card: Card) -> None:
        if self.material is None:
            return
        self.material.keywords.add(card.keyword)
        if not card.rows:
            return
        values = row_numbers(card, 0)
        if card.keyword == "ELASTIC" and card.name("TYPE") in ("", "ISO", "ISOTROPIC"):
            self.material.youngs_modulus = values[0]
            self.material.poissons_ratio = values[1] if len(values) > 1 else None
        elif name := {
            "DENSITY": "density", "CONDUCTIVITY": "conductivity", "SPECIFIC HEAT": "specific_heat",
            "EXPANSION": "expansion",
        }.get(card.keyword):  # fmt: skip
            setattr(self.material, name, values[0])

    def section(self, card: Card) -> None:
        values: tuple[float, ...] = ()
        if card.rows:
            try:
                values = tuple(numbers(card.rows[0]))
            except ValueError:
                values = ()
        self.model.sections.append(Section(card.keyword, card.name("ELSET"), card.name("MATERIAL"), values, card.line))

    def begin_step(self, card: Card) -> None:
        self.step += 1

    def boundary(self, card: Card) -> None:
        if "SUBMODEL" in card.parameters:
            return
        for index, row in enumerate(card.rows):
            parts = fields(row)
            nodes = self._nodes(card, index, parts)
            first = integer_at(card, index, parts, 1, 1)
            last = integer_at(card, index, parts, 2, first)
            value = number_at(card, index, parts, 3)
            self.model.fixings.append(Fixing(nodes, first, last, value, self.step, card.row_lines[index]))

    def point_load(self, card: Card) -> None:
        self.model.loaded_steps.add(self.step)
        for index, row in enumerate(card.rows):
            parts = fields(row)
            nodes = self._nodes(card, index, parts)
            dof = integer_at(card, index, parts, 1, 0)
            self.model.point_loads.append(PointLoad(nodes, dof, number_at(card, index, parts, 2), self.step))

    def other_load(self, card: Card) -> None:
        self.model.loaded_steps.add(self.step)

    def equation(self, card: Card) -> None:
        tokens = [part for row in card.rows for part in fields(row)]
        at = 0
        while at < len(tokens) and is_id(tokens[at]):
            count = int(tokens[at])
            names = tokens[at + 1 : at + 1 + 3 * count : 3]
            found = [nodes for name in names if (nodes := self.model.nodes_named(name)) is not None]
            if found:
                self.model.links.append(np.concatenate(found))
            at += 1 + 3 * count

    def tied(self, card: Card) -> None:
        found = [self._surface_nodes(part) for row in card.rows for part in fields(row)]
        found += [self._surface_nodes(card.name(each)) for each in ("NSET", "ELSET", "SURFACE", "REFNODE", "ROTNODE")]
        members = [nodes for nodes in found if len(nodes)]
        if members:
            self.model.links.append(np.concatenate(members))

    def _surface_nodes(self, name: str) -> Ids:
        nodes = self.model.nodes_named(name) if name else None
        if nodes is not None:
            return nodes
        elements = {face[0] for face in self.model.surfaces.get(name.upper(), ())}
        elements |= set(self.model.element_sets.get(name.upper(), np.empty(0, np.int64)).tolist())
        if not elements:
            return np.empty(0, np.int64)
        wanted = np.array(sorted(elements), dtype=np.int64)
        rows = [each.nodes[np.isin(each.ids, wanted)].ravel() for each in self.model.elements]
        return np.unique(np.concatenate(rows)) if rows else np.empty(0, np.int64)

    def _nodes(self, card: Card, index: int, parts: list[str]) -> Ids:
        nodes = self.model.nodes_named(parts[0]) if parts else None
        if nodes is None:
            known = ", ".join(sorted(self.model.node_sets)[:12]) or "none"
            raise BadDeck(
                f"*{card.keyword} names node set {parts[0] if parts else ''!r}, which the deck does not define",
                kind="unknown_set",
                where=card.where(index),
                fix=f"define it with *NSET, or use one of: {known}",
            )
        return nodes


_MESH_CARDS = {
    "NODE": _Reader.node, "ELEMENT": _Reader.element, "NSET": _Reader.node_set, "ELSET": _Reader.element_set,
    "SURFACE": _Reader.surface,
}  # fmt: skip
_SECTIONS = ("SOLID SECTION", "SHELL SECTION", "BEAM SECTION", "MEMBRANE SECTION", "FLUID SECTION", "USER SECTION")
_LOADS = ("DLOAD", "DSLOAD", "TEMPERATURE", "DFLUX", "FILM", "RADIATE", "SFILM", "SRADIATE")
_LINKS = ("TIE", "RIGID BODY", "COUPLING", "MPC", "DISTRIBUTING COUPLING", "CYCLIC SYMMETRY MODEL")
_MODEL_CARDS = {
    "MATERIAL": _Reader.begin_material,
    "STEP": _Reader.begin_step,
    "BOUNDARY": _Reader.boundary,
    "CLOAD": _Reader.point_load,
    "CFLUX": _Reader.point_load,
    "EQUATION": _Reader.equation,
    **dict.fromkeys(_SECTIONS, _Reader.section),
    **dict.fromkeys(_LOADS, _Reader.other_load),
    **dict.fromkeys(_LINKS, _Reader.tied),
    **dict.fromkeys(
        ("ELASTIC", "DENSITY", "CONDUCTIVITY", "SPECIFIC HEAT", "EXPANSION", "PLASTIC", "HYPERELASTIC",
         "USER MATERIAL", "CREEP"), _Reader.material_value,
    ),
}  # fmt: skip


def _join(sets: dict[str, Ids], name: str, ids: Ids) -> None:
    sets[name] = np.union1d(sets[name], ids) if name in sets else np.unique(ids)
