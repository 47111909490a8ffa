"""The handshake: who the client is, what it can do, and what it is told."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from metaforge.core.errors import InvalidParams
from metaforge.protocol.revisions import STRUCTURED_SINCE, negotiate

SERVER_NAME = "metaforge"


@dataclass(frozen=True)
class Hello:
    """What a client said of itself, in `initialize` or in the envelope of a stateless request."""

    name: str = ""
    version: str = ""
    requested: str = ""
    """The revision it asked for."""
    revision: str = ""
    """The revision that is spoken."""
    capabilities: Mapping[str, Any] = field(default_factory=dict)

    def can(self, capability: str) -> bool:
        """Whether the client declared a capability that the server may use in this revision.

        A form can be asked of a client that declared `elicitation` with no mode, or with the mode `form`.
        """
        declared = self.capabilities.get(capability)
        if not isinstance(declared, Mapping):
            return False
        if capability != "elicitation":
            return True
        return self.revision >= STRUCTURED_SINCE and (not declared or "form" in declared)


def client_identity(info: Any) -> tuple[str, str]:
    """Return a client's name and version from its `clientInfo`; empty where it told none."""
    if not isinstance(info, Mapping):
        return "", ""
    name, version = info.get("name"), info.get("version")
    return (name if isinstance(name, str) else "", version if isinstance(version, str) else "")


def read_initialize(params: Mapping[str, Any]) -> Hello:
    """Read the parameters of `initialize`.

    Raises:
        InvalidParams: `capabilities` is no object, or `protocolVersion` no string.
    """
    requested, capabilities = params.get("protocolVersion", ""), params.get("capabilities") or {}
    if not isinstance(requested, str):
        raise InvalidParams('initialize: "protocolVersion" must be a string such as "2025-11-25"')
    if not isinstance(capabilities, Mapping):
        raise InvalidParams('initialize: "capabilities" must be an object')
    name, version = client_identity(params.get("clientInfo"))
    return Hello(name, version, requested, negotiate(requested), capabilities)


def server_info(version: str) -> dict[str, Any]:
    """Return the server's name, title and version."""
    return {"name": SERVER_NAME, "title": "MetaForge", "version": version}


def capabilities() -> dict[str, Any]:
    """Return what the server offers."""
    return {"tools": {"listChanged": False}, "resources": {}, "logging": {}}


def initialize_result(hello: Hello, version: str, instructions: str) -> dict[str, Any]:
    """Return the answer to `initialize`."""
    return {
        "protocolVersion": hello.revision,
        "capabilities": capabilities(),
        "serverInfo": server_info(version),
        "instructions": instructions,
    }
