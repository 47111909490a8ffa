"""A real issuer, and the HTTP server of tests/mcp with settings of its own."""

import importlib.util
import socket
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from metaforge.settings import Settings

HERE = Path(__file__).parent


def load(name: str, path: Path) -> ModuleType:
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


ISSUER = load("access_issuer", HERE / "issuer.py")
SERVER = load("mcp_conftest", HERE.parent / "mcp" / "conftest.py")


@pytest.fixture
def issuer() -> Iterator[Any]:
    found = ISSUER.Issuer()
    yield found
    found.stop()


@pytest.fixture
def oauth(issuer: Any) -> Settings:
    return Settings(oauth_issuer=issuer.url, oauth_audience=(ISSUER.AUDIENCE,))


@pytest.fixture
async def serve() -> AsyncIterator[Callable[..., Any]]:
    """Start servers of a tiny service, each with its own settings."""
    servers: list[Any] = []

    async def start(settings: Settings, port: int = 0) -> Any:
        server = SERVER.Web(SERVER.load_tiny().TinyService(), settings)
        await server.open(port)
        servers.append(server)
        return server

    yield start
    for server in servers:
        await server.close()


@pytest.fixture
def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


@pytest.fixture
def make_web() -> Callable[..., Any]:
    """The way to serve a service on a free port."""
    made: Callable[..., Any] = SERVER.Web
    return made


@pytest.fixture
def settings() -> Settings:
    return Settings(api_key="secret")


@pytest.fixture
async def web(serve: Callable[[Settings], Any], settings: Settings) -> Any:
    return await serve(settings)
