"""The product requirements document: prose that people write, requirements that live in the constraint sets."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from metaforge.twin.model import Node, Project
from metaforge.twin.quantities import Quantity
from metaforge.twin.quantity_text import find_quantities
from metaforge.twin.requirements import current_sets, stated_quantities, words

if TYPE_CHECKING:
    from metaforge.twin.view import View

MAX_STRAY_COUNT = 20
HOME = (
    "Requirement values belong in twin.record_constraint_set; the prd is rendered from this prose and the current "
    "constraint sets (GET /v1/twin/projects/{project_id}/prd, or metaforge://prd/{project_id})."
)
_SECTIONS = (("intent", "Intent"), ("stakeholder_need", "Stakeholder needs"), ("objective", "Objectives"))


def stray_values(text: str, sets: Iterable[Node]) -> list[str]:
    """Return the values of a text, as written, that no requirement states in whatever unit; at most 20, each once.

    Args:
        text: prose.
        sets: the constraint sets to compare with.
    """
    stated = stated_quantities(sets)
    seen: list[Quantity] = []
    stray: list[str] = []
    for written in find_quantities(text):
        value = written.quantity
        if any(value.equals(each) for each in stated) or any(value.equals(each) for each in seen):
            continue
        seen.append(value)
        stray.append(written.text)
        if len(stray) == MAX_STRAY_COUNT:
            break
    return stray


def stray_warning(stray: list[str]) -> str:
    """Say what to do about stray values."""
    more = " and perhaps more" if len(stray) == MAX_STRAY_COUNT else ""
    return (
        f"The text states {', '.join(stray)}{more}, which no current requirement states: if these are requirements, "
        "record them with twin.record_constraint_set"
    )


def render(view: "View", project: Project) -> str:
    """Return a project's PRD as Markdown: the prose, then what is current of intent, needs, objectives, requirements.

    Args:
        view: of a reader of this project.
        project: the project.
    """
    lines = [f"# {project.name}: product requirements", ""]
    if project.description:
        lines += [project.description, ""]
    prose = next(iter(view.current_nodes("prd")), None)
    if prose is None:
        lines += ["*No prose yet: record it with twin.record_document, document_type prd.*", ""]
    else:
        lines += [str(prose.body.get("content", "")).rstrip(), ""]
    for kind, title in _SECTIONS:
        if nodes := sorted(view.current_nodes(kind), key=lambda node: node.item_key):
            lines += [f"## {title}", "", *(f"- **{node.ref}** {_entity(node)}" for node in nodes), ""]
    sets = current_sets(view)
    lines += ["## Requirements", ""]
    if not sets:
        lines += ["*None yet: record them with twin.record_constraint_set.*", ""]
    for node in sets:
        lines += [*_requirements(view, node), ""]
    made_of = [node.ref for node in (*([prose] if prose else []), *sets)]
    lines.append(f"*Rendered from {', '.join(made_of)}.*" if made_of else "*Rendered from an empty project.*")
    return "\n".join(lines) + "\n"


def _entity(node: Node) -> str:
    statement = str(node.body.get("statement", ""))
    return _line(f"{node.name}: {statement}" if node.name and node.name != statement else statement)


def _requirements(view: "View", node: Node) -> list[str]:
    parents: dict[str, list[str]] = {}
    targets = view.links(node.node_id, type="implements", direction="outgoing")
    nodes = view.nodes([link.target_node_id for link in targets])
    for link in targets:
        if link.target_node_id in nodes:
            parents.setdefault(str(link.body.get("requirement", "")), []).append(nodes[link.target_node_id].ref)
    rows = [
        f"### {_line(node.name)} ({node.ref})",
        "",
        "| requirement | demand | severity | verification | answers |",
        "|---|---|---|---|---|",
    ]
    for entry in node.body.get("constraints") or ():
        name = str(entry["name"])
        answers = ", ".join(parents.get(name, []) or parents.get("", []))
        check = entry.get("verification_method") or entry.get("expected_evidence") or ""
        cells = (name, words(entry), entry.get("severity") or "error", check, answers)
        rows.append("| " + " | ".join(_line(str(cell)).replace("|", "\\|") for cell in cells) + " |")
    return rows


def _line(text: str) -> str:
    return " ".join(text.split())
