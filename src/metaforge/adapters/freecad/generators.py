"""Tools that make common parts and details in one step."""

from typing import Annotated, Any, Literal

from pydantic import Field

from metaforge.adapters.freecad.steps import FlatPoint, Group, Positive, step
from metaforge.adapters.freecad.told import Told, figures
from metaforge.core.errors import InvalidArguments
from metaforge.engineering.solid_guard import Change
from metaforge.tools.context import Answer, ToolContext

MOST_HOLES = 2000
NEXT = "freecad.measure, or export_model when it is done"
PACKAGES: dict[str, dict[str, float]] = {
    "soic": {"length_mm": 4.9, "width_mm": 3.9, "height_mm": 1.5, "pitch_mm": 1.27,
             "lead_count": 8, "lead_width_mm": 0.42,
             "lead_length_mm": 1.05, "lead_thickness_mm": 0.2, "standoff_mm": 0.15},
    "qfp": {"length_mm": 7.0, "width_mm": 7.0, "height_mm": 1.4, "pitch_mm": 0.8,
             "lead_count": 32, "lead_width_mm": 0.37,
            "lead_length_mm": 1.0, "lead_thickness_mm": 0.15, "standoff_mm": 0.1},
    "qfn": {"length_mm": 5.0, "width_mm": 5.0, "height_mm": 0.9, "pitch_mm": 0.5,
             "lead_count": 32, "lead_width_mm": 0.25,
            "lead_length_mm": 0.4, "lead_thickness_mm": 0.2, "standoff_mm": 0.0},
    "sot23": {"length_mm": 2.9, "width_mm": 1.3, "height_mm": 1.0, "pitch_mm": 0.95,
             "lead_count": 6, "lead_width_mm": 0.4,
              "lead_length_mm": 0.5, "lead_thickness_mm": 0.15, "standoff_mm": 0.05},
}  # fmt: skip
"""Usual sizes of each kind; every one can be given otherwise."""


class GeneratorTools(Group):
    """Enclosures, holes, gears, lattices, packages, profiles."""

    @step(title="Generate enclosure", search_hint="box, case, housing in FreeCAD", phase=2)
    def generate_enclosure(
        self,
        ctx: ToolContext,
        session_id: str,
        length_mm: Positive,
        width_mm: Positive,
        height_mm: Positive,
        wall_thickness_mm: Positive = 2.0,
        name: str | None = None,
        picture: bool = False,
    ) -> Answer[Told]:
        """Make a box that is open at the top, one corner at the origin.

        Args:
            session_id: From open_session.
            length_mm: Along x, outside.
            width_mm: Along y, outside.
            height_mm: Along z, outside.
            wall_thickness_mm: Of walls and floor.
            name: Its label.
            picture: Also draw it.
        """
        return self._make(
            ctx, session_id, "enclosure", picture, length=length_mm, width=width_mm, height=height_mm,
            wall=wall_thickness_mm, name=name,
        )  # fmt: skip

    def _make(
        self,
        ctx: ToolContext,
        session_id: str,
        name: str,
        picture: bool,
        /,
        more: dict[str, Any] | None = None,
        **given: Any,
    ) -> Answer[dict[str, Any]]:
        session, reply = self.edit(ctx, session_id, name, **given)
        told = {"skill": name, **(more or {})}
        told |= {f"{key}_mm": figures(reply[key]) for key in ("pitch_diameter", "addendum_diameter") if key in reply}
        return self.answer(
            ctx, session, reply, name.replace("_", " "), change=Change.NEW, picture=picture, more=told, next_step=NEXT
        )

    @step(title="Fastener hole", search_hint="drill a screw hole with counterbore", phase=2)
    def fastener_hole(
        self,
        ctx: ToolContext,
        session_id: str,
        body_id: str,
        x_mm: float,
        y_mm: float,
        diameter_mm: Positive,
        depth_mm: Positive | None = None,
        counterbore_diameter_mm: Positive | None = None,
        counterbore_depth_mm: Positive | None = None,
        picture: bool = False,
    ) -> Answer[Told]:
        """Drill from the top of a part, along z, with a counterbore if asked; the result is a new object.

        Args:
            session_id: From open_session.
            body_id: Body or solid.
            x_mm: Of the axis.
            y_mm: Of the axis.
            diameter_mm: Of the hole.
            depth_mm: Through by default.
            counterbore_diameter_mm: Of the wider part.
            counterbore_depth_mm: Needed with counterbore_diameter_mm.
            picture: Also draw it.
        """
        if (counterbore_diameter_mm is None) is not (counterbore_depth_mm is None):
            raise InvalidArguments(
                "A counterbore needs counterbore_diameter_mm and counterbore_depth_mm",
                fields={"counterbore_depth_mm": "given with counterbore_diameter_mm"},
            )
        if counterbore_diameter_mm is not None and counterbore_diameter_mm <= diameter_mm:
            raise InvalidArguments(
                f"counterbore_diameter_mm {counterbore_diameter_mm:g} must be above diameter_mm {diameter_mm:g}",
                fields={"counterbore_diameter_mm": f"above {diameter_mm:g}"},
            )
        session, reply = self.edit(
            ctx, session_id, "fastener_hole", body_id=body_id, x=x_mm, y=y_mm, diameter=diameter_mm, depth=depth_mm,
            bore=counterbore_diameter_mm, bore_depth=counterbore_depth_mm,
        )  # fmt: skip
        return self.answer(
            ctx, session, reply, "fastener hole", change=Change.REMOVE, picture=picture, next_step=NEXT,
            more={"body_id": reply["body_id"], "skill": "fastener_hole"},
        )  # fmt: skip

    @step(title="Thread insert", search_hint="boss for a threaded insert", phase=2)
    def thread_insert(
        self,
        ctx: ToolContext,
        session_id: str,
        body_id: str,
        x_mm: float,
        y_mm: float,
        boss_diameter_mm: Positive,
        boss_height_mm: Positive,
        hole_diameter_mm: Positive,
        hole_depth_mm: Positive,
        picture: bool = False,
    ) -> Answer[Told]:
        """Put a boss with a blind hole for a threaded insert on the top of a part; the result is a new object.

        Args:
            session_id: From open_session.
            body_id: Body or solid.
            x_mm: Of the axis.
            y_mm: Of the axis.
            boss_diameter_mm: Of the boss.
            boss_height_mm: Above the top.
            hole_diameter_mm: As the insert's maker says.
            hole_depth_mm: From the top of the boss.
            picture: Also draw it.
        """
        if hole_diameter_mm >= boss_diameter_mm:
            raise InvalidArguments(
                f"hole_diameter_mm {hole_diameter_mm:g} must be below boss_diameter_mm {boss_diameter_mm:g}",
                fields={"hole_diameter_mm": f"below {boss_diameter_mm:g}"},
            )
        session, reply = self.edit(
            ctx, session_id, "thread_insert", body_id=body_id, x=x_mm, y=y_mm, boss_diameter=boss_diameter_mm,
            boss_height=boss_height_mm, hole_diameter=hole_diameter_mm, hole_depth=hole_depth_mm,
        )  # fmt: skip
        return self.answer(
            ctx, session, reply, "thread insert", change=Change.NEW, picture=picture, next_step=NEXT,
            more={"body_id": reply["body_id"], "skill": "thread_insert"},
        )  # fmt: skip

    @step(title="Lattice perforation", search_hint="grid of holes, perforated plate", phase=2)
    def lattice_perforation(
        self,
        ctx: ToolContext,
        session_id: str,
        body_id: str,
        cell_size_mm: Positive,
        hole_diameter_mm: Positive,
        margin_mm: Annotated[float, Field(ge=0)] = 2.0,
        picture: bool = False,
    ) -> Answer[Told]:
        """Cut a grid of through holes along z into a plate; the result is a new object.

        Args:
            session_id: From open_session.
            body_id: Body or solid.
            cell_size_mm: From hole to hole.
            hole_diameter_mm: Of each.
            margin_mm: Left at the rim of the part's box.
            picture: Also draw it.
        """
        if hole_diameter_mm >= cell_size_mm:
            raise InvalidArguments(
                f"hole_diameter_mm {hole_diameter_mm:g} must be below cell_size_mm {cell_size_mm:g}: holes would meet",
                fields={"hole_diameter_mm": f"below {cell_size_mm:g}"},
            )
        session, reply = self.edit(
            ctx, session_id, "lattice", body_id=body_id, cell=cell_size_mm, hole_diameter=hole_diameter_mm,
            margin=margin_mm, most=MOST_HOLES,
        )  # fmt: skip
        return self.answer(
            ctx, session, reply, "lattice", change=Change.REMOVE, picture=picture, next_step=NEXT,
            more={"body_id": reply["body_id"], "cell_count": reply["cells"], "skill": "lattice_perforation"},
        )  # fmt: skip

    @step(title="Generate gear", search_hint="spur gear with involute teeth", phase=2)
    def generate_gear(
        self,
        ctx: ToolContext,
        session_id: str,
        module_mm: Positive,
        teeth: Annotated[int, Field(ge=6, le=200)],
        thickness_mm: Positive,
        pressure_angle_deg: Annotated[float, Field(ge=14.5, le=30)] = 20.0,
        name: str | None = None,
        picture: bool = False,
    ) -> Answer[Told]:
        """Make a spur gear with involute flanks about z (addendum 1, dedendum 1.25 modules, no undercut).

        Args:
            session_id: From open_session.
            module_mm: Pitch diameter over number of teeth.
            teeth: How many.
            thickness_mm: Along z.
            pressure_angle_deg: Usually 20.
            name: Its label.
            picture: Also draw it.
        """
        return self._make(
            ctx, session_id, "gear", picture, module=module_mm, teeth=teeth, thickness=thickness_mm,
            pressure_angle=pressure_angle_deg, name=name,
        )  # fmt: skip

    @step(title="Generate profile part", search_hint="turn or extrude an outline", phase=2)
    def generate_profile_part(
        self,
        ctx: ToolContext,
        session_id: str,
        profile_mm: Annotated[list[FlatPoint], Field(min_length=3)],
        operation: Literal["revolve", "extrude"] = "revolve",
        angle_deg: Annotated[float, Field(gt=0, le=360)] = 360.0,
        depth_mm: Positive | None = None,
        name: str | None = None,
        picture: bool = False,
    ) -> Answer[Told]:
        """Turn a closed outline about z (points are radius, height), or extrude it along z (points are x, y).

        Args:
            session_id: From open_session.
            profile_mm: Corners of the outline, in order.
            operation: What to do.
            angle_deg: How far to turn.
            depth_mm: How far to extrude.
            name: Its label.
            picture: Also draw it.
        """
        if operation == "extrude" and depth_mm is None:
            raise InvalidArguments("extrude needs depth_mm", fields={"depth_mm": "is required to extrude"})
        return self._make(
            ctx, session_id, "profile_part", picture, {"operation": operation}, profile=profile_mm, operation=operation,
            angle=angle_deg, depth=depth_mm, name=name,
        )  # fmt: skip

    @step(title="Generate IC package", search_hint="3D model of a chip package", phase=2)
    def generate_ic_package(
        self,
        ctx: ToolContext,
        session_id: str,
        package_type: Literal["soic", "qfp", "qfn", "sot23"],
        params: dict[str, float] | None = None,
        name: str | None = None,
        picture: bool = False,
    ) -> Answer[Told]:
        """Make an outline model of a chip's package: body and leads, on the board at z = 0.

        Args:
            session_id: From open_session.
            package_type: Which kind.
            params: Other than its usual sizes: length_mm width_mm height_mm pitch_mm lead_count lead_width_mm
                lead_length_mm lead_thickness_mm standoff_mm.
            name: Its label.
            picture: Also draw it.
        """
        sizes = package_sizes(package_type, params or {})
        session, reply = self.edit(
            ctx, session_id, "ic_package", name=name or package_type.upper(), sizes=sizes,
            leads=lead_places(package_type, sizes),
        )  # fmt: skip
        return self.answer(
            ctx, session, reply, package_type, change=Change.NEW, picture=picture, solids_count=None, next_step=NEXT,
            more={
                "obj_ids": reply["obj_ids"], "part_count": len(reply["obj_ids"]), "package_type": package_type,
                "skill": "generate_ic_package",
            },
        )  # fmt: skip


def package_sizes(kind: str, given: dict[str, float]) -> dict[str, float]:
    """Return a package's sizes; names stand without their unit too.

    Raises:
        InvalidArguments: an unknown name, a size that is not positive, or leads that do not fit on the sides.
    """
    usual = PACKAGES[kind]
    short = {name.removesuffix("_mm"): name for name in usual}
    found = {short.get(name, name): value for name, value in given.items()}
    wrong = {f"params.{name}": f"a package has {', '.join(usual)}" for name in found if name not in usual}
    wrong |= {
        f"params.{name}": f"{value:g} must be above 0"
        for name, value in found.items()
        if name in usual and value <= 0 and name != "standoff_mm"
    }
    sizes = {**usual, **{name: value for name, value in found.items() if name in usual}}
    sides = 4 if kind in ("qfp", "qfn") else 2
    if sizes["lead_count"] % sides or sizes["lead_count"] != int(sizes["lead_count"]):
        wrong["params.lead_count"] = f"must be a multiple of {sides}"
    row = (sizes["lead_count"] / sides - 1) * sizes["pitch_mm"] + sizes["lead_width_mm"]
    if not wrong and row > min(sizes["length_mm"], sizes["width_mm"] if sides == 4 else sizes["length_mm"]):
        wrong["params.lead_count"] = f"a row of leads takes {row:.3g} mm, more than a side has"
    if wrong:
        raise InvalidArguments(
            f"generate_ic_package: {'; '.join(f'{name}: {text}' for name, text in wrong.items())}", fields=wrong
        )
    return sizes


def lead_places(kind: str, sizes: dict[str, float]) -> list[tuple[float, float, float, float]]:
    """Return each lead's centre and its extent along x and y, in mm; leads overlap the body to hold to it."""
    sides = 4 if kind in ("qfp", "qfn") else 2
    count, long, wide = int(sizes["lead_count"]) // sides, sizes["lead_length_mm"], sizes["lead_width_mm"]
    inside = long / 2 if kind == "qfn" else -long / 2
    places: list[tuple[float, float, float, float]] = []
    for number in range(count):
        along = (number - (count - 1) / 2) * sizes["pitch_mm"]
        across = sizes["width_mm"] / 2 - inside
        places += [(along, -across, wide, long), (along, across, wide, long)]
        if sides == 4:
            across = sizes["length_mm"] / 2 - inside
            places += [(-across, along, long, wide), (across, along, long, wide)]
    return places
