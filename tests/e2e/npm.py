"""Install the pinned clients into a cache folder, or say why that cannot be done."""

import json
import os
import shutil
import subprocess
from pathlib import Path

PINS: dict[str, str] = json.loads(Path(__file__).with_name("package.json").read_text())["dependencies"]
INSTALL_SECONDS = 900
ANSWER_SECONDS = 30


class Missing(Exception):
    """A client cannot be had here; the message says why."""


def cache_folder() -> Path:
    return Path(os.environ.get("METAFORGE_NPM_CACHE") or Path.home() / ".cache" / "metaforge-npm")


def package_folder(name: str) -> Path:
    """Return the folder of a pinned package, installed now if it is not there in the pinned version.

    Raises:
        Missing: there is no npm, or its registry does not answer.
    """
    folder = cache_folder() / "node_modules" / name
    if _version(folder) != PINS[name]:
        _install(name)
    if _version(folder) != PINS[name]:
        raise Missing(f"npm did not install {name}@{PINS[name]}")
    return folder


def node() -> str:
    """Return the node program.

    Raises:
        Missing: there is none.
    """
    found = shutil.which("node")
    if found is None:
        raise Missing("node is not installed")
    return found


def _version(folder: Path) -> str:
    try:
        version: str = json.loads((folder / "package.json").read_text())["version"]
    except (FileNotFoundError, ValueError, KeyError):
        return ""
    return version


def _install(name: str) -> None:
    program = shutil.which("npm")
    if program is None:
        raise Missing("npm is not installed")
    wanted = f"{name}@{PINS[name]}"
    try:
        asked = subprocess.run([program, "view", wanted, "version"], capture_output=True, timeout=ANSWER_SECONDS)
    except subprocess.TimeoutExpired:
        raise Missing(f"the npm registry did not answer within {ANSWER_SECONDS} s") from None
    if asked.returncode:
        raise Missing(f"the npm registry does not answer for {wanted}")
    target = cache_folder()
    target.mkdir(parents=True, exist_ok=True)
    # --force: the native binaries run without the Node version that their packages ask for.
    command = [
        program,
        "install",
        "--prefix",
        str(target),
        "--force",
        "--no-audit",
        "--no-fund",
        "--save-exact",
        wanted,
    ]
    ran = subprocess.run(command, capture_output=True, timeout=INSTALL_SECONDS)
    if ran.returncode:
        raise Missing(f"npm install {wanted} failed: {ran.stderr.decode(errors='replace')[-300:]}")
