"""Judge every path an argument names: inside the workspace or refused, before anything runs."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from metaforge.core.ids import sha256_file
from metaforge.tools.context import Artefact
from metaforge.tools.manifest import Tool

_INPUT, _OUTPUT, _FOLDER = "input-path", "output-path", "output-folder"
_MOUNT = "/workspace"
_NEAREST = 3
_INLINE_BYTES = 8 << 20
"""Larger inputs take longer to digest than other calls should wait."""
_LONGEST_NAME_BYTES = 200
"""File systems take 255; what belongs to a file gets its name and an ending of its own."""
_LONGEST_BYTES = 1000
_DEEPEST = 64

Place = tuple[str, ...]
"""Where a path sits in the arguments: property names, `*` for every item of an array or value of an object."""


class BadPath(ValueError):
    """Says what is wrong with one path."""


class PathJudge:
    """Knows which arguments of a tool are paths and makes them safe and relative to one workspace."""

    def __init__(self, workspace: Path) -> None:
        self.workspace = workspace
        self._places: dict[str, list[tuple[Place, str]]] = {}

    def judge(
        self, tool: Tool, arguments: dict[str, Any]
    ) -> tuple[dict[str, Any], tuple[Artefact, ...], dict[str, str]]:
        """Return arguments with safe relative paths, the input files with digests, and what is wrong by field."""
        places = self._places.get(tool.id)
        if places is None:
            places = self._places[tool.id] = list(_places(tool.input_schema, tool.input_schema, ()))
        if not places:
            return arguments, (), {}
        inputs: dict[str, Artefact] = {}
        problems: dict[str, str] = {}

        def judge_one(text: str, where: str, kind: str) -> str:
            try:
                relative, target = self.resolve(text)
                if kind == _INPUT:
                    inputs[relative] = self._read(text, relative, target)
                else:
                    _refuse_strange(relative)
                    _writable(relative, target, is_folder=kind == _FOLDER)
            except BadPath as fault:
                problems[where] = str(fault)
                return text
            return relative

        changed = arguments
        for place, kind in places:
            changed = _map(changed, place, "", partial(judge_one, kind=kind))
        return changed, tuple(inputs.values()), problems

    def outputs(self, tool: Tool, arguments: dict[str, Any]) -> tuple[str, ...]:
        """Return the paths that arguments name as output; they were judged before."""
        found: list[str] = []

        def note(text: str, where: str) -> str:
            found.append(text)
            return text

        for place, kind in _places(tool.input_schema, tool.input_schema, ()):
            if kind == _OUTPUT:
                _map(arguments, place, "", note)
        return tuple(dict.fromkeys(found))

    def resolve(self, text: str) -> tuple[str, Path]:
        """Return (path relative to the workspace, where it really lies).

        A leading `/workspace/` means the workspace root. Symbolic links are followed, and must end inside.

        Raises:
            BadPath: outside the workspace, or no path at all.
        """
        if not text.strip() or "\0" in text:
            raise BadPath(f"{text!r} is not a path; give one relative to the workspace {self.workspace}")
        if (text == _MOUNT or text.startswith(_MOUNT + "/")) and not self._is_own(text):
            text = text[len(_MOUNT) :].lstrip("/") or "."
        _refuse_too_long(text)
        try:
            target = (self.workspace / text).resolve()
        except (OSError, RuntimeError) as fault:
            raise BadPath(f"{text!r} cannot be followed: {fault}") from None
        if not target.is_relative_to(self.workspace):
            raise BadPath(
                f"{text!r} lies outside the workspace {self.workspace}; "
                "give a path relative to it, such as out/part.step"
            )
        return target.relative_to(self.workspace).as_posix(), target

    def _is_own(self, text: str) -> bool:
        """Whether this is the absolute path of something in a workspace that itself lies below /workspace."""
        return self.workspace.is_relative_to(_MOUNT) and Path(text).is_relative_to(self.workspace)

    def _read(self, text: str, relative: str, target: Path) -> Artefact:
        if not target.exists():
            raise BadPath(f"{text!r} does not exist in the workspace {self.workspace}{self._nearest(target)}")
        if target.is_dir():
            raise BadPath(f"{text!r} is a folder, a file is needed")
        if not target.is_file():
            raise BadPath(f"{text!r} is not a regular file")
        try:
            size = target.stat().st_size
            digest = sha256_file(target) if size <= _INLINE_BYTES else ""
        except OSError as fault:
            raise BadPath(f"{text!r} cannot be read: {fault.strerror or fault}") from None
        return Artefact(relative, str(target), digest, size, "", "input")

    def _nearest(self, target: Path) -> str:
        """Name files of the same kind, nearest name first: the next call is then right."""
        import difflib

        same_kind = [
            path.relative_to(self.workspace).as_posix()
            for path in _bounded_walk(self.workspace)
            if path.suffix.lower() == target.suffix.lower()
        ]
        wanted = target.relative_to(self.workspace).as_posix()
        close = difflib.get_close_matches(wanted, same_kind, n=_NEAREST, cutoff=0.3) or same_kind[:_NEAREST]
        return f"; there is {', '.join(close)}" if close else ""


async def digest_large(inputs: tuple[Artefact, ...]) -> tuple[Artefact, ...]:
    """Return input files with the digests that `judge` left out, made beside the event loop.

    Raises:
        BadPath: one cannot be read.
    """
    found = []
    for each in inputs:
        if not each.sha256:
            try:
                digest = await asyncio.to_thread(sha256_file, Path(each.absolute_path))
            except OSError as fault:
                raise BadPath(f"{each.path!r} cannot be read: {fault.strerror or fault}") from None
            each = replace(each, sha256=digest)
        found.append(each)
    return tuple(found)


def _refuse_too_long(text: str) -> None:
    parts = text.split("/")
    longest = max(len(part.encode("utf-8", "replace")) for part in parts)
    size = len(text.encode("utf-8", "replace"))
    if longest > _LONGEST_NAME_BYTES or size > _LONGEST_BYTES or len(parts) > _DEEPEST:
        raise BadPath(
            f"{text[:60]!r}... is too long a path: {size} bytes, {len(parts)} levels, longest name {longest} bytes; "
            f"the most are {_LONGEST_BYTES}, {_DEEPEST} and {_LONGEST_NAME_BYTES}"
        )


def _bounded_walk(root: Path, limit: int = 2000) -> Iterator[Path]:
    """Yield files of a tree, hidden folders left out, at most `limit` entries looked at."""
    folders, seen = [root], 0
    while folders:
        folder = folders.pop(0)
        try:
            entries = sorted(folder.iterdir())
        except OSError:
            continue
        for entry in entries:
            seen += 1
            if seen > limit:
                return
            if entry.name.startswith(".") or entry.is_symlink():
                continue
            if entry.is_dir():
                folders.append(entry)
            elif entry.is_file():
                yield entry


def _refuse_strange(text: str) -> None:
    """Refuse names for new files that a person would misread or a shell would take for something else."""
    if not text.isprintable():
        raise BadPath(f"{text!r} holds characters that cannot be seen: use letters, digits, - and _")
    if "\\" in text:
        raise BadPath(f"{text!r} holds a backslash: folders are separated by /")
    if text.startswith("~"):
        raise BadPath(f"{text!r} begins with ~, which means no home folder here: give a path relative to the workspace")


def _writable(relative: str, target: Path, *, is_folder: bool) -> None:
    if any(part.startswith(".") for part in Path(relative).parts) or relative == ".":
        raise BadPath(f"{relative!r} is not a place for output: hidden files and folders are never written")
    if target.is_dir() and not is_folder:
        raise BadPath(f"{relative!r} is a folder, name the file to write")
    if target.exists() and not (target.is_dir() if is_folder else target.is_file()):
        raise BadPath(f"{relative!r} exists and is not a {'folder' if is_folder else 'regular file'}")
    for parent in target.parents:
        if parent.exists():
            if not parent.is_dir():
                raise BadPath(f"{relative!r} cannot be written: {parent.name} is a file, not a folder")
            return


def _places(node: Any, root: dict[str, Any], at: Place, depth: int = 0) -> Iterator[tuple[Place, str]]:
    """Walk a schema and yield where it says `format: input-path`, `output-path` or `output-folder`."""
    if not isinstance(node, dict) or depth > 12:
        return
    if node.get("format") in (_INPUT, _OUTPUT, _FOLDER):
        yield at, node["format"]
    reference = node.get("$ref", "")
    if reference.startswith("#/$defs/"):
        yield from _places(root.get("$defs", {}).get(reference.removeprefix("#/$defs/")), root, at, depth + 1)
    for word in ("anyOf", "oneOf", "allOf"):
        for branch in node.get(word, ()):
            yield from _places(branch, root, at, depth + 1)
    for name, sub in node.get("properties", {}).items():
        yield from _places(sub, root, (*at, name), depth + 1)
    for word in ("items", "additionalProperties"):
        yield from _places(node.get(word), root, (*at, "*"), depth + 1)


def _map(value: Any, place: Place, where: str, change: Callable[[str, str], str]) -> Any:
    """Return `value` with `change` applied at `place`, copying only what changes."""
    if not place:
        return change(value, where) if isinstance(value, str) else value
    head, rest = place[0], place[1:]
    dot = f"{where}." if where else ""
    if head == "*" and isinstance(value, list):
        return [_map(item, rest, f"{dot}{i}", change) for i, item in enumerate(value)]
    if isinstance(value, dict):
        keys = list(value) if head == "*" else [head] if head in value else []
        return {**value, **{key: _map(value[key], rest, f"{dot}{key}", change) for key in keys}} if keys else value
    return value
