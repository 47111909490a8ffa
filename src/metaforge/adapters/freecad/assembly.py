"""Tools for assemblies, joints, and numbers that dimensions follow."""

from typing import Annotated, Any, Literal

from pydantic import Field

from metaforge.adapters.freecad.steps import Group, Point, look, step
from metaforge.adapters.freecad.told import Told, figures, vector
from metaforge.core.errors import InvalidArguments
from metaforge.engineering.solid_guard import Change
from metaforge.tools.context import Answer, ToolContext

Name = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_]{0,39}$")]


def _joint(told: dict[str, Any]) -> dict[str, Any]:
    return {
        "obj_id": told["obj_id"], "type": told["type"], "base_id": told["base_id"], "follower_id": told["follower_id"],
        "axis": vector(told["axis"]), "anchor_mm": vector(told["anchor"]),
    }  # fmt: skip


class AssemblyTools(Group):
    """Assemblies and parameters."""

    @step(title="Create assembly", search_hint="start an assembly of parts in FreeCAD")
    def create_assembly(self, ctx: ToolContext, session_id: str, name: str | None = None) -> Answer[Told]:
        """Make an empty assembly: a container that places its parts together.

        Args:
            session_id: From open_session.
            name: Its label.
        """
        session, reply = self.edit(ctx, session_id, "create_assembly", name=name)
        reply["kind"] = "assembly"
        return self.told(
            ctx, session, reply, "Assembly", False, f"freecad.add_part_to_assembly with assembly_id {reply['obj_id']}"
        )

    @step(title="Add part to assembly", search_hint="put a part into an assembly")
    def add_part_to_assembly(
        self,
        ctx: ToolContext,
        session_id: str,
        assembly_id: str,
        part_id: str,
        position_mm: Point | None = None,
        picture: bool = False,
    ) -> Answer[Told]:
        """Move a body or solid into an assembly.

        Args:
            session_id: From open_session.
            assembly_id: From create_assembly.
            part_id: Body, solid or another assembly.
            position_mm: Of the part's origin in the assembly; as it is by default.
            picture: Also draw the assembly.
        """
        session, reply = self.edit(
            ctx, session_id, "add_part", assembly_id=assembly_id, part_id=part_id, position=position_mm
        )
        return self.answer(
            ctx, session, reply, "add part", change=Change.NEW, picture=picture, solids_count=None,
            more={"assembly_id": reply["obj_id"], "part_id": reply["part_id"], "part_count": reply["parts"]},
            next_step="freecad.add_assembly_joint, or export_model of the assembly",
        )  # fmt: skip

    @step(title="Add assembly joint", search_hint="joint, hinge, slider between two parts")
    def add_assembly_joint(
        self,
        ctx: ToolContext,
        session_id: str,
        assembly_id: str,
        base_id: str,
        follower_id: str,
        type: Literal["fixed", "revolute", "slider", "cylindrical", "ball"],
        axis: Point | None = None,
        anchor_mm: Point | None = None,
    ) -> Answer[Told]:
        """Note how one part may move against another. It is a record: no part is moved by it.

        Args:
            session_id: From open_session.
            assembly_id: From create_assembly.
            base_id: Part that stays.
            follower_id: Part that moves.
            type: Kind of joint.
            axis: Direction in the global frame; z by default.
            anchor_mm: Point of the joint in the global frame; the origin by default.
        """
        axis, anchor = axis or [0.0, 0.0, 1.0], anchor_mm or [0.0, 0.0, 0.0]
        if not any(axis):
            raise InvalidArguments("axis is [0, 0, 0]: it has no direction", fields={"axis": "not zero"})
        session, reply = self.edit(
            ctx, session_id, "add_joint", assembly_id=assembly_id, base_id=base_id, follower_id=follower_id, type=type,
            axis=axis, anchor=anchor,
        )  # fmt: skip
        joint = _joint(reply["joint"])
        warnings = [
            f"The anchor is {distance:.4g} mm away from {part}"
            for part, distance in ((joint["base_id"], reply["distance"]), (joint["follower_id"], reply["other"]))
            if distance > 1.0
        ]
        return Answer(
            {"obj_id": reply["obj_id"], "kind": "joint", "joint": joint},
            f"{type} joint {reply['obj_id']}: {joint['follower_id']} on {joint['base_id']}.", tuple(warnings),
            "freecad.list_joints, or export_model of the assembly", programs={"FreeCAD": session.process.version},
        )  # fmt: skip

    @look(title="List joints", search_hint="joints of an assembly")
    def list_joints(self, ctx: ToolContext, session_id: str) -> Answer[Told]:
        """List the joints of a session's assemblies.

        Args:
            session_id: From open_session.
        """
        session = self.workbench.find(session_id)
        joints = [_joint(each) for each in session.ask("list_joints", ctx.timeout_seconds)["joints"]]
        return Answer({"joints": joints}, f"{len(joints)} joints.")

    @step(title="Create variable set", search_hint="named dimensions, parameters")
    def create_variable_set(
        self, ctx: ToolContext, session_id: str, variables: dict[Name, float], name: Name = "Variables"
    ) -> Answer[Told]:
        """Keep named numbers that expressions of other objects can use, as Variables.wall.

        Args:
            session_id: From open_session.
            variables: Name to number; lengths in mm, angles in degrees.
            name: What expressions call the set.
        """
        session, reply = self.edit(ctx, session_id, "create_variable_set", name=name, variables=variables)
        data = {"obj_id": reply["obj_id"], "kind": reply["kind"], "variables": reply["variables"]}
        return Answer(
            data, f"{reply['obj_id']}: {len(variables)} variables.",
            next_step=f"freecad.set_expression with one such as {reply['obj_id']}.{next(iter(variables), 'x')}",
            programs={"FreeCAD": session.process.version},
        )  # fmt: skip

    @step(title="Set expression", search_hint="drive a dimension by a variable or formula")
    def set_expression(
        self, ctx: ToolContext, session_id: str, obj_id: str, property: str, expression: str, picture: bool = False
    ) -> Answer[Told]:
        """Let a property follow an expression; the model is computed anew and must still hold.

        Args:
            session_id: From open_session.
            obj_id: Whose property.
            property: Length, Radius ..., or Constraints.rectangle1_width of a sketch (its `dimensions`).
            expression: Such as Variables.wall * 2; empty to stop following.
            picture: Also draw it.
        """
        session, reply = self.edit(
            ctx, session_id, "set_expression", obj_id=obj_id, property=property, expression=expression
        )
        value = reply["value"]
        more = {"property": property, "expression": expression, "value": None if value is None else figures(value)}
        if reply["after"] is None:
            return self.told(ctx, session, reply, f"{property} = {expression}", False, "", more=more)
        return self.answer(
            ctx, session, reply, f"{property} = {expression}", change=Change.NEW, picture=picture,
            next_step="freecad.measure", more=more,
        )  # fmt: skip
