"""Follow a schematic's sheets before KiCad does: a sheet that is missing, broken or inside itself is empty to it."""

from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from metaforge.core.errors import FailureMode, ToolError
from metaforge.formats.kicad_schematic import NEWEST_VERSION, NotASchematic, Schematic, first_words, read_schematic
from metaforge.formats.kicad_sexpr import BadExpression
from metaforge.tools.paths import find_below

MAX_FILE_BYTES = 64_000_000
MAX_SHEETS = 500
OLD_FORMAT = "EESchema Schematic File"


class BadSchematic(ToolError):
    """The schematic cannot be checked."""

    default_kind = "bad_schematic"


@dataclass
class Hierarchy:
    """A schematic with all its sheets.

    Attributes:
        files: workspace path -> what is in it; the root first.
        instances_count: sheets as they are used, the root included.
        warnings: what was read with doubts.
    """

    files: dict[str, Schematic] = field(default_factory=dict)
    instances_count: int = 0
    warnings: list[str] = field(default_factory=list)

    def places(self) -> dict[str, tuple[float, float]]:
        """Return where the items of all sheets are, mm, by uuid."""
        return {uuid: place for file in self.files.values() for uuid, place in file.places.items()}


def decode(raw: bytes, name: str) -> tuple[str, str]:
    """Return a file's text, and a warning where it is not UTF-8."""
    try:
        return raw.decode("utf-8-sig"), ""
    except UnicodeDecodeError as fault:
        line = raw.count(b"\n", 0, fault.start) + 1
        return raw.decode("latin-1"), (
            f"{name} is not UTF-8 (line {line}): some of its text will look wrong; save it again in KiCad"
        )


def read_hierarchy(root: Path, path: str) -> Hierarchy:
    """Read a schematic and every sheet below it.

    Args:
        root: the workspace.
        path: the root schematic, relative to it.

    Raises:
        BadSchematic: a file is missing, outside the workspace, damaged, of a newer KiCad, or inside itself.
    """
    found = Hierarchy()
    _follow(root.resolve(), PurePosixPath(path), (), found)
    return found


def _follow(root: Path, path: PurePosixPath, above: tuple[str, ...], found: Hierarchy) -> None:
    inside = str(path)
    if inside in above:
        raise BadSchematic(
            f"The sheet {inside} is inside itself: {' > '.join([*above[above.index(inside) :], inside])}. KiCad would "
            "check the rest and report no violations",
            kind="sheet_inside_itself", where=above[-1], fix="let that sheet symbol name another file",
            failure_mode=FailureMode.DESIGN,
        )  # fmt: skip
    found.instances_count += 1
    if found.instances_count > MAX_SHEETS:
        raise BadSchematic(f"The schematic uses more than {MAX_SHEETS} sheets", where=inside, fix="split the project",
                           kind="too_many_sheets", failure_mode=FailureMode.LIMIT)  # fmt: skip
    if inside not in found.files:
        found.files[inside] = _read(root / path, inside, found)
    for sheet in found.files[inside].sheets:
        _follow(root, _target(root, path, sheet.file, sheet.name), (*above, inside), found)


def _target(root: Path, parent: PurePosixPath, file: str, name: str) -> PurePosixPath:
    """Return the workspace path of a sub-sheet's file."""
    shown = f"Sheet {name!r} of {parent}"
    if not file:
        raise BadSchematic(f"{shown} names no file", kind="missing_sheet", where=str(parent),
                           fix="give the sheet symbol a file")  # fmt: skip
    if "${" in file:
        file = file.replace("${KIPRJMOD}", ".")
    target, is_file = find_below(root, root / parent.parent / file)
    if target is None:
        raise BadSchematic(
            f"{shown} names {file!r}, which lies outside the workspace; nothing was checked",
            kind="path_outside_workspace", where=str(parent), fix="copy the sheet into the workspace and name it there",
        )  # fmt: skip
    if not is_file:
        raise BadSchematic(
            f"{shown} names {file!r}, which does not exist. KiCad would take the sheet for empty and report no "
            "violations",
            kind="missing_sheet", where=str(parent), fix="put the file beside the schematic, or correct the name",
        )  # fmt: skip
    return PurePosixPath(target.relative_to(root).as_posix())


def _read(path: Path, inside: str, found: Hierarchy) -> Schematic:
    size = path.stat().st_size
    if size > MAX_FILE_BYTES:
        raise BadSchematic(f"{inside} is larger than {MAX_FILE_BYTES / 1e6:.0f} MB", kind="file_too_large",
                           where=inside, failure_mode=FailureMode.LIMIT)  # fmt: skip
    text, warning = decode(path.read_bytes(), inside)
    if warning:
        found.warnings.append(warning)
    if text.startswith(OLD_FORMAT):
        raise BadSchematic(
            f"{inside} is a schematic of KiCad 5 or older", kind="old_format", where=inside,
            fix="open it in KiCad 9 and save it: that writes a .kicad_sch",
        )  # fmt: skip
    try:
        schematic = read_schematic(text)
    except BadExpression as fault:
        begins = f"; it begins with {first_words(text)!r}" if not text.lstrip().startswith("(") else ""
        raise BadSchematic(
            f"{inside} cannot be loaded: {fault.why}{begins}", where=f"{inside}, line {fault.line}, column "
            f"{fault.column}", fix="restore the file from a backup or from version control",
        ) from None  # fmt: skip
    except NotASchematic as fault:
        raise BadSchematic(f"{inside} cannot be loaded: {fault}", where=inside, fix="name a .kicad_sch file") from None
    if schematic.version > NEWEST_VERSION:
        raise BadSchematic(
            f"{inside} was written by a newer KiCad (format {schematic.version}; KiCad 9 reads up to {NEWEST_VERSION})",
            kind="newer_format", where=inside, fix="save it in KiCad 9, or install the newer KiCad",
        )  # fmt: skip
    return schematic
