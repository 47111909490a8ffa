"""Tools that measure and describe objects, in the global frame."""

from typing import Annotated, Any

from pydantic import Field

from metaforge.adapters.freecad.show import draw
from metaforge.adapters.freecad.steps import Group, look
from metaforge.adapters.freecad.told import Told, facts_of, figures, measured, placement, vector, words
from metaforge.engineering.materials import find_material
from metaforge.tools.context import Answer, ToolContext

Limit = Annotated[int, Field(ge=1, le=500)]


def face(told: dict[str, Any]) -> dict[str, Any]:
    """Return a face with its units."""
    found: dict[str, Any] = {
        "name": told["name"], "kind": told["kind"], "area_mm2": figures(told["area"]),
        "centroid_mm": vector(told["centre"])
    }  # fmt: skip
    if "normal" in told:
        found["normal"] = vector(told["normal"])
    if told.get("side"):
        found["side"] = told["side"]
    if "radius" in told:
        found["radius_mm"] = figures(told["radius"])
    return found


def edge(told: dict[str, Any]) -> dict[str, Any]:
    """Return an edge with its units."""
    found: dict[str, Any] = {
        "name": told["name"], "kind": told["kind"], "length_mm": figures(told["length"]),
        "middle_mm": vector(told["middle"])
    }  # fmt: skip
    if "direction" in told:
        found["direction"] = vector(told["direction"])
    if "radius" in told:
        found["radius_mm"] = figures(told["radius"])
    return found


class MeasuringTools(Group):
    """What an object is, in numbers."""

    @look(title="Measure", search_hint="volume, area, bounding box, centre of mass, inertia, mass")
    def measure(
        self, ctx: ToolContext, session_id: str, obj_id: str, material: str | None = None, picture: bool = False
    ) -> Answer[Told]:
        """Measure an object where it is: placements of it and of its assemblies applied.

        Args:
            session_id: From open_session.
            obj_id: Object or assembly.
            material: Name such as steel-316; adds the mass.
            picture: Also draw it.
        """
        session = self.workbench.find(session_id)
        told = session.ask("measure", ctx.timeout_seconds, obj_id=obj_id)
        facts = facts_of(told["facts"])
        data: dict[str, Any] = {
            "obj_id": told["obj_id"],
            "label": told["label"],
            "kind": told["kind"],
            **measured(facts),
        }
        data["edges_count"] = told["facts"]["edges"]
        if told["centre"] is not None:
            data["center_of_mass_mm"] = vector(told["centre"])
        data["placement"] = placement(told["placement"])
        if "inertia" in told:
            data["inertia_mm5"] = [[figures(value) for value in row] for row in told["inertia"]]
        if "parts" in told:
            data["parts"] = [
                {"obj_id": each["obj_id"], "label": each["label"], **measured(facts_of(each["facts"]))}
                for each in told["parts"]
            ]
        summary = words(data)
        if material is not None:
            found = find_material(material)
            if found.density_kg_m3 is not None:
                data |= {"material": found.name, "density_kg_m3": found.density_kg_m3}
                data["mass_kg"] = figures(facts.volume_mm3 * found.density_kg_m3 * 1e-9)
                summary += f", {data['mass_kg']:.4g} kg of {found.name}"
        warnings = [] if facts.solids_count else [f"{obj_id} has no solid: its volume is 0, not that of its faces"]
        if not facts.is_valid:
            warnings.append(f"{obj_id} is not a valid shape: its faces cross or do not meet")
        files, pictures = draw(ctx, session, told["obj_id"], data) if picture else ((), ())
        return Answer(
            data, f"{summary}.", tuple(warnings), f"freecad.export_model with obj_id {told['obj_id']}", files, pictures,
            {"FreeCAD": session.process.version},
        )  # fmt: skip

    @look(title="Describe model", search_hint="list faces and edges of a part with their names")
    def describe_model(
        self, ctx: ToolContext, session_id: str, obj_id: str, limit: Limit = 60, picture: bool = False
    ) -> Answer[Told]:
        """List an object's faces (largest first) and edges, by the names that fillet, chamfer and shell take.

        Args:
            session_id: From open_session.
            obj_id: Object.
            limit: Most of each.
            picture: Also draw it.
        """
        session = self.workbench.find(session_id)
        told = session.ask("describe_model", ctx.timeout_seconds, obj_id=obj_id, limit=limit)
        data: dict[str, Any] = {"obj_id": told["obj_id"], "label": told["label"], "kind": told["kind"]}
        data |= measured(facts_of(told["facts"]))
        data |= {
            "edges_count": told["facts"]["edges"], "placement": placement(told["placement"]),
            "faces": [face(each) for each in told["faces"]], "edges": [edge(each) for each in told["edges"]],
        }  # fmt: skip
        if told["expressions"]:
            data["expressions"] = dict(told["expressions"])
        files, pictures = draw(ctx, session, told["obj_id"], data) if picture else ((), ())
        return Answer(
            data, f"{words(data)}; {data['edges_count']} edges.", (), "freecad.fillet or chamfer with these edge names",
            files, pictures, {"FreeCAD": session.process.version},
        )  # fmt: skip

    @look(title="List named faces", search_hint="faces of a session's object by side")
    def list_named_faces(self, ctx: ToolContext, session_id: str, obj_id: str, limit: Limit = 60) -> Answer[Told]:
        """List an object's faces with kind, area, centroid, normal, and the side (top, left ...) where outermost.

        Args:
            session_id: From open_session.
            obj_id: Object.
            limit: Most of them, the largest first.
        """
        session = self.workbench.find(session_id)
        told = session.ask("named_faces", ctx.timeout_seconds, obj_id=obj_id, limit=limit)
        faces = [face(each) for each in told["faces"]]
        sides = [f"{each['side']} {each['name']}" for each in faces if "side" in each]
        data = {"obj_id": told["obj_id"], "faces_count": told["count"], "faces": faces}
        return Answer(
            data, f"{told['obj_id']}: {told['count']} faces; {', '.join(sides) or 'none flat and outermost'}."
        )
