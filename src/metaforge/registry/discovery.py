"""Adapters that other packages bring, found through the entry point group `metaforge.adapters`.

Asking the interpreter for entry points costs about 75 ms, so the answer is cached for as long as no package
on `sys.path` changed. Manifests of such adapters are generated once in a process of their own and cached by the
modification times of their package's modules.
"""

import hashlib
import importlib.util
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

GROUP = "metaforge.adapters"
_GENERATE_SECONDS = 60.0
_INSTALLED = (".dist-info", ".egg-info")


@dataclass(frozen=True)
class Discovered:
    """A third-party adapter: its manifest, or why there is none."""

    adapter_id: str
    target: str
    manifest: dict[str, Any] | None
    problem: str = ""
    folder: Path | None = None
    """Where its modules lie when that is outside this environment; its workers must be able to read it."""


def discover(cache: Path) -> list[Discovered]:
    """Return every adapter that an installed package declares.

    Args:
        cache: folder for the cached answer; made when there is something to keep.
    """
    found = _entry_points(cache)
    return [find_manifest(adapter_id, target, cache) for adapter_id, target in sorted(found.items())]


def _entry_points(cache: Path) -> dict[str, str]:
    stamp = _path_stamp()
    kept = cache / "entry_points.json"
    try:
        known = orjson.loads(kept.read_bytes())
        if known["stamp"] == stamp:
            return dict(known["adapters"])
    except (OSError, ValueError, KeyError, TypeError):
        pass
    from importlib import metadata

    found = {point.name: point.value for point in metadata.entry_points(group=GROUP)}
    _keep(kept, orjson.dumps({"stamp": stamp, "adapters": found}))
    return found


def _path_stamp() -> str:
    """Return a digest of the packages on `sys.path` and when each was installed."""
    lines = []
    for folder in sys.path:
        try:
            with os.scandir(folder or ".") as entries:
                installed = [entry for entry in entries if entry.name.endswith(_INSTALLED)]
            lines += [f"{entry.path} {entry.stat().st_mtime_ns}" for entry in installed]
        except OSError:
            continue
    return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()


def find_manifest(adapter_id: str, target: str, cache: Path) -> Discovered:
    """Return the adapter at `module:Class`, its manifest made anew when a module of its package has changed.

    Args:
        cache: folder for manifests.
    """
    module = target.partition(":")[0]
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError) as fault:
        return Discovered(adapter_id, target, None, f"{module} cannot be imported: {fault}")
    if spec is None or spec.origin is None:
        return Discovered(adapter_id, target, None, f"{module} is not there")
    stamp = hashlib.sha256(f"{target} {_code_stamp(module, Path(spec.origin))}".encode()).hexdigest()
    kept = cache / f"manifest-{adapter_id}-{stamp[:16]}.json"
    if not kept.exists():
        problem = _generate(target, kept)
        if problem:
            return Discovered(adapter_id, target, None, problem)
    try:
        manifest = orjson.loads(kept.read_bytes())
    except (OSError, ValueError) as fault:
        return Discovered(adapter_id, target, None, f"its cached manifest {kept} cannot be read: {fault}")
    if manifest.get("adapter_id") != adapter_id:
        told = manifest.get("adapter_id")
        return Discovered(adapter_id, target, None, f"its entry point is named {adapter_id}, it calls itself {told}")
    return Discovered(adapter_id, target, manifest, folder=_folder_outside(module, Path(spec.origin)))


def _code_stamp(module: str, file: Path) -> str:
    """Name the state of the code behind a manifest: arguments and results may stand in files of their own."""
    is_package = "." in module or file.name == "__init__.py"
    files = sorted(file.parent.rglob("*.py")) if is_package else [file]
    return "\n".join(f"{each} {each.lstat().st_mtime_ns}" for each in files)


def _folder_outside(module: str, file: Path) -> Path | None:
    """Return the folder that a module is imported from, unless this environment holds it anyway."""
    depth = module.count(".") + (file.name == "__init__.py")
    folder = file.resolve().parents[depth]
    inside = any(folder.is_relative_to(Path(prefix).resolve()) for prefix in (sys.prefix, sys.base_prefix))
    return None if inside else folder


def _generate(target: str, kept: Path) -> str:
    kept.parent.mkdir(parents=True, exist_ok=True)
    fresh = kept.with_suffix(".new")
    try:
        ran = subprocess.run(
            [sys.executable, "-m", "metaforge.tools.generate", target, str(fresh)],
            capture_output=True, text=True, timeout=_GENERATE_SECONDS, stdin=subprocess.DEVNULL, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"{target} gave no manifest within {_GENERATE_SECONDS:g} s"
    if ran.returncode != 0 or not fresh.exists():
        last = (ran.stderr.strip().splitlines() or ["no message"])[-1]
        return f"{target} gave no manifest: {last}"
    fresh.replace(kept)
    return ""


def _keep(path: Path, content: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_suffix(".new")
        fresh.write_bytes(content)
        fresh.replace(path)
    except OSError:
        # A home that cannot be written costs time at every start, nothing else.
        return
