"""Geometry on its way into the record: where its bytes come from, what is measured of them, what is kept."""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from metaforge.core.errors import ToolError

MAX_BYTES = 256 << 20
FORMATS = {"step": "model/step", "brep": "model/vnd.brep", "stl": "model/stl"}
MEASURABLE = ("step", "brep")
EXPECTED = ("volume_mm3", "surface_area_mm2", "center_of_mass_mm", "bounding_box_mm", "solids_count", "is_valid")
_SUFFIXES = {".step": "step", ".stp": "step", ".brep": "brep", ".brp": "brep", ".stl": "stl"}
_LEFT_OUT = ("faces", "parts", "parts_count", "distinct_parts_count")


@dataclass(frozen=True)
class Measured:
    """What a kernel measured of exactly the bytes that are kept.

    `properties` are as cadquery.get_properties tells them. `problem` says why there are none. `pictures` are digests of
    drawings that were asked for.
    """

    properties: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    programs: Mapping[str, str] = field(default_factory=dict)
    problem: str = ""
    pictures: tuple[str, ...] = ()

    @property
    def missing(self) -> list[str]:
        """The properties that a committed part should have and that were not measured."""
        return [name for name in EXPECTED if self.properties.get(name) is None]

    @property
    def is_assembly(self) -> bool:
        return int(self.properties.get("parts_count") or 0) > 1


def missing_geometry(session_id: str, obj_id: str) -> ToolError:
    """Return the error of a commit that names no geometry, listing exactly the absent fields."""
    absent = [name for name, value in (("session_id", session_id), ("obj_id", obj_id)) if not value]
    absent.append("step_base64")
    if session_id and obj_id:
        fix = (
            f"Object {obj_id} of session {session_id} has no kept export: call export_model for it first, or give "
            "file_path of a file in the workspace"
        )
    elif obj_id:
        fix = "obj_id needs the session_id of the session it lives in; or give file_path of a file in the workspace"
    else:
        fix = (
            "Give session_id and obj_id of an exported model, or file_path of a STEP file in the workspace (what "
            "cadquery tools return as cad_file), or step_base64"
        )
    return ToolError(f"Missing: {', '.join(absent)}", kind="missing_geometry", fix=fix, missing=absent)


def decode_step(text: str) -> bytes:
    """Return the bytes of a base64 text.

    Raises:
        ToolError: `bad_base64`.
    """
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError) as fault:
        raise ToolError(
            f"step_base64 is no base64 ({fault}; {len(text)} characters)", kind="bad_base64", where="step_base64",
            fix="Do not carry files as text: give file_path, or session_id and obj_id",
        ) from None  # fmt: skip


def read_file(workspace: Path, path: str) -> bytes:
    """Return a workspace file that the server has already judged.

    Raises:
        ToolError: `unreadable_file`, `too_large`.
    """
    target = (workspace / path).resolve()
    try:
        if not target.is_relative_to(workspace) or not target.is_file():
            raise ToolError(f"{path} is no file in the workspace {workspace}", kind="unreadable_file", where=path)
        if target.stat().st_size > MAX_BYTES:
            raise _too_large(target.stat().st_size)
        return target.read_bytes()
    except OSError as fault:
        raise ToolError(
            f"{path} cannot be read: {fault.strerror or fault}", kind="unreadable_file", where=path
        ) from None


def check_content(content: bytes, format: str) -> None:
    """Refuse what is no file of its format.

    Raises:
        ToolError: `empty_file`, `too_large`, `not_step`.
    """
    if not content:
        raise ToolError("The geometry has 0 bytes", kind="empty_file", fix="Export it again")
    if len(content) > MAX_BYTES:
        raise _too_large(len(content))
    if format == "step" and not content.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"ISO-10303-21;"):
        raise ToolError(
            f"The geometry is no STEP file: its {len(content)} bytes begin with {content[:24]!r}, not ISO-10303-21;",
            kind="not_step", fix="Give a STEP file, or its format: brep, stl",
        )  # fmt: skip


def format_of(path: str, given: str | None) -> str:
    """Return the format: as given, else as the file's name says, else step."""
    return given or _SUFFIXES.get(PurePosixPath(path).suffix.lower(), "step")


def body_of(
    *,
    content_hash: str,
    size_bytes: int,
    format: str,
    measured: Measured,
    said: Mapping[str, Any],
    origin: Mapping[str, Any],
) -> dict[str, Any]:
    """Return a geometry revision's content: the file by digest, what was measured of it, what its author said."""
    kept = {name: value for name, value in measured.properties.items() if name not in _LEFT_OUT and value is not None}
    body: dict[str, Any] = {
        "content_hash": content_hash, "size_bytes": size_bytes, "format": format, "media_type": FORMATS[format],
        "measured": kept, **said, "origin": dict(origin),
    }  # fmt: skip
    if parts := measured.properties.get("parts"):
        body["assembly"] = {"parts": parts}
    if measured.missing:
        body["measured_properties_missing"] = measured.missing
    if measured.programs:
        body["measured_by"] = dict(measured.programs)
    return body


def disagreements(said: Mapping[str, Any], measured: Mapping[str, Any]) -> list[str]:
    """Say where an author's numbers differ by more than 1 % from the measured ones; the measured ones count."""
    from metaforge.twin.expressions import Undetermined
    from metaforge.twin.metrics import Metrics

    told = []
    kernel = Metrics(measured, "measured")
    for name, value in said.items():
        if isinstance(value, bool) or not isinstance(value, int | float):
            continue
        try:
            found = kernel.find(name)
        except Undetermined:
            continue
        if found is not None and abs(found.number - value) > 0.01 * max(abs(found.number), abs(value)):
            told.append(f"{name} was given as {value:g} and measured as {found.number:g}: the measured value counts")
    return told


def staged_name(ref: str, content_hash: str, format: str) -> str:
    """Return the workspace path of a revision's file: the same for the same content, whoever stages it."""
    return f"staged/{ref.replace('@', '-r')}-{content_hash[:8]}.{'step' if format == 'step' else format}"


def _too_large(size_bytes: int) -> ToolError:
    return ToolError(
        f"The geometry has {size_bytes} bytes, at most {MAX_BYTES} are kept", kind="too_large",
        fix="Leave out what is not part of the design, such as threads of bought screws",
    )  # fmt: skip
