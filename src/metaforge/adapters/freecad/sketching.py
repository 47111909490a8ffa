"""Tools that draw sketches and make features of them."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from metaforge.adapters.freecad.steps import FlatPoint, Group, Positive, step
from metaforge.adapters.freecad.told import Told, figures, vector
from metaforge.core.errors import InvalidArguments, ToolError
from metaforge.engineering.solid_guard import Change
from metaforge.tools.context import Answer, ToolContext

Plane = Literal["XY", "XZ", "YZ"]
TYPES: dict[str, tuple[str, ...]] = {
    "line": ("start_mm", "end_mm"),
    "polyline": ("points_mm",),
    "rectangle": ("corner_mm", "width_mm", "height_mm"),
    "circle": ("center_mm", "radius_mm"),
    "arc": ("center_mm", "radius_mm", "start_deg", "end_deg"),
}


class Element(BaseModel):
    """line start_mm end_mm; polyline points_mm [closed]; rectangle corner_mm width_mm height_mm; circle center_mm
    radius_mm; arc center_mm radius_mm start_deg end_deg (counter-clockwise)."""

    model_config = ConfigDict(extra="forbid")

    type: Literal["line", "polyline", "rectangle", "circle", "arc"]
    start_mm: FlatPoint | None = None
    end_mm: FlatPoint | None = None
    points_mm: Annotated[list[FlatPoint], Field(min_length=2)] | None = None
    closed: bool = True
    corner_mm: FlatPoint | None = None
    width_mm: Positive | None = None
    height_mm: Positive | None = None
    center_mm: FlatPoint | None = None
    radius_mm: Positive | None = None
    start_deg: float | None = None
    end_deg: float | None = None


def checked_elements(elements: list[Element]) -> list[dict[str, Any]]:
    """Return elements as the worker takes them.

    Raises:
        InvalidArguments: one lacks what its type needs.
    """
    wrong = {
        f"elements.{number}.{name}": f"a {element.type} needs it"
        for number, element in enumerate(elements)
        for name in TYPES[element.type]
        if getattr(element, name) is None
    }
    if wrong:
        listed = "; ".join(f"{name}: {text}" for name, text in wrong.items())
        raise InvalidArguments(f"create_sketch: {listed}", fields=wrong)
    return [element.model_dump(exclude_none=True) for element in elements]


class SketchTools(Group):
    """Sketches, and features that sweep them."""

    @step(title="Create sketch", search_hint="draw a 2D profile in a body")
    def create_sketch(
        self,
        ctx: ToolContext,
        session_id: str,
        body_id: str,
        elements: Annotated[list[Element], Field(min_length=1)],
        plane: Plane = "XY",
        offset_mm: float = 0.0,
    ) -> Answer[Told]:
        """Draw a sketch on a plane of a body, in mm. Ends that meet are joined; inner outlines are holes.

        Sketch x, y are the plane's own: X, Y for XY; X, Z for XZ; Y, Z for YZ.

        Args:
            session_id: From open_session.
            body_id: From create_body.
            elements: What to draw.
            plane: Which plane.
            offset_mm: Along the plane's normal (told in the answer).
        """
        session, reply = self.edit(
            ctx, session_id, "create_sketch", body_id=body_id, plane=plane, offset=offset_mm,
            elements=checked_elements(elements),
        )  # fmt: skip
        data = {
            "obj_id": reply["obj_id"], "kind": reply["kind"], "body_id": reply["label_of_body"],
            "outlines_count": reply["wires"], "is_closed": reply["closed"], "dimensions": reply["dimensions"],
            "normal": vector(reply["normal"]), "origin_mm": vector(reply["origin"]),
        }  # fmt: skip
        area = reply["area"]
        if area is not None:
            data["area_mm2"] = figures(area)
        warnings = () if reply["closed"] else ("Not every outline is closed: it can guide a sweep, not be padded",)
        told = f", {area:.6g} mm2" if area is not None else ""
        return Answer(
            data, f"{reply['obj_id']} on {plane}: {reply['wires']} outlines, "
            f"{'closed' if reply['closed'] else 'open'}{told}; normal {data['normal']}.", warnings,
            f"freecad.pad_sketch (or pocket_sketch, revolve_sketch) with sketch_id {reply['obj_id']}",
            programs={"FreeCAD": session.process.version},
        )  # fmt: skip

    def _feature(
        self, ctx: ToolContext, session_id: str, name: str, operation: str, change: Change, picture: bool, **given: Any
    ) -> Answer[dict[str, Any]]:
        session, reply = self.edit(ctx, session_id, name, **given)
        if change is Change.REMOVE and reply["before"]:
            self._refuse_no_cut(session, reply, operation)
        body = given["body_id"]
        return self.answer(
            ctx, session, reply, operation, change=change, picture=picture, more={"body_id": body},
            next_step=f"freecad.fillet or measure with obj_id {body}; export_model with obj_id {body} when it is done",
        )  # fmt: skip

    @staticmethod
    def _refuse_no_cut(session: Any, reply: dict[str, Any], operation: str) -> None:
        before, after = reply["before"][0], reply["after"]
        if after is not None and abs(after["volume"] - before["volume"]) <= 1e-9 * before["volume"]:
            session.take_back()
            raise ToolError(
                f"{operation}: it removes nothing: from its sketch the cut goes away from the solid", kind="no_change",
                fix="set reversed: true, or give the sketch another offset_mm", where=operation,
            )  # fmt: skip

    @step(title="Pad sketch", search_hint="extrude a sketch")
    def pad_sketch(
        self,
        ctx: ToolContext,
        session_id: str,
        body_id: str,
        sketch_id: str,
        length_mm: Positive,
        reversed: bool = False,
        midplane: bool = False,
        picture: bool = False,
    ) -> Answer[Told]:
        """Extrude a closed sketch along its normal and add it to the body.

        Args:
            session_id: From open_session.
            body_id: From create_body.
            sketch_id: From create_sketch.
            length_mm: How far.
            reversed: Against the normal.
            midplane: Half to each side.
            picture: Also draw it.
        """
        return self._feature(
            ctx, session_id, "pad_sketch", "pad", Change.ADD, picture, body_id=body_id, sketch_id=sketch_id,
            length=length_mm, reversed=reversed, midplane=midplane,
        )  # fmt: skip

    @step(title="Pocket sketch", search_hint="cut a hole or pocket of a sketch's shape")
    def pocket_sketch(
        self,
        ctx: ToolContext,
        session_id: str,
        body_id: str,
        sketch_id: str,
        depth_mm: Positive | None = None,
        reversed: bool = False,
        through_all: bool = False,
        picture: bool = False,
    ) -> Answer[Told]:
        """Cut a closed sketch out of the body, against the sketch's normal.

        Args:
            session_id: From open_session.
            body_id: From create_body.
            sketch_id: From create_sketch.
            depth_mm: How deep; needed unless through_all.
            reversed: Cut along the normal.
            through_all: Through the whole body.
            picture: Also draw it.
        """
        if (depth_mm is None) is not through_all:
            raise InvalidArguments(
                "pocket_sketch needs either depth_mm or through_all: true",
                fields={"depth_mm": "above 0, or through_all"},
            )
        return self._feature(
            ctx, session_id, "pocket_sketch", "pocket", Change.REMOVE, picture, body_id=body_id, sketch_id=sketch_id,
            depth=depth_mm, reversed=reversed,
        )  # fmt: skip

    @step(title="Revolve sketch", search_hint="turn a profile about an axis")
    def revolve_sketch(
        self,
        ctx: ToolContext,
        session_id: str,
        body_id: str,
        sketch_id: str,
        angle_deg: Annotated[float, Field(gt=0, le=360)] = 360.0,
        axis: Literal["V", "H"] = "V",
        reversed: bool = False,
        picture: bool = False,
    ) -> Answer[Told]:
        """Turn a closed sketch about its own vertical (V) or horizontal (H) axis and add it to the body.

        Args:
            session_id: From open_session.
            body_id: From create_body.
            sketch_id: From create_sketch; it lies on one side of the axis.
            angle_deg: How far.
            axis: Which.
            reversed: The other way round.
            picture: Also draw it.
        """
        return self._feature(
            ctx, session_id, "revolve_sketch", "revolve", Change.ADD, picture, body_id=body_id, sketch_id=sketch_id,
            angle=angle_deg, axis=axis, reversed=reversed,
        )  # fmt: skip

    @step(title="Loft sketches", search_hint="blend between profiles")
    def loft_sketches(
        self,
        ctx: ToolContext,
        session_id: str,
        body_id: str,
        profile_id: str,
        section_ids: Annotated[list[str], Field(min_length=1)],
        picture: bool = False,
    ) -> Answer[Told]:
        """Join closed sketches on different planes by a smooth solid.

        Args:
            session_id: From open_session.
            body_id: From create_body.
            profile_id: First sketch.
            section_ids: The following ones, in order.
            picture: Also draw it.
        """
        return self._feature(
            ctx, session_id, "loft_sketches", "loft", Change.ADD, picture, body_id=body_id, profile_id=profile_id,
            section_ids=section_ids,
        )  # fmt: skip

    @step(title="Sweep sketch", search_hint="pipe, sweep a profile along a path")
    def sweep_sketch(
        self, ctx: ToolContext, session_id: str, body_id: str, profile_id: str, path_id: str, picture: bool = False
    ) -> Answer[Told]:
        """Move a closed sketch along the lines of another sketch and add what it passes to the body.

        Args:
            session_id: From open_session.
            body_id: From create_body.
            profile_id: What moves.
            path_id: Sketch that it follows; it begins at the profile.
            picture: Also draw it.
        """
        return self._feature(
            ctx, session_id, "sweep_sketch", "sweep", Change.ADD, picture, body_id=body_id, profile_id=profile_id,
            path_id=path_id,
        )  # fmt: skip
