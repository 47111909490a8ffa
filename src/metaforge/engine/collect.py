"""A call's files: judged, stored by content, and placed in the workspace, all of them or none."""

import re
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from metaforge.core.errors import FailureMode, OverLimit, ToolError
from metaforge.core.ids import sha256_file
from metaforge.engine.placing import occupied, write_all
from metaforge.store.blobs import Blobs
from metaforge.tools.context import Artefact, ImageContent
from metaforge.tools.manifest import Tool

PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
MAX_PICTURE_BYTES = 2 << 20
UNNAMED = PurePosixPath("out/script-.step")
"""Where the files of a script lie that was given no output path; a digest follows the dash."""

_MIB = 1 << 20
_LONGEST = 1000
_SHOWN = 200
_MEDIA_TYPE = re.compile(r"[\w.+-]{1,80}/[\w.+-]{1,80}", re.ASCII)
_ROLE = re.compile(r"[\w -]{0,40}", re.ASCII)
_INSIDE = ("/output/", "/workspace/")


@dataclass(frozen=True)
class Found:
    """A file below an output folder that may be collected."""

    path: PurePosixPath
    source: Path
    size_bytes: int
    media_type: str
    role: str


@dataclass(frozen=True)
class Standing:
    """What was at the place that a call names for its output when it began."""

    path: PurePosixPath
    state: tuple[int, ...] | None


@dataclass(frozen=True)
class Collection:
    """Everything one answer names, judged and not yet stored."""

    files: tuple[Found, ...] = ()
    images: tuple[ImageContent, ...] = ()

    @property
    def size_bytes(self) -> int:
        return sum(file.size_bytes for file in self.files)


class Collector:
    """Places files in one workspace.

    Args:
        workspace: its root.
        blobs: where contents are kept.
    """

    def __init__(self, workspace: Path, blobs: Blobs) -> None:
        self._workspace = workspace
        self._blobs = blobs

    def examine(
        self, answer: dict[str, Any], output: Path, *, max_disk_mb: int, beside: PurePosixPath | None = None
    ) -> Collection:
        """Judge every file and picture that an answer names.

        Args:
            answer: the `result` of `tool/call`.
            output: the folder the tool wrote to.
            max_disk_mb: what all of it may take, in MiB.
            beside: the output path that was asked for, or `UNNAMED`, where a caller's own code may have written the
                answer: files lie in its folder and have its name with any ending, or are refused.

        Raises:
            ToolError: a file is missing, is no regular file of this folder, or a picture is no PNG.
            OverLimit: too much was written.
        """
        root = output.resolve()
        files: dict[PurePosixPath, Found] = {}
        for entry in _named_files(answer):
            found = _find(root, entry.get("path"), str(entry.get("media_type") or ""), str(entry.get("role") or ""))
            files[found.path] = found
        images = []
        for entry in answer.get("pictures") or ():
            found = _find(root, entry.get("path"), "image/png", "picture")
            images.append(ImageContent(_png(found), str(entry.get("caption") or "")))
            files.setdefault(found.path, found)
        if beside is not None:
            _keep_beside(beside, files)
        collection = Collection(tuple(files.values()), tuple(images))
        if collection.size_bytes > max_disk_mb * _MIB:
            raise OverLimit(
                f"The tool wrote {collection.size_bytes / _MIB:.0f} MB, more than the {max_disk_mb} MB it may write",
                kind="disk_limit",
                fix="ask for less: a coarser mesh, fewer saved steps",
                failure_mode=FailureMode.LIMIT,
                limit_mb=max_disk_mb,
            )
        return collection

    def standing(self, path: PurePosixPath) -> Standing:
        """Return what is at a place of the workspace now, for `place` to tell later whether it is still that."""
        return Standing(path, _state_of(self._workspace / path))

    def place(self, files: Iterable[Found], *, overwrite: Standing | None) -> tuple[Artefact, ...]:
        """Store every file and put it at its place in the workspace; nothing is placed unless all can be.

        Args:
            overwrite: what was there when the call began, whose files with other content may be replaced; None where
                nothing may. What somebody put there since is kept.

        Raises:
            ToolError: kind `output_exists` when a file is there with other content, `output_changed` when one was put
                there meanwhile; `output_unwritable`.
        """
        root = self._workspace.resolve()
        artefacts: list[Artefact] = []
        wanted: list[tuple[Artefact, Path]] = []
        for file in files:
            sha256 = self._blobs.put_file(file.source, durable=False)
            artefact = self._artefact(root, file, sha256)
            if self._must_write(root, artefact, overwrite=overwrite):
                wanted.append((artefact, self._blobs.path_of(sha256)))
            artefacts.append(artefact)
        if wanted:
            write_all(root, wanted, overwrite=overwrite is not None)
        return tuple(artefacts)

    def keep(self, files: Iterable[Found]) -> tuple[Artefact, ...]:
        """Store every file by its content and place none: what a tool that only reads has to show."""
        kept = []
        for file in files:
            sha256 = self._blobs.put_file(file.source, durable=False)
            stored = str(self._blobs.path_of(sha256))
            kept.append(Artefact(file.path.name, stored, sha256, file.size_bytes, file.media_type, file.role))
        return tuple(kept)

    def _artefact(self, root: Path, file: Found, sha256: str) -> Artefact:
        target = root / file.path
        return Artefact(
            path=str(file.path), absolute_path=str(target), sha256=sha256,
            size_bytes=file.size_bytes, media_type=file.media_type, role=file.role,
        )  # fmt: skip

    def _must_write(self, root: Path, artefact: Artefact, *, overwrite: Standing | None) -> bool:
        target = Path(artefact.absolute_path)
        parent = target.parent.resolve()
        if not parent.is_relative_to(root):
            raise ToolError(
                f"{artefact.path} would lie outside the workspace, at {parent}",
                kind="output_outside", where=artefact.path, fix="name an output path without links that lead out",
            )  # fmt: skip
        try:
            there = target.lstat()
        except FileNotFoundError:
            return True
        except NotADirectoryError:
            raise _not_a_file(artefact, "a folder above it is a file") from None
        if stat.S_ISDIR(there.st_mode):
            raise _not_a_file(artefact, "it is a folder")
        if (
            stat.S_ISREG(there.st_mode)
            and there.st_size == artefact.size_bytes
            and sha256_file(target) == artefact.sha256
        ):
            return False
        if overwrite is None:
            raise occupied(artefact)
        if artefact.path == str(overwrite.path) and _state_of(target) != overwrite.state:
            raise ToolError(
                f"{artefact.path} was changed while the tool worked, and was left as it is; nothing was placed in the "
                "workspace",
                kind="output_changed", where=artefact.path,
                fix="look at what is there now, then call again or choose another output path", path=artefact.path,
            )  # fmt: skip
        return True


def asked_for(tool: Tool, arguments: dict[str, Any]) -> PurePosixPath:
    """Return the output path that a call names, or the one place where an unnamed script's files may lie."""
    for name, about in tool.input_schema.get("properties", {}).items():
        if about.get("format") == "output-path" and isinstance(arguments.get(name), str):
            return PurePosixPath(arguments[name])
    return UNNAMED


def _state_of(path: Path) -> tuple[int, ...] | None:
    """Return what changes whenever a file is written or replaced; None where there is none."""
    try:
        there = path.lstat()
    except OSError:
        return None
    return there.st_dev, there.st_ino, there.st_size, there.st_mtime_ns, there.st_ctime_ns


def _named_files(answer: dict[str, Any]) -> list[dict[str, Any]]:
    files = answer.get("files")
    if files is None:
        files = [{"path": path} for path in answer.get("output_files") or ()]
    return list(files)


def _keep_beside(wanted: PurePosixPath, files: Iterable[PurePosixPath]) -> None:
    for path in files:
        begins = wanted.stem if wanted is UNNAMED else f"{wanted.stem}."
        if path.parent != wanted.parent or not path.name.startswith(begins):
            raise _broken(str(path), f"the caller asked for {wanted}, and code of a caller may write nothing else")


def _find(root: Path, name: object, media_type: str, role: str) -> Found:
    text = str(name or "")
    for prefix in _INSIDE:
        text = text.removeprefix(prefix)
    path = PurePosixPath(text)
    if not text or path.is_absolute() or ".." in path.parts or not text.isprintable() or len(text) > _LONGEST:
        raise _broken(text, "its path is not relative to the output folder, or no name for a file")
    if any(part.startswith(".") for part in path.parts):
        raise _broken(text, "hidden files and folders are never written")
    source = root / path
    try:
        about = source.lstat()
        real = source.resolve(strict=True)
    except (FileNotFoundError, NotADirectoryError):
        raise _broken(text, "the tool said it wrote it, and it is not there") from None
    except OSError as fault:
        raise _broken(text, f"it cannot be read: {fault.strerror or fault}") from None
    if real != source or not stat.S_ISREG(about.st_mode):
        raise _broken(text, "it is a link or no regular file")
    media_type = media_type if _MEDIA_TYPE.fullmatch(media_type) else "application/octet-stream"
    return Found(path, source, about.st_size, media_type, role if _ROLE.fullmatch(role) else "")


def _png(found: Found) -> bytes:
    if found.size_bytes > MAX_PICTURE_BYTES:
        raise _broken(
            str(found.path), f"the picture has {found.size_bytes / _MIB:.1f} MB, more than {MAX_PICTURE_BYTES // _MIB}"
        )
    content = found.source.read_bytes()
    if not content.startswith(PNG_SIGNATURE):
        raise _broken(str(found.path), "the picture is no PNG")
    return content


def _broken(path: str, reason: str) -> ToolError:
    return ToolError(
        f"The output file {path[:_SHOWN] or '(unnamed)'} is refused: {reason}. Nothing was placed in the workspace",
        kind="output_invalid", where=path[:_SHOWN], fix="this is a fault of the adapter: report it with the call id",
        failure_mode=FailureMode.ENVIRONMENT,
    )  # fmt: skip


def _not_a_file(artefact: Artefact, reason: str) -> ToolError:
    return ToolError(
        f"{artefact.path} cannot be written: {reason}",
        kind="output_unwritable", where=artefact.path, fix="choose another output path",
    )  # fmt: skip
