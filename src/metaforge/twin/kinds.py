"""The kinds of node: which are revised as items, under which prefix, and which share one family."""

import re
from dataclasses import dataclass

from metaforge.core.errors import ToolError

_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")


@dataclass(frozen=True)
class DefinitionKind:
    """A kind whose nodes are numbered revisions of an item.

    Attributes:
        kind: as nodes carry it.
        prefix: what keys of its items start with.
        family: items of one family are the same item under the same name, whatever their kind.
        single: whether a project has one such item at most, whatever its name.
    """

    kind: str
    prefix: str
    family: str
    single: bool = False


DEFINITIONS = {
    each.kind: each
    for each in (
        DefinitionKind("cad_model", "CAD", "cad_model"),
        DefinitionKind("assembly", "ASM", "cad_model"),
        DefinitionKind("constraint_set", "CS", "constraint_set"),
        DefinitionKind("intent", "INT", "intent"),
        DefinitionKind("stakeholder_need", "NEED", "stakeholder_need"),
        DefinitionKind("objective", "OBJ", "objective"),
        DefinitionKind("bom", "BOM", "bom"),
        DefinitionKind("component_selection", "CMP", "component_selection"),
        DefinitionKind("prd", "PRD", "prd", single=True),
    )
}


def definition_of(kind: str) -> DefinitionKind:
    """Return what is known of a definition kind.

    Raises:
        ToolError: nodes of this kind are no revisions.
    """
    try:
        return DEFINITIONS[kind]
    except KeyError:
        raise ToolError(
            f"{kind!r} is no kind of item; items are of kind {', '.join(DEFINITIONS)}", kind="not_an_item_kind"
        ) from None


def checked_record_kind(kind: str) -> str:
    """Return a kind that a record may have.

    Raises:
        ToolError: it is a definition kind, or no lower-case name of at most 64 letters, digits and underscores.
    """
    if kind in DEFINITIONS or not _NAME.fullmatch(kind):
        raise ToolError(
            f"{kind!r} cannot be the kind of a record: "
            + ("it is revised as an item" if kind in DEFINITIONS else "use a lower-case name such as design_decision"),
            kind="not_a_record_kind",
        )
    return kind


def kinds_of_family(family: str) -> tuple[str, ...]:
    """Return the definition kinds that share a family."""
    return tuple(each.kind for each in DEFINITIONS.values() if each.family == family)
