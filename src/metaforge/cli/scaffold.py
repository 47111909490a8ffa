"""`metaforge new adapter`: a small package that serves two real tools and passes its own test."""

import keyword
import re
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from metaforge import __version__
from metaforge.adapters import CATALOG
from metaforge.cli.screen import console

LONGEST_NAME = 14
"""Tool ids are at most 31 characters, the adapter's name and a dot included."""

_NAME = re.compile(r"[a-z][a-z0-9_]*")


def write(name: str, folder: Path | None) -> int:
    """Write the adapter's folder. Returns the exit status."""
    target = folder or Path(f"metaforge-{name}")
    out = console()
    if fault := _fault_of(name) or _fault_of_folder(target):
        console(stderr=True).print(fault, style="red")
        return 2
    for path, text in files(name).items():
        written = target / path
        written.parent.mkdir(parents=True, exist_ok=True)
        written.write_text(text)
    out.print(f"{target}/ holds an adapter that works. Next:\n")
    where = target if target.is_absolute() else f"./{target}"
    out.print(f"  pip install -e '{where}[test]'      its tools then show in `metaforge tools`", markup=False)
    out.print(f"  python -m pytest {target}/tests      its own test")
    out.print(f"  metaforge call {name}.tip_deflection force_n=100 length_mm=200 width_mm=20 height_mm=5")
    return 0


def files(name: str) -> dict[str, str]:
    """Return the adapter's files, path -> text."""
    skeleton = resources.files("metaforge.cli") / "skeleton"
    return dict(_filled(skeleton, "", name))


def _filled(folder: Traversable, path: str, name: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        inside = path + entry.name.replace("NAME", name)
        if entry.is_dir():
            found += _filled(entry, inside + "/", name)
        elif entry.name.endswith(".tmpl"):
            found.append((inside.removesuffix(".tmpl"), _fill(entry.read_text(), name)))
    return found


def _fill(text: str, name: str) -> str:
    class_name = "".join(word.capitalize() for word in name.split("_"))
    return text.replace("{{name}}", name).replace("{{Class}}", class_name).replace("{{version}}", __version__)


def _fault_of(name: str) -> str:
    if not _NAME.fullmatch(name) or keyword.iskeyword(name):
        return f"{name!r} is no adapter id: use lower-case letters, digits and _, starting with a letter"
    if len(name) > LONGEST_NAME:
        return f"{name!r} has {len(name)} characters; at most {LONGEST_NAME} keep its tool ids within 31"
    if name in CATALOG:
        return f"{name!r} ships with MetaForge: choose another id"
    return ""


def _fault_of_folder(target: Path) -> str:
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        return f"{target} is already there: choose another with --folder"
    return ""
