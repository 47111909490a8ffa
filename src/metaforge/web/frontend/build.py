"""Bundle the dashboard's libraries from the npm registry into `static/built/`.

Standard library only: the wheel's build hook loads this file by its path, before anything is installed.
"""

import base64
import hashlib
import json
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
TARGET = HERE.parent / "static" / "built"
SOURCES = ("package.json", "package-lock.json", "htmx.js", "viewer.js", "no_decoder.js", "build.py")
BUNDLES = ("htmx", "viewer")
STAMP = "built.json"
TIMEOUT_SECONDS = 600
_OPTIONS = (
    "--bundle", "--minify", "--format=esm", "--target=es2022", "--legal-comments=linked",
    "--alias:three/examples/jsm/libs/meshopt_decoder.module.js=./no_decoder.js",
)  # fmt: skip
_STYLE = re.compile(r"<style>(.*?)</style>", re.DOTALL)


class NotBuilt(Exception):
    """The libraries are not there; the message says why and what to do. The pages work without them."""


def is_built(target: Path = TARGET) -> bool:
    """Return whether what is there was made of these sources."""
    try:
        told = json.loads((target / STAMP).read_text())
    except (OSError, ValueError):
        return False
    return told.get("sources") == _digest() and all((target / f"{name}.js").is_file() for name in BUNDLES)


def build(target: Path = TARGET) -> None:
    """Fetch the locked libraries, bundle them, and put the result in place as a whole.

    Raises:
        NotBuilt: npm is missing, or fails.
    """
    npm = shutil.which("npm")
    if npm is None:
        raise NotBuilt("npm is not installed. Install Node.js 18 or newer (Debian: apt-get install npm)")
    with tempfile.TemporaryDirectory(prefix="metaforge-frontend-") as folder:
        work = Path(folder)
        for name in SOURCES:
            shutil.copyfile(HERE / name, work / name)
        _run([npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"], work)
        made = work / "built"
        for name in BUNDLES:
            _run([npm, "exec", "--offline", "--", "esbuild", f"{name}.js", *_OPTIONS, f"--outfile={made / name}.js"],
                 work)  # fmt: skip
        _check(made)
        told = {"sources": _digest(), "viewer_style": _style_hash(work / "node_modules")}
        (made / STAMP).write_text(json.dumps(told))
        _replace(made, target)


def _run(command: list[str], folder: Path) -> None:
    try:
        done = subprocess.run(
            command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=TIMEOUT_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired) as fault:
        raise NotBuilt(f"{Path(command[0]).name} {command[1]}: {fault}") from None
    if done.returncode:
        words = " ".join(done.stdout.split())
        raise NotBuilt(f"{Path(command[0]).name} {command[1]} failed ({done.returncode}): {words[-600:]}")


def _check(made: Path) -> None:
    """Trust no exit code: each bundle must be there and hold what it is for."""
    for name, mark in (("htmx", "hx-get"), ("viewer", "model-viewer")):
        path = made / f"{name}.js"
        if not path.is_file() or mark not in path.read_text():
            raise NotBuilt(f"{name}.js was bundled without {mark!r} in it")


def _style_hash(modules: Path) -> str:
    """Return the hash by which the pages' policy allows the one style sheet that the 3-D view brings inline."""
    text = (modules / "@google" / "model-viewer" / "lib" / "template.js").read_text()
    found = _STYLE.search(text)
    if found is None:
        raise NotBuilt("the 3-D view's style sheet was not found")
    return "sha256-" + base64.b64encode(hashlib.sha256(found[1].encode()).digest()).decode()


def _replace(made: Path, target: Path) -> None:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(made, target)
    except OSError as fault:
        raise NotBuilt(f"{target} cannot be written: {fault.strerror or fault}") from None


def _digest() -> str:
    content = b"".join((HERE / name).read_bytes() for name in SOURCES)
    return hashlib.sha256(content).hexdigest()[:16]
