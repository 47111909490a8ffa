"""Tools that bring STEP files in and out, with the colours that FreeCAD without a window drops."""

import base64
from pathlib import Path, PurePosixPath
from typing import Any

from metaforge.adapters.freecad.show import draw
from metaforge.adapters.freecad.steps import Group, step
from metaforge.adapters.freecad.told import Told, changed, facts_of, figures, judge, measured, vector, words
from metaforge.adapters.freecad.workbench import Session
from metaforge.core.errors import FailureMode, InvalidArguments, ToolError
from metaforge.engineering.appearance import Colour, checked_colour, colour_of
from metaforge.engineering.solid_guard import Change, SolidFacts
from metaforge.formats.step_colours import read_colours, settle, write_colours
from metaforge.formats.step_header import read_step_header, size_warning
from metaforge.formats.step_placement import has_placement
from metaforge.tools.context import Answer, OutputFile, ToolContext
from metaforge.tools.paths import InputPath, OutputPath

AGREES_MM = 0.01
"""The box that was stored may differ from the live one by this much."""


class ExchangeTools(Group):
    """STEP in and out."""

    @step(
        title="Export model", capability="cad_export", idempotent=True, timeout_seconds=300, max_disk_mb=1024,
        search_hint="save a session's part or assembly as STEP, coloured",
    )  # fmt: skip
    def export_model(
        self,
        ctx: ToolContext,
        session_id: str,
        obj_id: str,
        output_path: OutputPath | None = None,
        material: str | None = None,
        color: list[float] | None = None,
        part_materials: dict[str, str] | None = None,
        include_base64: bool = False,
        picture: bool = False,
        overwrite: bool = False,
    ) -> Answer[Told]:
        """Write an object as STEP, placed as it is in the session, measured from the written file.

        twin.commit_geometry takes session_id and obj_id afterwards; no bytes need to be carried.

        Args:
            session_id: From open_session.
            obj_id: Object or assembly.
            output_path: .step file; default in out/.
            material: Gives the colour, such as 18 mm birch plywood.
            color: [r, g, b], 0-1 or 0-255; goes before material.
            part_materials: Assembly part label to material; goes before both.
            include_base64: Also return the file itself.
            picture: Also draw it.
            overwrite: Replace a file that exists with other content.
        """
        session = self.workbench.find(session_id)
        scratch = ctx.scratch / "export.step"
        reply = session.ask("export_step", ctx.timeout_seconds, obj_id=obj_id, path=str(scratch))
        path = _step_path(output_path or session.file_name(reply["label"], ".step"))
        colours, warnings = _colours(session, reply["parts"], material, color, part_materials or {})
        text = settle(scratch.read_text(encoding="utf-8", errors="surrogateescape"), PurePosixPath(path).name)
        text = _coloured(text, {label: colour for label, colour in colours.items() if colour is not None})
        if has_placement(text):
            raise ToolError(f"{path} still moves its parts by transforms", kind="export_differs", where=path)
        target = ctx.output_file(path)
        target.write_text(text, encoding="utf-8", errors="surrogateescape")
        stored = session.ask("measure_file", ctx.timeout_seconds, path=str(target))
        facts = facts_of(stored["facts"])
        _check_stored(facts_of(reply["live"]), facts, path)
        data: dict[str, Any] = {
            "obj_id": reply["obj_id"], "format": "step", "cad_file": path, "size_bytes": target.stat().st_size,
            **measured(facts), "stored_properties": _stored(facts, stored["centre"]),
            "placement_baked": reply["baked"], "coordinate_frame": "twin",
            "parts": [_part(each, colours.get(each["label"])) for each in reply["parts"]],
        }  # fmt: skip
        if include_base64:
            data["step_base64"] = base64.b64encode(target.read_bytes()).decode()
        files: tuple[OutputFile, ...] = (OutputFile(path, "model/step", "geometry"),)
        pictures: tuple[Any, ...] = ()
        if picture:
            drawn, pictures = draw(ctx, session, reply["obj_id"], data, str(PurePosixPath(path).with_suffix(".png")))
            files += drawn
        coloured = sum(colour is not None for colour in colours.values())
        return Answer(
            data, f"{path}: {words(data).partition(': ')[2]}; {coloured} of {len(reply['parts'])} parts coloured.",
            tuple(warnings),
            f"twin.commit_geometry with session_id {session_id} and obj_id {reply['obj_id']}; freecad.generate_mesh or "
            f"calculix.run_fea with {path}",
            files, pictures, {"FreeCAD": session.process.version},
        )  # fmt: skip

    @step(
        title="Import STEP", capability="cad_import", timeout_seconds=300,
        search_hint="load a STEP file into a FreeCAD session for editing",
    )  # fmt: skip
    def import_step(
        self, ctx: ToolContext, session_id: str, file_path: InputPath, name: str | None = None, picture: bool = False
    ) -> Answer[Told]:
        """Load a STEP file's parts into the session, each with its colour.

        Args:
            session_id: From open_session.
            file_path: .step or .stp file.
            name: Label of the part or assembly; the file's own by default.
            picture: Also draw it.
        """
        session = self.workbench.find(session_id)
        source, header, data = read_step(ctx, file_path)
        label = name or PurePosixPath(file_path).stem
        reply = session.ask(
            "import_step", ctx.timeout_seconds, path=str(source), scratch=str(ctx.scratch), shown=file_path, name=label,
            named=name is not None,
        )  # fmt: skip
        facts = facts_of(reply["after"])
        if facts.solids_count:
            warnings = judge(session, reply, "import", Change.NEW, solids_count=None)
        else:
            warnings = [f"{file_path} has no solid ({facts.shells_count} shells): it encloses no volume"]
        if warning := size_warning(header, max(facts.size_mm)):
            warnings.append(warning)
        found = match_colours(reply["parts"], read_colours(data.decode("utf-8", "surrogateescape")))
        session.colours |= {part: colour for part, colour in found.items() if colour is not None}
        parts = [
            {
                "obj_id": each["obj_id"], "label": each["label"], "product": each["product"],
                **measured(facts_of(each["facts"])),
                "color": rounded(found[each["obj_id"]]),
            }
            for each in reply["parts"]
        ]  # fmt: skip
        told = changed(reply) | {"source_unit": header.source_unit, "part_count": len(parts), "parts": parts}
        files, pictures = draw(ctx, session, reply["obj_id"], told) if picture else ((), ())
        coloured = sum(colour is not None for colour in found.values())
        return Answer(
            told, f"{file_path}: {words(told)}; {len(parts)} parts, {coloured} with a colour.", tuple(warnings),
            f"freecad.describe_model, transform_object or boolean with obj_id {reply['obj_id']}", files, pictures,
            {"FreeCAD": session.process.version},
        )  # fmt: skip


def rounded(colour: Colour | None) -> list[float] | None:
    """Return a colour as it is told."""
    return None if colour is None else [figures(each, 6) for each in colour]


def read_step(ctx: ToolContext, path: str) -> tuple[Path, Any, bytes]:
    """Return where a STEP file can be read, what its text says, and its bytes.

    Raises:
        ToolError: no such file, or one that no kernel should be given.
    """
    source = ctx.input_file(path)
    if not source.is_file():
        raise ToolError(f"{path} does not exist in the workspace", kind="file_missing", where=path)
    data = source.read_bytes()
    header = read_step_header(data, path)
    if header.has_byte_order_mark or not path.lower().endswith((".step", ".stp")):
        source = ctx.scratch / "input.step"
        source.write_bytes(data[3:] if header.has_byte_order_mark else data)
    return source, header, data


def match_colours(parts: list[dict[str, Any]], colours: dict[str, Colour]) -> dict[str, Colour | None]:
    """Return each part's colour: that of the product of its label, FreeCAD's number behind it left out."""
    if len(parts) == 1 and len(set(colours.values())) == 1:
        return {parts[0]["obj_id"]: next(iter(colours.values()))}
    return {each["obj_id"]: _colour_of_label(each["product"], colours) for each in parts}


def _colour_of_label(label: str, colours: dict[str, Colour]) -> Colour | None:
    if label in colours:
        return colours[label]
    # Part1 twice comes in as Part1 and Part002, so the number may have taken digits of the name with it.
    stem = label.rstrip("0123456789")
    if len(label) - len(stem) < 3:
        return None
    fitting = {
        colour for name, colour in colours.items() if name in (label[:-3], stem) or name.rstrip("0123456789") == stem
    }
    return next(iter(fitting)) if len(fitting) == 1 else None


def _step_path(path: str) -> str:
    if not path.lower().endswith((".step", ".stp")):
        raise InvalidArguments(
            f"output_path: {path!r} must end in .step or .stp; freecad.export_geometry writes other formats",
            fields={"output_path": "a path that ends in .step or .stp"},
        )
    return path


def _colours(
    session: Session,
    parts: list[dict[str, Any]],
    material: str | None,
    color: list[float] | None,
    part_materials: dict[str, str],
) -> tuple[dict[str, Colour | None], list[str]]:
    """Return each part's colour by label, and warnings: part_materials, then color, then material, then imported."""
    labels = {each["label"] for each in parts}
    if unknown := [label for label in part_materials if label not in labels]:
        raise InvalidArguments(
            f"part_materials names {', '.join(unknown)}; the parts are {', '.join(sorted(labels))}",
            fields={f"part_materials.{label}": f"one of {', '.join(sorted(labels))}" for label in unknown},
        )
    named = {*part_materials.values(), *([material] if material and color is None else [])}
    warnings = [
        f"No colour is known for {each!r}: the part stays uncoloured; give color to set one"
        for each in sorted(named)
        if colour_of(each) is None
    ]
    general = checked_colour(color, "color") if color is not None else colour_of(material) if material else None
    found: dict[str, Colour | None] = {}
    for each in parts:
        of_part = part_materials.get(each["label"])
        own = colour_of(of_part) if of_part is not None else None
        found[each["label"]] = own or general or session.colours.get(each["obj_id"])
    return found, warnings


def _coloured(text: str, colours: dict[str, Colour]) -> str:
    if not colours:
        return text
    try:
        text = write_colours(text, colours)
    except KeyError as fault:
        raise ToolError(
            f"The part {fault.args[0]} cannot be coloured: FreeCAD wrote no solid of it", kind="not_coloured",
            fix="export it without a colour, or give it another label", where=str(fault.args[0]),
        ) from None  # fmt: skip
    kept = read_colours(text)
    for label, colour in colours.items():
        if any(abs(a - b) > 1e-6 for a, b in zip(kept.get(label, (-1.0, -1.0, -1.0)), colour, strict=True)):
            raise ToolError(f"The colour of {label} did not arrive in the file", kind="not_coloured", where=label)
    return text


def _check_stored(live: SolidFacts, stored: SolidFacts, path: str) -> None:
    """Refuse a file that is not what the session shows.

    Raises:
        ToolError: `export_differs`.
    """
    if stored.bounds_mm is None or live.bounds_mm is None:
        raise ToolError(f"{path} holds no geometry", kind="empty_result", where=path)
    apart = max(abs(a - b) for a, b in zip(live.bounds_mm, stored.bounds_mm, strict=True))
    share = abs(stored.volume_mm3 - live.volume_mm3) / max(abs(live.volume_mm3), 1e-9)
    if apart > AGREES_MM or share > 1e-6 or live.solids_count != stored.solids_count:
        raise ToolError(
            f"{path} is not what the session shows: its box differs by {apart:.4g} mm, its volume by {share:.2g}, "
            f"it has {stored.solids_count} solids and not {live.solids_count}",
            kind="export_differs", where=path, fix="check it with freecad.measure", failure_mode=FailureMode.DESIGN,
        )  # fmt: skip


def _stored(facts: SolidFacts, centre: list[float] | None) -> dict[str, Any]:
    told = measured(facts)
    stored: dict[str, Any] = {
        name: told[name] for name in ("volume_mm3", "surface_area_mm2", "bounding_box_mm") if name in told
    }
    if centre is not None:
        stored["center_of_mass_mm"] = vector(centre)
    return stored


def _part(told: dict[str, Any], colour: Colour | None) -> dict[str, Any]:
    found: dict[str, Any] = {"obj_id": told["obj_id"], "label": told["label"]}
    if colour is not None:
        found["color"] = rounded(colour)
    return found
