"""One real server over stdio for a whole run, and the proof after every test that it came to no harm."""

import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from live_server import Server


@pytest.fixture(scope="session")
def shared_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("bad-input")
    (folder / "home").mkdir()
    (folder / "workspace").mkdir()
    server = Server(folder / "home", folder / "workspace")
    try:
        server.shake_hands()
        yield server
        left = server.descendants()
    finally:
        status = server.close()
    assert status == 0
    assert server.junk == [], "something other than JSON-RPC was on the server's stdout"
    _, alive = psutil.wait_procs(left, timeout=5)
    assert alive == [], "processes outlived the server"


@pytest.fixture
def server(shared_server: Server) -> Iterator[Server]:
    """The shared server; afterwards it must be the same process, answer others, and have nothing lying about."""
    yield shared_server
    assert shared_server.process.poll() is None, "the server died"
    assert shared_server.call("fixture.echo", text="well?").data["text"] == "well?"
    assert shared_server.call("fixtureproc.echo", text="and you?").data["text"] == "and you?"
    assert shared_server.outputs() == []
    assert shared_server.junk == []


@pytest.fixture(scope="session")
def cube(shared_server: Server) -> str:
    """A cube of 10 mm in the workspace, made by the server itself."""
    parameters = {"width": 10, "length": 10, "height": 10}
    made = shared_server.call(
        "cadquery.create_parametric", shape_type="box", parameters=parameters, output_path="parts/cube.step"
    )
    assert not made.refused, made.text
    return "parts/cube.step"
