"""A small image that runs any adapter of the tests: Debian's Python, the packages a worker imports, and nothing else.

The package under test and the tests' own adapters are shown to its containers read-only; `TARGET` says which one runs.
"""

import hashlib
import importlib
import os
import shutil
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "src"
PACKAGES = ("orjson", "pydantic")
_DOCKERFILE = """\
ARG BASE
FROM ${BASE}
COPY packages /packages
RUN python3 -m compileall -q /packages
ENV PYTHONPATH=/packages
ENTRYPOINT ["sh", "-c", "export PYTHONPATH=$PYTHONPATH:/packages; exec python3 -P -m metaforge.tools.run $TARGET"]
"""

_WHOLE = """\
FROM {base}
LABEL metaforge.target={target}
COPY metaforge /app/metaforge
COPY more /app
RUN python3 -m compileall -q /app
ENV PYTHONPATH=/app:/packages PYTHONSAFEPATH=1
ENTRYPOINT ["python3", "-m", "metaforge.tools.run", "{target}"]
"""


def name() -> str:
    """Return the image's name; what goes into it decides."""
    pinned = " ".join(f"{package}=={version(package)}" for package in PACKAGES)
    return f"localhost/metaforge-fixture:{hashlib.sha256((pinned + _DOCKERFILE).encode()).hexdigest()[:12]}"


class CannotBuild(Exception):
    """Something that images are built with is missing; the message says what."""


def ensure(program: str) -> str:
    """Build the image where it is not there yet, and return its name: seconds, and a minute for a missing base.

    Args:
        program: podman or docker.

    Raises:
        CannotBuild: there is nothing to build it on.
    """
    engine, image = _engine(program), name()
    if engine.has(image):
        return image
    try:
        base, _ = _engines().base_for(engine, "debian", "")
    except _engines().Stop as stop:
        raise CannotBuild(str(stop)) from None
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        (Path(folder) / "Dockerfile").write_text(_DOCKERFILE)
        pinned = [f"{package}=={version(package)}" for package in PACKAGES]
        # For the image's Python, which need not be this one.
        subprocess.run(
            [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile",
             "--only-binary=:all:", "--python-version=3.11", "--implementation=cp", f"--target={folder}/packages",
             *(f"--platform={platform}" for platform in _platforms()), *pinned],
            check=True,
        )  # fmt: skip
        _build(engine, image, folder, f"--build-arg=BASE={base}")
    return image


def _engines() -> Any:
    sys.path.insert(0, str(ROOT / "scripts"))
    try:
        return importlib.import_module("container_engine")
    finally:
        sys.path.remove(str(ROOT / "scripts"))


def _engine(program: str) -> Any:
    try:
        return _engines().find_engine(program)
    except _engines().Stop as stop:
        raise CannotBuild(str(stop)) from None


def _forget_others(engine: Any, image: str, target: str) -> None:
    """Remove the images of older sources."""
    told = engine.run("images", "--filter", f"label=metaforge.target={target}", "--format", "{{.Repository}}:{{.Tag}}")
    if others := [each for each in told.stdout.split() if each != image and "<none>" not in each]:
        engine.run("rmi", *others)


def _build(engine: Any, image: str, folder: str, *options: str) -> None:
    built = engine.run("build", *engine.building, *options, f"--tag={image}", folder)
    if built.returncode:
        raise RuntimeError(f"the image of the tests cannot be built: {built.stderr[-2000:]}")


def ensure_with_package(program: str, target: str, *modules: Path) -> str:
    """Build an image that holds the package itself and runs one adapter, as the ones that ship do.

    Args:
        program: podman or docker.
        target: the adapter's `module:Class`.
        modules: files of modules that the package does not bring.
    """
    read = [path.read_bytes() for path in (*sorted(SOURCES.rglob("*.py")), *modules)]
    sources = hashlib.sha256(b"".join(read) + target.encode())
    image = f"localhost/metaforge-fixture-whole:{sources.hexdigest()[:12]}"
    base, engine = ensure(program), _engine(program)
    if engine.has(image):
        return image
    dockerfile = _WHOLE.format(base=base, target=target)
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        (Path(folder) / "Dockerfile").write_text(dockerfile)
        (Path(folder) / "more").mkdir()
        ignored = shutil.ignore_patterns("__pycache__", "static", "node_modules")
        shutil.copytree(SOURCES / "metaforge", Path(folder) / "metaforge", ignore=ignored)
        for module in modules:
            shutil.copy(module, Path(folder) / "more")
        _build(engine, image, folder)
    _forget_others(engine, image, target)
    return image


def _platforms() -> list[str]:
    machine = os.uname().machine
    return [f"manylinux_2_{minor}_{machine}" for minor in (28, 17)] + [f"manylinux2014_{machine}"]
