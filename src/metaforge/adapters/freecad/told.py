"""Turn what FreeCAD measured into an answer: judged, in words, with what changed."""

from typing import Annotated, Any

from pydantic import WithJsonSchema

from metaforge.adapters.freecad.workbench import Session
from metaforge.core.errors import ToolError
from metaforge.engineering.solid_guard import Change, SolidFacts, check_change, check_solid

# One shape for every step: spelling each out for forty tools would cost a model thousands of tokens.
Told = Annotated[
    dict[str, Any],
    WithJsonSchema(
        {
            "type": "object",
            "properties": {
                "obj_id": {"type": "string"},
                "volume_mm3": {"type": "number"},
                "is_valid": {"type": "boolean"},
            },
        }
    ),
]
"""A step's fields: obj_id, kind, label, volume_mm3, surface_area_mm2, bounding_box_mm, counts, what changed."""
Vector = list[float]


def facts_of(told: dict[str, Any]) -> SolidFacts:
    """Return measured facts as the guard takes them."""
    bounds = told["bounds"]
    return SolidFacts(
        told["volume"], told["area"], told["solids"], told["shells"], told["faces"], told["valid"],
        None if bounds is None else tuple(bounds),
    )  # fmt: skip


def joined(several: list[dict[str, Any]]) -> SolidFacts | None:
    """Return the facts of several shapes together; None for none."""
    if not several:
        return None
    each = [facts_of(told) for told in several]
    boxes = [facts.bounds_mm for facts in each if facts.bounds_mm is not None]
    low = [min(box[i] for box in boxes) for i in range(3)] if boxes else []
    high = [max(box[i + 3] for box in boxes) for i in range(3)] if boxes else []
    return SolidFacts(
        sum(f.volume_mm3 for f in each), sum(f.area_mm2 for f in each), sum(f.solids_count for f in each),
        sum(f.shells_count for f in each), sum(f.faces_count for f in each), all(f.is_valid for f in each),
        (low[0], low[1], low[2], high[0], high[1], high[2]) if boxes else None,
    )  # fmt: skip


def judge(
    session: Session,
    reply: dict[str, Any],
    operation: str,
    change: Change,
    *,
    against: SolidFacts | None = None,
    solids_count: int | None = 1,
) -> list[str]:
    """Hold an edit to what its kind may do; what fails is taken back before the error is told.

    Args:
        against: what it started from, where that is not all that was measured before.

    Returns:
        Warnings.
    """
    try:
        if reply.get("after") is None:
            raise ToolError(f"{operation}: there is no solid afterwards", kind="empty_result", where=operation)
        after = facts_of(reply["after"])
        warnings = check_solid(after, operation, expected_solids_count=solids_count)
        before = against or joined(reply["before"])
        if before is not None and before.solids_count:
            warnings += check_change(before, after, change, operation)
        return warnings
    except ToolError as fault:
        session.take_back()
        fault.data["state"] = "the session is as it was before this call"
        raise


def measured(facts: SolidFacts) -> dict[str, Any]:
    """Return facts under their names with units."""
    # Shells and faces enclose nothing: no number is better than one that may be believed.
    told: dict[str, Any] = {"volume_mm3": figures(facts.volume_mm3)} if facts.solids_count else {}
    told |= {
        "surface_area_mm2": figures(facts.area_mm2), "solids_count": facts.solids_count,
        "faces_count": facts.faces_count, "is_valid": facts.is_valid,
    }  # fmt: skip
    if facts.bounds_mm is not None:
        told["bounding_box_mm"] = {
            "min_mm": vector(facts.bounds_mm[:3]),
            "max_mm": vector(facts.bounds_mm[3:]), "size_mm": vector(facts.size_mm)
        }  # fmt: skip
    return told


def changed(reply: dict[str, Any]) -> dict[str, Any]:
    """Return an edit's own fields: the object, its measures, and what changed against before."""
    told: dict[str, Any] = {"obj_id": reply["obj_id"], "label": reply["label"], "kind": reply["kind"]}
    if reply.get("after") is None:
        return told
    after, before = facts_of(reply["after"]), joined(reply["before"])
    told |= measured(after)
    if before is not None and before.solids_count:
        told["volume_change_mm3"] = figures(after.volume_mm3 - before.volume_mm3)
        told["faces_change_count"] = after.faces_count - before.faces_count
    return told


def words(told: dict[str, Any]) -> str:
    """Say in one line what an object is now: volume, extent, faces, whether it is valid."""
    if "bounding_box_mm" not in told:
        return f"{told['obj_id']} ({told['kind']})"
    size = " x ".join(f"{each:.6g}" for each in told["bounding_box_mm"]["size_mm"])
    by = f" ({told['volume_change_mm3']:+.6g})" if "volume_change_mm3" in told else ""
    state = "valid" if told["is_valid"] else "NOT valid"
    solids = told["solids_count"]
    amount = f"{told['volume_mm3']:.6g} mm3{by}" if "volume_mm3" in told else f"{told['surface_area_mm2']:.6g} mm2"
    return (
        f"{told['obj_id']}: {amount}, {size} mm, {told['faces_count']} faces, "
        f"{solids} solid{'s' if solids != 1 else ''}, {state}"
    )


def placement(told: dict[str, Any]) -> dict[str, Any]:
    """Return a placement with its units."""
    return {"position_mm": vector(told["position"]), "axis": vector(told["axis"]), "angle_deg": figures(told["angle"])}


def figures(value: float, count: int = 9) -> float:
    return float(f"{value:.{count}g}") + 0.0


def vector(values: Any) -> Vector:
    """Return numbers rounded to a nanometre, without a minus before zero."""
    return [round(float(each), 6) + 0.0 for each in values]
