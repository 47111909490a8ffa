"""Tools that work on files alone: no session before, none after."""

from pathlib import PurePosixPath
from typing import Any, Literal

from metaforge.adapters.freecad.exchange import match_colours, read_step, rounded
from metaforge.adapters.freecad.show import draw
from metaforge.adapters.freecad.steps import FREECAD, Group
from metaforge.adapters.freecad.told import Told, changed, facts_of, figures, judge, measured, vector, words
from metaforge.adapters.freecad.workbench import Session
from metaforge.core.errors import InvalidArguments
from metaforge.engineering.appearance import Colour, colour_of
from metaforge.engineering.materials import find_material
from metaforge.engineering.solid_guard import Change
from metaforge.formats.step_colours import read_colours, settle, write_colours
from metaforge.formats.step_header import size_warning
from metaforge.tools.context import Answer, OutputFile, ToolContext
from metaforge.tools.effect import Effect
from metaforge.tools.paths import InputPath, OutputPath
from metaforge.tools.tool import tool

Property = Literal["volume", "surface_area", "center_of_mass", "bounding_box", "inertia", "solids", "faces", "is_valid"]
MEDIA_TYPES = {"step": "model/step", "stl": "model/stl", "obj": "model/obj", "brep": "model/vnd.brep"}
SIZES: dict[str, dict[str, float | None]] = {
    "bracket": {
        "width_mm": None, "length_mm": None, "height_mm": None, "thickness_mm": None, "hole_diameter_mm": 0,
        "fillet_radius_mm": 0,
    },
    "plate": {"width_mm": None, "length_mm": None, "thickness_mm": None, "hole_diameter_mm": 0, "hole_margin_mm": 0},
    "enclosure": {"width_mm": None, "length_mm": None, "height_mm": None, "wall_thickness_mm": None},
    "cylinder": {"radius_mm": None, "height_mm": None, "bore_diameter_mm": 0},
}  # fmt: skip


class FileTools(Group):
    """Make, combine, measure and convert files."""

    def _load(
        self, ctx: ToolContext, session: Session, path: str
    ) -> tuple[dict[str, Any], dict[str, Colour | None], str]:
        """Load a STEP or BREP file; return what was told, the parts' colours and the file's length unit."""
        head = ctx.input_file(path).read_bytes()[:64] if ctx.input_file(path).is_file() else b""
        label = PurePosixPath(path).stem
        if head.lstrip().startswith((b"DBRep_DrawableShape", b"CASCADE Topology")):
            given = {"path": str(ctx.input_file(path)), "shown": path, "name": label}
            told = session.ask("import_brep", ctx.timeout_seconds, **given)
            return told | {"warnings": []}, {}, "millimetre (BREP carries no unit)"
        source, header, data = read_step(ctx, path)
        scratch = ctx.scratch / f"read-{label}"
        scratch.mkdir(exist_ok=True)
        reply = session.ask(
            "import_step", ctx.timeout_seconds, path=str(source), scratch=str(scratch), shown=path, name=label,
            named=False,
        )  # fmt: skip
        colours = match_colours(reply["parts"], read_colours(data.decode("utf-8", "surrogateescape")))
        warning = size_warning(header, max(facts_of(reply["after"]).size_mm))
        return reply | {"warnings": [warning] if warning else []}, colours, header.source_unit

    def _write_step(
        self, ctx: ToolContext, session: Session, obj_id: str, path: str, colours: dict[str, Colour]
    ) -> dict[str, Any]:
        if not path.lower().endswith((".step", ".stp")):
            raise InvalidArguments(
                f"output_path: {path!r} must end in .step or .stp", fields={"output_path": "ends in .step or .stp"}
            )
        scratch = ctx.scratch / "written.step"
        session.ask("export_step", ctx.timeout_seconds, obj_id=obj_id, path=str(scratch))
        text = settle(scratch.read_text(encoding="utf-8", errors="surrogateescape"), PurePosixPath(path).name)
        target = ctx.output_file(path)
        target.write_text(write_colours(text, colours) if colours else text, encoding="utf-8", errors="surrogateescape")
        return session.ask("measure_file", ctx.timeout_seconds, path=str(target))

    @tool(
        effect=Effect.PRODUCE, capability="cad_generation", title="Create parametric part", idempotent=True,
        needs=(FREECAD,), timeout_seconds=120, search_hint="bracket, plate, enclosure, cylinder by FreeCAD",
    )  # fmt: skip
    def create_parametric(
        self,
        ctx: ToolContext,
        shape_type: Literal["bracket", "plate", "enclosure", "cylinder"],
        parameters: dict[str, float],
        output_path: OutputPath,
        material: str | None = None,
        picture: bool = False,
        overwrite: bool = False,
    ) -> Answer[Told]:
        """Make a part from its dimensions and write it as STEP: width x, length y, height z, standing on z = 0.

        Args:
            shape_type: Which shape.
            parameters: bracket width_mm length_mm height_mm thickness_mm [hole_diameter_mm fillet_radius_mm];
                plate width_mm length_mm thickness_mm [hole_diameter_mm hole_margin_mm]; enclosure width_mm length_mm
                height_mm wall_thickness_mm; cylinder radius_mm height_mm [bore_diameter_mm].
            output_path: .step file.
            material: Gives mass and colour.
            picture: Also draw it.
            overwrite: Replace a file that exists with other content.
        """
        sizes = checked_sizes(shape_type, parameters)
        found = find_material(material) if material and colour_of(material) is None else None
        session = self.workbench.apart(shape_type)
        name = PurePosixPath(output_path).stem
        reply = session.ask("create_parametric", ctx.timeout_seconds, shape=shape_type, sizes=sizes, name=name)
        warnings = judge(session, reply, shape_type, Change.NEW)
        colour = colour_of(material) if material else None
        stored = self._write_step(
            ctx, session, reply["obj_id"], output_path, {reply["label"]: colour} if colour else {}
        )
        facts = facts_of(stored["facts"])
        data: dict[str, Any] = {"cad_file": output_path, **measured(facts), "parameters_used": sizes}
        summary = f"{output_path}: {words(changed(reply)).partition(': ')[2]}"
        if material:
            try:
                found = found or find_material(material)
            except InvalidArguments:
                warnings.append(f"{material!r} has no density in the table: no mass is given")
        if found is not None and found.density_kg_m3 is not None:
            data |= {"material": found.name, "mass_kg": figures(facts.volume_mm3 * found.density_kg_m3 * 1e-9)}
            summary += f", {data['mass_kg']:.4g} kg"
        files: tuple[OutputFile, ...] = (OutputFile(output_path, "model/step", "geometry"),)
        pictures: tuple[Any, ...] = ()
        if picture:
            drawn, pictures = draw(
                ctx, session, reply["obj_id"], changed(reply), str(PurePosixPath(output_path).with_suffix(".png"))
            )
            files += drawn
        return Answer(
            data, f"{summary}.", tuple(warnings), f"freecad.generate_mesh with {output_path}", files, pictures,
            {"FreeCAD": session.process.version},
        )  # fmt: skip

    @tool(
        effect=Effect.PRODUCE, capability="cad_operations", title="Boolean operation on files",
        search_hint="union, subtract, intersect two STEP files by FreeCAD",
        idempotent=True,
        needs=(FREECAD,), timeout_seconds=300,
    )  # fmt: skip
    def boolean_operation(
        self,
        ctx: ToolContext,
        input_file_a: InputPath,
        input_file_b: InputPath,
        operation: Literal["union", "subtract", "intersect"],
        output_path: OutputPath | None = None,
        overwrite: bool = False,
    ) -> Answer[Told]:
        """Unite two parts, subtract b from a, or intersect them; both stay where their files place them.

        Args:
            input_file_a: STEP or BREP file of one part.
            input_file_b: STEP or BREP file of one part.
            operation: What to do.
            output_path: .step file; default beside a.
            overwrite: Replace a file that exists with other content.
        """
        session = self.workbench.apart("boolean")
        first, colours, _ = self._load(ctx, session, input_file_a)
        second, _, _ = self._load(ctx, session, input_file_b)
        objects = [self._single(each, path) for each, path in ((first, input_file_a), (second, input_file_b))]
        reply = session.ask(
            "boolean", ctx.timeout_seconds, obj_a=objects[0], obj_b=objects[1], operation=operation, name="result"
        )
        before = facts_of(reply["before"][0])
        change = Change.ADD if operation == "union" else Change.REMOVE
        warnings = judge(session, reply, operation, change, against=before)
        path = output_path or str(
            PurePosixPath(input_file_a).with_name(f"{PurePosixPath(input_file_a).stem}-{operation}.step")
        )
        colour = next(iter(colours.values()), None)
        stored = self._write_step(ctx, session, reply["obj_id"], path, {"result": colour} if colour else {})
        facts = facts_of(stored["facts"])
        told = measured(facts)
        data = {
            "output_file": path, "operation": operation, "result_volume_mm3": told["volume_mm3"],
            "result_area_mm2": told["surface_area_mm2"], "bounding_box_mm": told["bounding_box_mm"],
            "solids_count": facts.solids_count, "is_valid": facts.is_valid,
            "volume_change_mm3": figures(facts.volume_mm3 - before.volume_mm3),
        }  # fmt: skip
        return Answer(
            data, f"{path}: {operation}, {facts.volume_mm3:.6g} mm3 ({data['volume_change_mm3']:+.6g}), "
            f"{facts.solids_count} solids.", tuple(warnings), f"freecad.get_properties with input_file {path}",
            (OutputFile(path, "model/step", "geometry"),), programs={"FreeCAD": session.process.version},
        )  # fmt: skip

    @staticmethod
    def _single(reply: dict[str, Any], path: str) -> str:
        if len(reply["parts"]) != 1:
            raise InvalidArguments(
                f"{path} holds {len(reply['parts'])} parts; name a file of one, or import it into a session",
                fields={"input_file": "a file with one part"},
            )
        return str(reply["parts"][0]["obj_id"])

    @tool(
        effect=Effect.READ, capability="cad_analysis", title="Properties of a file", needs=(FREECAD,),
        timeout_seconds=300, search_hint="volume, area, centre of mass, box of a STEP file by FreeCAD",
    )  # fmt: skip
    def get_properties(
        self,
        ctx: ToolContext,
        input_file: InputPath,
        properties: list[Property] | None = None,
        material: str | None = None,
    ) -> Answer[Told]:
        """Measure a STEP or BREP file; all its parts together, in its own frame, in mm.

        Args:
            input_file: The file.
            properties: Which; all by default.
            material: Name such as steel-316; adds the mass.
        """
        session = self.workbench.apart("properties")
        reply, _, unit = self._load(ctx, session, input_file)
        told = session.ask("measure", ctx.timeout_seconds, obj_id=reply["obj_id"])
        facts = facts_of(told["facts"])
        named = measured(facts)
        every: dict[str, dict[str, Any]] = {
            "volume": {name: named[name] for name in ("volume_mm3",) if name in named},
            "surface_area": {"surface_area_mm2": named["surface_area_mm2"]},
            "center_of_mass": {} if told["centre"] is None else {"center_of_mass_mm": vector(told["centre"])},
            "bounding_box": {"bounding_box_mm": named["bounding_box_mm"]},
            "inertia": {"inertia_mm5": told["inertia"]} if "inertia" in told else {},
            "solids": {"solids_count": facts.solids_count, "shells_count": facts.shells_count},
            "faces": {"faces_count": facts.faces_count}, "is_valid": {"is_valid": facts.is_valid},
        }  # fmt: skip
        chosen: dict[str, Any] = {}
        for name in properties or every:
            chosen |= every[name]
        warnings = reply["warnings"]
        if facts.solids_count == 0:
            warnings.append(f"{input_file} has no solid ({facts.shells_count} shells): it encloses no volume")
        if not facts.is_valid:
            warnings.append(f"{input_file} is not a valid shape: its faces cross or do not meet")
        if material is not None and (density := find_material(material).density_kg_m3) is not None:
            chosen |= {"density_kg_m3": density, "mass_kg": figures(facts.volume_mm3 * density * 1e-9)}
        data = {"file": input_file, "source_unit": unit, "properties": chosen}
        size = " x ".join(f"{each:.6g}" for each in named["bounding_box_mm"]["size_mm"])
        return Answer(
            data, f"{input_file}: {facts.volume_mm3:.6g} mm3, {size} mm, {facts.solids_count} solids, "
            f"{len(reply['parts'])} parts.", tuple(warnings), f"freecad.generate_mesh with input_file {input_file}",
            programs={"FreeCAD": session.process.version},
        )  # fmt: skip

    @tool(
        effect=Effect.READ, capability="cad_analysis", title="Describe STEP file", needs=(FREECAD,),
        timeout_seconds=300, search_hint="list the parts of a STEP file with size and colour",
    )  # fmt: skip
    def describe_step_file(self, ctx: ToolContext, input_file: InputPath) -> Answer[Told]:
        """List the parts of a STEP file: label, volume, box, colour.

        Args:
            input_file: .step or .stp file.
        """
        session = self.workbench.apart("describe")
        reply, colours, unit = self._load(ctx, session, input_file)
        components = [
            {
                "label": each["product"], **measured(facts_of(each["facts"])),
                "color": rounded(colours.get(each["obj_id"])),
            }
            for each in reply["parts"]
        ]  # fmt: skip
        facts = facts_of(reply["after"])
        warnings = reply["warnings"]
        if not facts.solids_count:
            warnings.append(f"{input_file} has no solid ({facts.shells_count} shells): it encloses no volume")
        data = {"file": input_file, "source_unit": unit, "component_count": len(components), "components": components}
        data |= {name: value for name, value in measured(facts).items() if name != "faces_count"}
        return Answer(
            data, f"{input_file}: {len(components)} parts, {facts.solids_count} solids, {facts.volume_mm3:.6g} mm3, "
            f"{unit}.", tuple(warnings), f"freecad.import_step with file_path {input_file} loads it into a session",
            programs={"FreeCAD": session.process.version},
        )  # fmt: skip

    @tool(
        effect=Effect.PRODUCE, capability="cad_export", title="Export geometry", idempotent=True, needs=(FREECAD,),
        timeout_seconds=300, max_disk_mb=1024, search_hint="convert STEP to STL, OBJ, BREP by FreeCAD",
    )  # fmt: skip
    def export_geometry(
        self,
        ctx: ToolContext,
        input_file: InputPath,
        output_format: Literal["step", "stl", "obj", "brep"],
        output_path: OutputPath | None = None,
        deflection_mm: float | None = None,
        overwrite: bool = False,
    ) -> Answer[Told]:
        """Convert a STEP or BREP file, placements baked in.

        Args:
            input_file: The file.
            output_format: What to write.
            output_path: Default beside input_file.
            deflection_mm: How far triangles may lie off the surface; default 0.1 % of the diagonal.
            overwrite: Replace a file that exists with other content.
        """
        session = self.workbench.apart("export")
        reply, colours, _ = self._load(ctx, session, input_file)
        path = output_path or str(PurePosixPath(input_file).with_suffix(f".{output_format}"))
        if path == input_file:
            path = str(PurePosixPath(input_file).with_name(f"{PurePosixPath(input_file).stem}-baked.step"))
        facts = facts_of(reply["after"])
        triangles = None
        if output_format == "step":
            named = {each["label"]: colours.get(each["obj_id"]) for each in reply["parts"]}
            self._write_step(ctx, session, reply["obj_id"], path, {k: v for k, v in named.items() if v is not None})
        else:
            suffixes = (f".{output_format}", ".brp") if output_format == "brep" else (f".{output_format}",)
            if not path.lower().endswith(suffixes):
                raise InvalidArguments(
                    f"output_path: {path!r} must end in {suffixes[0]}", fields={"output_path": f"ends in {suffixes[0]}"}
                )
            told = session.ask(
                "write_shape", ctx.timeout_seconds, obj_id=reply["obj_id"], format=output_format,
                path=str(ctx.output_file(path)), deflection=deflection_mm or facts.diagonal_mm / 1000,
            )  # fmt: skip
            triangles = told["triangles"]
        size = ctx.output_file(path).stat().st_size
        data: dict[str, Any] = {"output_file": path, "file_size_bytes": size, "format": output_format}
        if triangles is not None:
            data["triangles_count"] = triangles
        more = f", {triangles} triangles" if triangles is not None else ""
        return Answer(
            data, f"{path}: {size} bytes{more}.", files=(OutputFile(path, MEDIA_TYPES[output_format], "geometry"),),
            programs={"FreeCAD": session.process.version},
        )  # fmt: skip


def checked_sizes(shape: str, given: dict[str, float]) -> dict[str, float]:
    """Return a shape's dimensions in mm with defaults; names stand without their unit too.

    Raises:
        InvalidArguments: a dimension is missing, unknown, not positive, or does not fit the others.
    """
    known = SIZES[shape]
    short = {name.removesuffix("_mm"): name for name in known}
    found = {short.get(name, name): value for name, value in given.items()}
    if shape == "cylinder" and "diameter" in found:
        found["radius_mm"] = found.pop("diameter") / 2
    wrong = {f"parameters.{name}": f"a {shape} has {', '.join(known)}" for name in found if name not in known}
    wrong |= {f"parameters.{n}": "is required" for n, default in known.items() if default is None and n not in found}
    wrong |= {
        f"parameters.{name}": f"{value:g} must be above 0"
        for name, value in found.items()
        if name in known and (value < 0 or (value == 0 and known[name] is None))
    }
    sizes = {name: float(found.get(name, default or 0.0)) for name, default in known.items()}
    if not wrong:
        wrong = {f"parameters.{name}": text for name, text in _misfits(shape, sizes).items()}
    if wrong:
        raise InvalidArguments(
            f"create_parametric: {'; '.join(f'{name}: {text}' for name, text in wrong.items())}", fields=wrong
        )
    return sizes


def _misfits(shape: str, sizes: dict[str, float]) -> dict[str, str]:
    wrong: dict[str, str] = {}
    if shape == "bracket":
        room = min(sizes["width_mm"], sizes["height_mm"]) - sizes["thickness_mm"]
        if room <= 0:
            wrong["thickness_mm"] = f"{sizes['thickness_mm']:g} must be below width_mm and height_mm"
        elif sizes["fillet_radius_mm"] >= room:
            wrong["fillet_radius_mm"] = f"{sizes['fillet_radius_mm']:g} must be below {room:g}"
        if sizes["hole_diameter_mm"] >= min(sizes["width_mm"] - sizes["thickness_mm"], sizes["length_mm"]):
            wrong["hole_diameter_mm"] = "must be smaller than the base leg"
    elif shape == "plate" and sizes["hole_diameter_mm"] > 0:
        smallest = min(sizes["width_mm"], sizes["length_mm"])
        if not sizes["hole_diameter_mm"] / 2 < sizes["hole_margin_mm"] < smallest / 2 - sizes["hole_diameter_mm"] / 2:
            wrong["hole_margin_mm"] = (
                f"{sizes['hole_margin_mm']:g} must lie between hole_diameter_mm / 2 and "
                f"{smallest / 2 - sizes['hole_diameter_mm'] / 2:g}"
            )
    elif shape == "enclosure":
        smallest = min(sizes["width_mm"] / 2, sizes["length_mm"] / 2, sizes["height_mm"])
        if sizes["wall_thickness_mm"] >= smallest:
            wrong["wall_thickness_mm"] = f"{sizes['wall_thickness_mm']:g} must be below {smallest:g}"
    elif shape == "cylinder" and sizes["bore_diameter_mm"] >= 2 * sizes["radius_mm"]:
        wrong["bore_diameter_mm"] = f"must be below {2 * sizes['radius_mm']:g}"
    return wrong
