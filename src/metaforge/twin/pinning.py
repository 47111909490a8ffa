"""What a reference of a caller names, pinned to an exact revision: KEY, KEY@n, a node id, or one requirement of a set.

One requirement is written `CS-BRACKET#max mass` or `CS-BRACKET@2#max mass`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from metaforge.core.errors import ToolError
from metaforge.twin.links import REQUIREMENT, requirement_entry
from metaforge.twin.model import Node
from metaforge.twin.refs import is_ref, parse_ref

if TYPE_CHECKING:
    from metaforge.twin.change import Change
    from metaforge.twin.view import View

CONSTRAINT_SET = "constraint_set"
WORK_PRODUCTS = ("cad_model", "assembly")


@dataclass(frozen=True)
class Pinned:
    """A node, and the requirement meant where it is a constraint set and only one is."""

    node: Node
    requirement: str = ""

    @property
    def ref(self) -> str:
        """KEY@n, KEY@n#requirement, or a record's node id."""
        return f"{self.node.ref}#{self.requirement}" if self.requirement else self.node.ref

    @property
    def link_body(self) -> dict[str, Any]:
        """What a link to it says beside its ends."""
        return {REQUIREMENT: self.requirement} if self.requirement else {}


def pin(view: "View", text: str, revision: int | None = None) -> Pinned:
    """Return what a reference names now.

    Args:
        view: the caller's view; a bare KEY is what it reads as current.
        text: KEY, KEY@n, a node id, each with `#requirement` for one requirement of a constraint set.
        revision: given apart from the key; must agree with KEY@n.

    Raises:
        ToolError: `unknown_item`, `unknown_revision`, `unknown_node`, `unknown_requirement`, `bad_item_ref`.
    """
    whole, _, requirement = text.strip().partition("#")
    if revision is not None:
        whole = _with_revision(whole, revision)
    node = view[whole]
    requirement = requirement.strip()
    if requirement and requirement_entry(node, requirement) is None:
        raise _unknown_requirement(node, requirement)
    return Pinned(node, requirement)


def pin_all(view: "View", texts: Iterable[str]) -> tuple[Pinned, ...]:
    """Pin several references; one that is unknown fails all."""
    return tuple({pinned.ref: pinned for pinned in (pin(view, text) for text in texts)}.values())


def link_to(change: "Change", type: str, source: Node, targets: Iterable[Pinned]) -> None:
    """Link a node to what was pinned."""
    for target in targets:
        change.link(type, source, target.node, target.link_body)


def work_product(view: "View", text: str) -> Node:
    """Return a part or assembly.

    Raises:
        ToolError: `not_a_work_product`, or there is no such node.
    """
    node = view[text.strip()]
    if node.kind not in WORK_PRODUCTS:
        there = [item.key for item in view.items() if item.kind in WORK_PRODUCTS and item.head_revision][:8]
        raise ToolError(
            f"{node.ref} is a {node.kind} and no part or assembly",
            kind="not_a_work_product", where=text,
            fix=f"Name one of {', '.join(there)}" if there else "Commit geometry first with twin.commit_geometry",
        )  # fmt: skip
    return node


def _with_revision(whole: str, revision: int) -> str:
    if not is_ref(whole):
        return whole
    parsed = parse_ref(whole)
    if parsed.revision not in (None, revision):
        raise ToolError(
            f"{whole} and revision {revision} name two revisions", kind="bad_item_ref", fix="Give one of them"
        )
    return f"{parsed.key}@{revision}"


def _unknown_requirement(node: Node, name: str) -> ToolError:
    entries = node.body.get("constraints") if node.kind == CONSTRAINT_SET else None
    there = [str(entry.get("name")) for entry in entries or ()]
    return ToolError(
        f"{node.ref} has no requirement {name!r}",
        kind="unknown_requirement",
        fix=f"There is {', '.join(f'{node.item_key}#{each}' for each in there[:12])}" if there
        else "Name a constraint set and one of its requirements, as in CS-BRACKET#max_mass",
    )  # fmt: skip
