"""Tools that round, bevel, hollow and repeat."""

from typing import Annotated, Any, Literal

from pydantic import Field

from metaforge.adapters.freecad.steps import Group, Positive, step
from metaforge.adapters.freecad.told import Told, facts_of
from metaforge.adapters.freecad.workbench import Session
from metaforge.core.errors import FailureMode, ToolError
from metaforge.engineering.solid_guard import Change, check_change, check_solid, largest_that_works
from metaforge.tools.context import Answer, ToolContext

Axis = Literal["X", "Y", "Z"]
Count = Annotated[int, Field(ge=2, le=500)]
_WRONG_SIZE = ("not_computable", "freecad_error", "result_grew", "invalid_solid", "wrong_volume_change", "empty_result")


class DressingTools(Group):
    """Fillets, chamfers, shells, patterns, mirrors."""

    @step(title="Fillet", search_hint="round edges")
    def fillet(
        self,
        ctx: ToolContext,
        session_id: str,
        obj_id: str,
        radius_mm: Positive,
        edges: list[str] | None = None,
        name: str | None = None,
        picture: bool = False,
    ) -> Answer[Told]:
        """Round edges of a body or solid. A radius that fails is answered with the largest that works.

        Args:
            session_id: From open_session.
            obj_id: Body or solid.
            radius_mm: Of the rounding.
            edges: Edge3 (from describe_model), all, |x |y |z (parallel), >x <x ... >z <z (of the outermost flat face);
                all by default.
            name: Label, outside a body.
            picture: Also draw it.
        """
        return self._blend(ctx, session_id, "fillet", "radius", radius_mm, obj_id, edges or [], name, picture)

    @step(title="Chamfer", search_hint="bevel edges")
    def chamfer(
        self,
        ctx: ToolContext,
        session_id: str,
        obj_id: str,
        distance_mm: Positive,
        edges: list[str] | None = None,
        name: str | None = None,
        picture: bool = False,
    ) -> Answer[Told]:
        """Bevel edges of a body or solid. A distance that fails is answered with the largest that works.

        Args:
            session_id: From open_session.
            obj_id: Body or solid.
            distance_mm: From the edge, on both faces.
            edges: As for fillet.
            name: Label, outside a body.
            picture: Also draw it.
        """
        return self._blend(ctx, session_id, "chamfer", "distance", distance_mm, obj_id, edges or [], name, picture)

    def _blend(
        self,
        ctx: ToolContext,
        session_id: str,
        operation: str,
        word: str,
        size_mm: float,
        obj_id: str,
        edges: list[str],
        name: str | None,
        picture: bool,
    ) -> Answer[dict[str, Any]]:
        session = self.workbench.find(session_id)
        try:
            reply = session.ask(
                operation, ctx.timeout_seconds, **{"obj_id": obj_id, "edges": edges, "name": name, word: size_mm}
            )
            return self.answer(
                ctx, session, reply, operation, change=Change.BLEND, picture=picture,
                next_step="freecad.measure, or export_model when it is done",
                more={"edges": reply["edges"], f"{word}_mm": size_mm},
            )  # fmt: skip
        except ToolError as fault:
            if fault.kind not in _WRONG_SIZE:
                raise
            raise _too_large(session, ctx, operation, word, size_mm, obj_id, edges) from fault

    @step(title="Shell solid", search_hint="hollow out with a wall thickness")
    def shell_solid(
        self,
        ctx: ToolContext,
        session_id: str,
        body_id: str,
        thickness_mm: Positive,
        faces: list[str] | None = None,
        outward: bool = False,
        picture: bool = False,
    ) -> Answer[Told]:
        """Hollow a body out to a wall, open at some faces.

        Args:
            session_id: From open_session.
            body_id: From create_body.
            thickness_mm: Of the wall.
            faces: Open ones: Face3 (from list_named_faces), top, bottom, left, right, front, back; top by default.
            outward: The wall outside of what is there.
            picture: Also draw it.
        """
        session, reply = self.edit(
            ctx, session_id, "shell_solid", body_id=body_id, thickness=thickness_mm, faces=faces or [], outward=outward
        )
        if not outward:
            self._check_hollow(session, reply, thickness_mm)
        return self.answer(
            ctx, session, reply, "shell", change=Change.HOLLOW, picture=picture,
            more={"faces": reply["faces"], "body_id": body_id},
            next_step=f"freecad.measure with obj_id {body_id}",
        )  # fmt: skip

    @staticmethod
    def _check_hollow(session: Session, reply: dict[str, Any], thickness_mm: float) -> None:
        before, after = reply["before"][0], reply["after"]
        if after is None or after["volume"] >= before["volume"] * (1 - 1e-9) or after["volume"] <= 0:
            session.take_back()
            smallest = min(facts_of(before).size_mm)
            raise ToolError(
                f"shell: a wall of {thickness_mm:g} mm leaves no room inside: the smallest extent is {smallest:.4g} mm",
                kind="shell_too_thick", fix=f"take a wall below {smallest / 2:.4g} mm", failure_mode=FailureMode.DESIGN,
            )  # fmt: skip

    @step(title="Linear pattern", search_hint="repeat a feature in a row")
    def linear_pattern(
        self,
        ctx: ToolContext,
        session_id: str,
        body_id: str,
        feature_id: str,
        count: Count,
        spacing_mm: Positive,
        axis: Axis = "X",
        reversed: bool = False,
        picture: bool = False,
    ) -> Answer[Told]:
        """Repeat a feature of a body along an axis.

        Args:
            session_id: From open_session.
            body_id: From create_body.
            feature_id: Pad, pocket ... to repeat.
            count: How many, the first included.
            spacing_mm: From one to the next.
            axis: Of the body.
            reversed: Towards the negative axis.
            picture: Also draw it.
        """
        return self._repeat(
            ctx, session_id, "linear_pattern", body_id, picture, feature_id=feature_id, count=count, spacing=spacing_mm,
            axis=axis, reversed=reversed,
        )  # fmt: skip

    @step(title="Polar pattern", search_hint="repeat a feature around an axis")
    def polar_pattern(
        self,
        ctx: ToolContext,
        session_id: str,
        body_id: str,
        feature_id: str,
        count: Count,
        angle_deg: Annotated[float, Field(gt=0, le=360)] = 360.0,
        axis: Axis = "Z",
        picture: bool = False,
    ) -> Answer[Told]:
        """Repeat a feature of a body about an axis through its origin.

        Args:
            session_id: From open_session.
            body_id: From create_body.
            feature_id: Pad, pocket ... to repeat.
            count: How many, the first included.
            angle_deg: Over which they are spread; 360 spreads them evenly all round.
            axis: Of the body.
            picture: Also draw it.
        """
        return self._repeat(
            ctx, session_id, "polar_pattern", body_id, picture, feature_id=feature_id, count=count, angle=angle_deg,
            axis=axis,
        )  # fmt: skip

    @step(title="Mirror feature", search_hint="mirror image of a feature")
    def mirror_feature(
        self,
        ctx: ToolContext,
        session_id: str,
        body_id: str,
        feature_id: str,
        plane: Literal["XY", "XZ", "YZ"] = "YZ",
        picture: bool = False,
    ) -> Answer[Told]:
        """Repeat a feature of a body as its mirror image.

        Args:
            session_id: From open_session.
            body_id: From create_body.
            feature_id: Pad, pocket ... to mirror.
            plane: Of the body.
            picture: Also draw it.
        """
        return self._repeat(ctx, session_id, "mirror_feature", body_id, picture, feature_id=feature_id, plane=plane)

    def _repeat(
        self, ctx: ToolContext, session_id: str, name: str, body_id: str, picture: bool, **given: Any
    ) -> Answer[dict[str, Any]]:
        session, reply = self.edit(ctx, session_id, name, body_id=body_id, **given)
        after = reply["after"]
        change = Change.NEW
        if (
            reply["before"]
            and after is not None
            and abs(after["volume"] - reply["before"][0]["volume"]) < 1e-9 * after["volume"]
        ):
            session.take_back()
            raise ToolError(
                f"{name}: the copies of {given['feature_id']} change nothing: they lie where it is, or apart",
                kind="no_change", fix="take another axis, plane or spacing", where=given["feature_id"],
            )  # fmt: skip
        return self.answer(
            ctx, session, reply, name.replace("_", " "), change=change, picture=picture, more={"body_id": body_id},
            next_step=f"freecad.measure with obj_id {body_id}",
        )  # fmt: skip


def _too_large(
    session: Session, ctx: ToolContext, operation: str, word: str, size_mm: float, obj_id: str, edges: list[str]
) -> ToolError:
    """Return the refusal of a size, with the largest that works on the same edges."""

    def tried(size: float) -> dict[str, Any]:
        return session.ask(
            "try_blend", ctx.timeout_seconds, obj_id=obj_id, edges=edges, size=size, fillet=operation == "fillet"
        )

    def works(size: float) -> bool:
        told = tried(size)
        if told["after"] is None:
            return False
        after = facts_of(told["after"])
        try:
            check_solid(after, operation)
            check_change(facts_of(told["before"]), after, Change.BLEND, operation)
        except ToolError:
            return False
        return True

    likely = tried(size_mm).get("shortest", 0.0) / 2
    largest = largest_that_works(works, size_mm, likely=likely)
    fix = f"take {word}_mm {largest:g} or less" if largest > 0 else "choose other edges: none of these can be done"
    limit = f"; the largest that works on these edges is {largest:g} mm" if largest > 0 else ""
    return ToolError(
        f"{operation}: {word} {size_mm:g} mm is too large for {obj_id}{limit}", kind=f"{operation}_too_large", fix=fix,
        where=obj_id, failure_mode=FailureMode.DESIGN, state="the session is as it was before this call",
    )  # fmt: skip
