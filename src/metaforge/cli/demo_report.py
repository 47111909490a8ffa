"""What `metaforge demo` shows a person: every number as the tools gave it, with its unit."""

from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Console

from metaforge.cli.demo import REQUESTS, Demo
from metaforge.cli.screen import command_name, console

LABEL = 26


def show(demo: Demo) -> None:
    """Print the report and a last line that says how it went."""
    out = console()
    name, version = demo.server.get("name", "server"), demo.server.get("version", "")
    if "start" in demo.seconds:
        out.print(f"{name} {version} started over stdio, {_took(demo.seconds['start'])}")
    sections = {"part": part_lines, "export": export_lines, "stress": stress_lines}
    for request in REQUESTS:
        result = demo.results.get(request.key)
        if result is None:
            break
        out.print(f"\n> {request.prompt}", style="bold cyan")
        out.print(f"  {request.tool}, {_took(demo.seconds[request.key])}", style="dim")
        for label, text in sections[request.key](result):
            out.print(f"  {label:<{LABEL}}{text}")
        for warning in result.get("warnings", ()):
            out.print(f"  Warning: {warning}", style="yellow")
    if demo.files:
        out.print("\nFiles", style="bold")
        for file in demo.files:
            out.print(f"  {file.get('role') or 'file':<10}{file['absolute_path']}")
    _end(demo, out)


def _end(demo: Demo, out: Console) -> None:
    if not demo.problem:
        glb = next((file["path"] for file in demo.files if file["path"].endswith(".glb")), "FILE")
        out.print(f"\nLook at it: {command_name()} open {glb}")
        out.print(f"Done in {_took(demo.seconds['total'])}: part, mesh, stresses and pictures.", style="bold green")
        return
    titles = {request.key: request.title for request in REQUESTS}
    out.print(f"\n{titles.get(demo.failed_step, 'Starting the server')} failed:", style="bold red")
    out.print(demo.problem)
    for entry in demo.unavailable:
        if entry.get("install"):
            out.print(f"{entry['adapterId']}: {entry['reason']}. To add it: {entry['install']}", style="yellow")
    out.print(f"\nThe demo did not finish; {command_name()} doctor says what is missing.", style="bold red")


Lines = Iterable[tuple[str, str]]


def part_lines(result: dict[str, Any]) -> Lines:
    """Volume, area and extent of the part."""
    box = result["bounding_box_mm"]
    yield "volume", f"{_n(result['volume_mm3'])} mm³"
    yield "surface area", f"{_n(result['surface_area_mm2'])} mm²"
    yield "bounding box", f"{_by(box['size_mm'])} mm, from {_point(box['min_mm'])} to {_point(box['max_mm'])} mm"
    if "mass_kg" in result:
        yield "mass", f"{_n(result['mass_kg'])} kg ({result.get('material', '')})"


def export_lines(result: dict[str, Any]) -> Lines:
    """What was exported."""
    size = f"{result['file_size_bytes']:,} bytes"
    triangles = f", {result['triangles_count']:,} triangles" if "triangles_count" in result else ""
    yield f"{result['format'].upper()} file", f"{size}{triangles}"


def stress_lines(result: dict[str, Any]) -> Lines:
    """Mesh, loads as understood, stresses, displacement and balance."""
    mesh = result["mesh"]
    types = ", ".join(f"{count:,} {kind}" for kind, count in mesh["element_types"].items())
    size = f", size {_n(mesh['element_size_mm'])} mm" if "element_size_mm" in mesh else ""
    yield "mesh", f"{types}{size}; {result['mesh_nodes']:,} nodes"
    yield (
        "worst element",
        f"scaled Jacobian {_n(mesh['min_scaled_jacobian_ratio'])}, aspect ratio {_n(mesh['max_aspect_ratio'])}",
    )
    for name, material in result.get("materials", {}).items():
        yield "material", f"{material.get('name', name)}{_stiffness(material)}"
    for support in result.get("supports", ()):
        yield "support", f"{support['place']} face, held in {', '.join(support['held'])}"
    for load in result.get("loads", ()):
        yield "load", f"{load['place']} face, {_point(load['total_n'])} N in all, over {_area(load)}"
    if frame := result.get("coordinate_frame"):
        yield "directions", f"in {frame}"
    yield from _peak_lines(result)
    at = f" at {_point(result['max_displacement_at_mm'])} mm" if "max_displacement_at_mm" in result else ""
    yield "max displacement", f"{_n(result['max_displacement_mm'])} mm{at}"
    yield (
        "reactions against loads",
        f"{_point(result['reactions_n'])} N against {_point(result['applied_n'])} N, "
        f"off by {100 * result['balance_error_ratio']:.1g} %",
    )
    yield from _safety_lines(result)
    times = [f"solver {_took(result['solver_time_seconds'])}"]
    if "meshing_time_seconds" in result:
        times.insert(0, f"meshing {_took(result['meshing_time_seconds'])}")
    yield "time", ", ".join(times)


def _peak_lines(result: dict[str, Any]) -> Lines:
    peak = result["peak"]
    yield "max von Mises stress", f"{_n(peak['von_mises_mpa'])} MPa at {_point(peak['at_mm'])} mm"
    if not peak["possibly_singular"]:
        yield "  singular spot", "no: it lies away from supports, re-entrant corners and point loads"
        return
    yield "  singular spot", f"possibly: {peak.get('reason', '')}"
    if "outside_mpa" in peak:
        where = f" at {_point(peak['outside_at_mm'])} mm" if "outside_at_mm" in peak else ""
        yield "  away from it", f"{_n(peak['outside_mpa'])} MPa{where}, farther than {_n(peak['zone_mm'])} mm"


def _safety_lines(result: dict[str, Any]) -> Lines:
    if "factor_of_safety" not in result:
        return
    outside = result.get("factor_of_safety_outside_zone")
    away = f"; {_n(outside)} away from the spot" if outside is not None else ""
    yield "safety against yield", f"{_n(result['factor_of_safety'])}{away}"


def _stiffness(material: dict[str, Any]) -> str:
    if "youngs_modulus_mpa" not in material:
        return ""
    ratio = f", Poisson's ratio {_n(material['poissons_ratio'])}" if "poissons_ratio" in material else ""
    return f": Young's modulus {_n(material['youngs_modulus_mpa'])} MPa{ratio}"


def _area(load: dict[str, Any]) -> str:
    return f"{_n(load['area_mm2'])} mm²" if "area_mm2" in load else "its nodes"


def _n(value: float) -> str:
    """Return four significant digits, or the whole number where there are more before the point."""
    return f"{value:,.0f}" if abs(value) >= 1e4 else f"{value:.4g}"


def _by(values: Sequence[float]) -> str:
    return " x ".join(_n(value) for value in values)


def _point(values: Sequence[float]) -> str:
    return "(" + ", ".join(_n(value) for value in values) + ")"


def _took(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.0f} s"
