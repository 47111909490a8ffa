"""Tools that make simple solids, combine and place them."""

from typing import Literal

from pydantic import BaseModel, ConfigDict

from metaforge.adapters.freecad.steps import Group, Point, step
from metaforge.adapters.freecad.told import Told, facts_of, placement
from metaforge.core.errors import InvalidArguments
from metaforge.engineering.solid_guard import Change
from metaforge.tools.context import Answer, ToolContext

Kind = Literal["box", "cylinder", "sphere", "cone", "torus"]
NAMES: dict[str, tuple[str, ...]] = {
    "box": ("length_mm", "width_mm", "height_mm"),
    "cylinder": ("radius_mm", "height_mm", "angle_deg"),
    "sphere": ("radius_mm",),
    "cone": ("radius1_mm", "radius2_mm", "height_mm"),
    "torus": ("radius1_mm", "radius2_mm"),
}
DEFAULTS = {"angle_deg": 360.0, "radius2_mm": 0.0}


class Rotation(BaseModel):
    """About an axis through the object's origin."""

    model_config = ConfigDict(extra="forbid")

    axis: Point
    angle_deg: float


def primitive_parameters(kind: str, given: dict[str, float]) -> dict[str, float]:
    """Return a primitive's dimensions in mm; names stand without their unit too.

    Raises:
        InvalidArguments: a name that the kind does not have, one missing, or a size that is not positive.
    """
    names = NAMES[kind]
    by_short = {name.rsplit("_", 1)[0]: name for name in names}
    found = {by_short.get(name, name): value for name, value in given.items()}
    wrong = {f"parameters.{name}": f"a {kind} has {', '.join(names)}" for name in found if name not in names}
    needed = [
        name
        for name in names
        if name not in found and not (name == "angle_deg" or (kind == "cone" and name in DEFAULTS))
    ]
    wrong |= {f"parameters.{name}": "is required" for name in needed}
    for name, value in found.items():
        if name in names and value <= 0 and not (kind == "cone" and value == 0):
            wrong[f"parameters.{name}"] = f"{value:g} must be above 0"
    if kind == "torus" and not wrong and found["radius2_mm"] >= found["radius1_mm"]:
        wrong["parameters.radius2_mm"] = "the tube's radius must be smaller than radius1_mm, the ring's"
    if kind == "cone" and not wrong and found["radius1_mm"] == found.get("radius2_mm", 0.0):
        wrong["parameters.radius2_mm"] = "equal radii make a cylinder: take kind cylinder"
    if wrong:
        raise InvalidArguments(
            f"create_primitive: {'; '.join(f'{name}: {text}' for name, text in wrong.items())}", fields=wrong
        )
    return {name: found.get(name, DEFAULTS.get(name, 0.0)) for name in names}


class SolidTools(Group):
    """Primitives, booleans, placements."""

    @step(title="Create primitive", search_hint="box, cylinder, sphere, cone, torus")
    def create_primitive(
        self,
        ctx: ToolContext,
        session_id: str,
        kind: Kind,
        parameters: dict[str, float],
        name: str | None = None,
        picture: bool = False,
    ) -> Answer[Told]:
        """Make a simple solid; a box stands on its corner at the origin, round ones on their centre along z.

        Args:
            session_id: From open_session.
            kind: Which.
            parameters: box length_mm width_mm height_mm; cylinder radius_mm height_mm [angle_deg]; sphere radius_mm;
                cone radius1_mm radius2_mm height_mm; torus radius1_mm radius2_mm.
            name: Its label.
            picture: Also draw it.
        """
        sizes = primitive_parameters(kind, parameters)
        session, reply = self.edit(ctx, session_id, "create_primitive", kind=kind, name=name, parameters=sizes)
        reply["kind"] = kind
        return self.answer(
            ctx, session, reply, kind, change=Change.NEW, picture=picture,
            next_step=f"freecad.transform_object, boolean, fillet or export_model with obj_id {reply['obj_id']}",
        )  # fmt: skip

    @step(title="Create body", search_hint="start a part in a FreeCAD session")
    def create_body(self, ctx: ToolContext, session_id: str, name: str | None = None) -> Answer[Told]:
        """Make an empty body: sketches and features are built in it, one solid in the end.

        Args:
            session_id: From open_session.
            name: Its label.
        """
        session, reply = self.edit(ctx, session_id, "create_body", name=name)
        return self.told(ctx, session, reply, "Body", False, f"freecad.create_sketch with body_id {reply['obj_id']}")

    @step(title="Boolean", search_hint="cut, unite, intersect two solids of a session")
    def boolean(
        self,
        ctx: ToolContext,
        session_id: str,
        obj_a: str,
        obj_b: str,
        operation: Literal["subtract", "union", "intersect"] = "subtract",
        name: str | None = None,
        picture: bool = False,
    ) -> Answer[Told]:
        """Subtract b from a, unite them, or keep what they share; the result is a new object.

        Args:
            session_id: From open_session.
            obj_a: First object.
            obj_b: Second object.
            operation: What to do.
            name: Label of the result.
            picture: Also draw it.
        """
        session, reply = self.edit(ctx, session_id, "boolean", obj_a=obj_a, obj_b=obj_b, operation=operation, name=name)
        change = Change.ADD if operation == "union" else Change.REMOVE
        first = facts_of(reply["before"][0]) if reply["before"] else None
        reply["before"] = reply["before"][:1]
        return self.answer(
            ctx, session, reply, operation, change=change, picture=picture, against=first,
            more={"operation": operation},
            next_step=f"freecad.fillet, measure or export_model with obj_id {reply['obj_id']}",
        )  # fmt: skip

    @step(title="Transform object", search_hint="move, rotate, place an object")
    def transform_object(
        self,
        ctx: ToolContext,
        session_id: str,
        obj_id: str,
        position_mm: Point | None = None,
        rotation: Rotation | None = None,
        picture: bool = False,
    ) -> Answer[Told]:
        """Place an object: its placement becomes this one (it is not added to the one before), and is verified.

        Args:
            session_id: From open_session.
            obj_id: What to place.
            position_mm: Of its origin, in the frame of the assembly it lies in; as it is by default.
            rotation: As it is by default.
            picture: Also draw it.
        """
        if position_mm is None and rotation is None:
            raise InvalidArguments(
                "transform_object needs position_mm, rotation or both", fields={"position_mm": "[x, y, z] in mm"}
            )
        turned = None if rotation is None else {"axis": rotation.axis, "angle": rotation.angle_deg}
        if turned is not None and not any(turned["axis"]):  # type: ignore[arg-type]
            raise InvalidArguments(
                "rotation.axis is [0, 0, 0]: it has no direction", fields={"rotation.axis": "not zero"}
            )
        session, reply = self.edit(ctx, session_id, "transform", obj_id=obj_id, position=position_mm, rotation=turned)
        return self.told(
            ctx, session, reply, "transform", picture, "freecad.measure tells it in the global frame",
            more={
                "transformed": True, "placement": placement(reply["placement"]),
                "global_placement": placement(reply["global_placement"]),
            },
        )  # fmt: skip
