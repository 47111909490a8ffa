"""`generate_enclosure`: a box with lid around a board: bosses under its holes, cutouts for its connectors."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

import cadquery as cq

from metaforge.adapters.cadquery import results, shapes
from metaforge.adapters.cadquery.kernel_errors import tells_kernel_errors
from metaforge.adapters.cadquery.material import density_of
from metaforge.adapters.cadquery.measure import facts
from metaforge.adapters.cadquery.model import Part, model_of
from metaforge.adapters.cadquery.pieces import Cutout, MountingHole
from metaforge.adapters.cadquery.properties import part_info
from metaforge.adapters.cadquery.show import draw
from metaforge.adapters.cadquery.versions import programs
from metaforge.adapters.cadquery.write import write_step
from metaforge.core.errors import InvalidArguments
from metaforge.engineering.solid_guard import check_solid
from metaforge.tools.context import Answer, ToolContext

AXES = (
    "board length along x, width along y; the enclosure is centred in x and y and stands on z = 0; "
    "board coordinates start at the board's -x -y corner"
)
BOSS_WALL_MM = 1.5
LIP_GAP_MM = 0.2


@dataclass(frozen=True)
class Board:
    """What the enclosure is made around; lengths in mm."""

    length: float
    width: float
    thickness: float
    component_height: float


@dataclass(frozen=True)
class Casing:
    """How it is made; lengths in mm."""

    wall: float
    clearance: float
    standoff: float
    corner_radius: float
    lid: bool
    lip: float


@dataclass(frozen=True)
class Room:
    """Where things are, worked out from board and casing; lengths in mm."""

    inner_length: float
    inner_width: float
    inner_height: float
    wall: float

    @property
    def outer_length(self) -> float:
        return self.inner_length + 2 * self.wall

    @property
    def outer_width(self) -> float:
        return self.inner_width + 2 * self.wall

    @property
    def body_height(self) -> float:
        return self.inner_height + self.wall


@tells_kernel_errors
def enclose(
    ctx: ToolContext,
    board: Board,
    casing: Casing,
    holes: Sequence[MountingHole],
    cutouts: Sequence[Cutout],
    boss_hole_diameter_mm: float,
    material: str | None,
    output_path: str | None,
    picture: bool,
) -> Answer[results.EnclosureResult]:
    """Make the enclosure and its STEP file with the parts body and lid."""
    density = density_of(material)
    lip = casing.lip if casing.lid else 0.0
    room = Room(
        board.length + 2 * casing.clearance,
        board.width + 2 * casing.clearance,
        casing.standoff + board.thickness + board.component_height + lip,
        casing.wall,
    )
    _check(board, casing, room, holes, boss_hole_diameter_mm)
    bosses = [_boss(board, casing, hole, boss_hole_diameter_mm) for hole in holes]
    board_top = casing.wall + casing.standoff + board.thickness
    body = _body(board, casing, room, bosses, cutouts, board_top)
    parts = [Part("body", body.wrapped)]
    if casing.lid:
        parts.append(Part("lid", _lid(casing, room, lip).wrapped))
    path = output_path or f"out/enclosure-{_digest(board, casing, holes, cutouts, boss_hole_diameter_mm)}.step"
    model = model_of(parts, PurePosixPath(path).stem)
    measured = facts(model.shape)
    warnings = check_solid(measured, "enclosure", expected_solids_count=len(parts))
    internal = _free_volume_mm3(room, parts)
    files = [write_step(ctx, model, path)]
    outside = (room.outer_length, room.outer_width, room.body_height + (casing.wall if casing.lid else 0.0))
    inside = (room.inner_length, room.inner_width, room.inner_height)
    mass_kg = measured.volume_mm3 * density * 1e-9 if density else None
    words = " x ".join(f"{each:.6g}" for each in outside)
    return Answer(
        results.EnclosureResult(
            cad_file=path,
            internal_volume_mm3=internal,
            external_dimensions_mm=outside,
            internal_dimensions_mm=inside,
            mounting_info=results.MountingInfo(len(bosses), bosses, casing.wall + casing.standoff),
            volume_mm3=measured.volume_mm3,
            parts=part_info(parts),
            cutouts_count=len(cutouts),
            axes=AXES,
            mass_kg=mass_kg,
        ),
        summary=f"{path}: outside {words} mm, free volume inside {internal:.6g} mm3, wall {casing.wall:g} mm, "
        f"{len(bosses)} boss(es), {len(cutouts)} cutout(s), {len(parts)} valid part(s); board underside at "
        f"z = {casing.wall + casing.standoff:g} mm.",
        warnings=tuple(warnings),
        next_step=f"cadquery.export_geometry input_file={path} output_format=stl prints it",
        pictures=draw(ctx, model, path, measured, files, see_through="lid") if picture else (),
        files=tuple(files),
        programs=programs(),
    )


def _check(board: Board, casing: Casing, room: Room, holes: Sequence[MountingHole], boss_hole: float) -> None:
    for number, hole in enumerate(holes):
        radius = hole.diameter_mm / 2
        for name, value, limit in (("x_mm", hole.x_mm, board.length), ("y_mm", hole.y_mm, board.width)):
            if not radius <= value <= limit - radius:
                raise _wrong(
                    f"mounting_holes.{number}.{name}",
                    f"{value:g} mm lies outside the board, it must be between {radius:g} and {limit - radius:g} mm",
                )
    if holes and casing.standoff <= 0:
        raise _wrong("standoff_height_mm", "must be above 0 mm where there are mounting holes")
    if holes and boss_hole <= 0:
        raise _wrong("boss_hole_diameter_mm", "must be above 0 mm")
    limit = min(room.outer_length, room.outer_width) / 2
    if casing.corner_radius >= limit:
        raise _wrong("corner_radius_mm", f"{casing.corner_radius:g} mm is too large, it must be below {limit:g} mm")
    # A rounded inner corner must not reach the board's own corner.
    inner = max(casing.corner_radius - casing.wall, 0.0)
    reach = inner * (1 - 2**-0.5)
    if reach > casing.clearance:
        largest = casing.wall + casing.clearance / (1 - 2**-0.5)
        raise _wrong(
            "corner_radius_mm",
            f"{casing.corner_radius:g} mm cuts into the board's corners, the largest is {largest:.4g} mm "
            f"at a clearance of {casing.clearance:g} mm",
        )


def _boss(board: Board, casing: Casing, hole: MountingHole, boss_hole: float) -> results.Boss:
    outer = max(hole.diameter_mm + 2, boss_hole + 2 * BOSS_WALL_MM)
    return results.Boss(hole.x_mm - board.length / 2, hole.y_mm - board.width / 2, outer, boss_hole, casing.standoff)


def _body(
    board: Board, casing: Casing, room: Room, bosses: Sequence[results.Boss], cutouts: Sequence[Cutout], top: float
) -> Any:
    made = shapes.hollow_box(
        room.outer_length, room.outer_width, room.body_height, casing.wall, casing.corner_radius, lid=False
    )["body"]
    floor = casing.wall
    if bosses:
        # A boss starts inside the floor so that the union has no face in common with it.
        made = made.fuse(
            *(shapes.drill(b.outer_diameter_mm / 2, b.height_mm + floor / 2, (b.x_mm, b.y_mm, floor / 2), (0, 0, 1))
              for b in bosses)
        )  # fmt: skip
        made = made.cut(
            *(shapes.drill(b.hole_diameter_mm / 2, b.height_mm + 1, (b.x_mm, b.y_mm, floor), (0, 0, 1)) for b in bosses)
        )
    tools = [_cutout(board, casing, room, cutout, number, top) for number, cutout in enumerate(cutouts)]
    if tools:
        made = made.cut(*tools)
    return made.clean()


def _cutout(board: Board, casing: Casing, room: Room, cutout: Cutout, number: int, board_top: float) -> Any:
    """Return the block that opens a wall."""
    along_x = cutout.side in ("front", "back")
    side_length = board.length if along_x else board.width
    room_along = (room.inner_length if along_x else room.inner_width) / 2
    middle = cutout.center_mm - side_length / 2
    if abs(middle) + cutout.width_mm / 2 > room_along:
        free = room_along - cutout.width_mm / 2
        text = (
            f"{cutout.width_mm:g} mm is wider than the wall inside, {2 * room_along:g} mm"
            if free < 0
            else f"{cutout.center_mm:g} mm runs into the corner, it must be between "
            f"{side_length / 2 - free:g} and {side_length / 2 + free:g} mm"
        )
        raise _wrong(f"connector_cutouts.{number}.center_mm", text)
    low = board_top + cutout.z_mm
    if low < casing.wall or low + cutout.height_mm > room.body_height:
        lowest, highest = casing.wall - board_top, room.body_height - board_top - cutout.height_mm
        raise _wrong(
            f"connector_cutouts.{number}.z_mm",
            f"{cutout.z_mm:g} mm with a height of {cutout.height_mm:g} mm leaves the wall, it must be between "
            f"{lowest:g} and {highest:g} mm",
        )
    depth = casing.wall + casing.clearance / 2 + 1
    half = (room.outer_width if along_x else room.outer_length) / 2
    sign = 1 if cutout.side in ("back", "right") else -1
    # From 1 mm outside the wall to the middle of the gap beside the board.
    centre = sign * (half + 1 - depth / 2)
    x, y = (middle, centre) if along_x else (centre, middle)
    wide, deep = (cutout.width_mm, depth) if along_x else (depth, cutout.width_mm)
    return cq.Solid.makeBox(wide, deep, cutout.height_mm, cq.Vector(x - wide / 2, y - deep / 2, low))


def _lid(casing: Casing, room: Room, lip: float) -> Any:
    plate = shapes.rounded_block(
        room.outer_length, room.outer_width, casing.wall, casing.corner_radius, z=room.body_height
    )
    if lip <= 0:
        return plate
    inner_radius = max(casing.corner_radius - casing.wall, 0.0)
    length, width = room.inner_length - 2 * LIP_GAP_MM, room.inner_width - 2 * LIP_GAP_MM
    radius = max(inner_radius - LIP_GAP_MM, 0.0)
    thick = min(casing.wall, length / 4, width / 4)
    ring = shapes.rounded_block(length, width, lip, radius, z=room.body_height - lip).cut(
        shapes.rounded_block(
            length - 2 * thick, width - 2 * thick, lip, max(radius - thick, 0.0), z=room.body_height - lip
        )
    )
    return plate.fuse(ring).clean()


def _free_volume_mm3(room: Room, parts: Sequence[Part]) -> float:
    """Measure what is free between floor and lid: the cavity less bosses and lip."""
    cavity = shapes.block(room.inner_length, room.inner_width, room.inner_height, z=room.wall)
    free = cavity.cut(*(cq.Shape.cast(part.shape) for part in parts))
    return facts(free.wrapped).volume_mm3


def _digest(*told: object) -> str:
    return hashlib.sha256(repr(told).encode()).hexdigest()[:10]


def _wrong(field: str, text: str) -> InvalidArguments:
    return InvalidArguments(f"cadquery.generate_enclosure: {field}: {text}", fields={field: text})
