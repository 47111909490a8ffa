"""The images that tests try, built by the same script as everybody's."""

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import contained

sys.path.pop(0)


@pytest.fixture(scope="session")
def engine() -> contained.container_engine.Engine:
    """The engine that keeps the images."""
    return contained.container_engine.find_engine(os.environ.get(contained.build_images.ENGINE, ""))


@pytest.fixture(scope="session")
def built() -> Callable[[str], None]:
    """Build an image, once."""
    done: set[str] = set()

    def build(name: str) -> None:
        if name not in done:
            assert contained.build_images.main([name]) == 0, f"{name} was not built; its reason stands above"
            done.add(name)

    return build


@pytest.fixture
def start(
    engine: contained.container_engine.Engine, built: Callable[[str], None]
) -> Iterator[Callable[[str], contained.Contained]]:
    """Build an adapter's image and return it with folders of its own."""
    # Not pytest's folder, which is closed to the user that an image has.
    with tempfile.TemporaryDirectory(dir="/var/tmp", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)

        def make(name: str) -> contained.Contained:
            built(name)
            return contained.Contained(engine, name, Path(folder))

        yield make
