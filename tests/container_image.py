"""A small image that runs any adapter of the tests: Debian's Python, the packages a worker imports, and nothing else.

The package under test and the tests' own adapters are shown to its containers read-only; `TARGET` says which one runs.
"""

import hashlib
import os
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "src"
PACKAGES = ("orjson", "pydantic")
_DOCKERFILE = """\
ARG BASE
FROM ${BASE}
COPY packages /packages
ENV PYTHONPATH=/packages
ENTRYPOINT ["sh", "-c", "export PYTHONPATH=$PYTHONPATH:/packages; exec python3 -P -m metaforge.tools.run $TARGET"]
"""


def name() -> str:
    """Return the image's name; what goes into it decides."""
    pinned = " ".join(f"{package}=={version(package)}" for package in PACKAGES)
    return f"localhost/metaforge-fixture:{hashlib.sha256((pinned + _DOCKERFILE).encode()).hexdigest()[:12]}"


def ensure() -> str:
    """Build the image where it is not there yet, and return its name: seconds, and a minute for a missing base."""
    sys.path.insert(0, str(ROOT / "scripts"))
    try:
        import container_engine as engines
    finally:
        sys.path.remove(str(ROOT / "scripts"))
    engine = engines.find_engine(os.environ.get("METAFORGE_CONTAINER_ENGINE", ""))
    image = name()
    if engine.has(image):
        return image
    base, _ = engines.base_for(engine, "debian", "")
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
        built = engine.run("build", *engine.building, f"--build-arg=BASE={base}", f"--tag={image}", folder)
        if built.returncode:
            raise RuntimeError(f"the image of the tests cannot be built: {built.stderr[-2000:]}")
    return image


def _platforms() -> list[str]:
    machine = os.uname().machine
    return [f"manylinux_2_{minor}_{machine}" for minor in (28, 17)] + [f"manylinux2014_{machine}"]
