"""The bill of materials: a revised item that lists the selected components, pinned."""

from typing import TYPE_CHECKING, Any

from metaforge.twin.model import Node

if TYPE_CHECKING:
    from metaforge.twin.change import Change

BOM_NAME = "Bill of materials"


def revise_bom(change: "Change", selected: Node) -> Node:
    """Write the next revision of the project's bill of materials, with every component as it is now.

    Args:
        change: in a project.
        selected: the component that was just written.
    """
    chosen = {node.item_key: node for node in change.view.current_nodes("component_selection")}
    chosen[selected.item_key] = selected
    lines = [_line(chosen[key]) for key in sorted(chosen)]
    costs = [line["unit_cost_usd"] * line["quantity"] for line in lines if "unit_cost_usd" in line]
    body: dict[str, Any] = {
        "lines": lines,
        "totals": {"line_count": len(lines), "component_count": sum(line["quantity"] for line in lines)},
    }
    if costs:
        body["totals"] |= {"cost_usd": sum(costs), "unpriced_line_count": len(lines) - len(costs)}
    bom = change.define("bom", BOM_NAME, body, change_reason=f"{selected.ref} selected")
    for node in chosen.values():
        change.link("contains", bom, node)
    return bom


def _line(node: Node) -> dict[str, Any]:
    kept = ("mpn", "manufacturer", "category", "role", "quantity", "unit_cost_usd")
    return {"ref": node.ref} | {name: node.body[name] for name in kept if name in node.body}
