"""Write an adapter's `manifest.json` from its code: `python -m metaforge.tools.generate MODULE:CLASS FILE`.

The server reads these files instead of importing adapters, so that `tools/list` is instant.
"""

import sys
from pathlib import Path
from typing import Any

import orjson

from metaforge.protocol.messages import ToolManifest
from metaforge.tools.effect import HoldRule
from metaforge.tools.run import load


def manifest_of(target: str) -> dict[str, Any]:
    """Return the manifest of the adapter at `module:Class`, as JSON data."""
    server = load(target)
    return {
        "adapter_id": server.adapter_id,
        "version": server.version,
        "target": target,
        "in_process": server.in_process,
        "tools": [_entry(manifest) for manifest in server.manifests()],
    }


def _entry(manifest: ToolManifest) -> dict[str, Any]:
    entry = manifest.model_dump(mode="json")
    if entry["hold"] == HoldRule.BY_EFFECT:
        del entry["hold"]
    for name in ("session", "aliases"):
        if not entry[name]:
            del entry[name]
    for need in entry["needs"]:
        if not need["backports_of"]:
            del need["backports_of"]
    return entry


def manifest_bytes(target: str) -> bytes:
    """Return the manifest as it is stored: indented, keys in their written order."""
    return orjson.dumps(manifest_of(target), option=orjson.OPT_INDENT_2) + b"\n"


if __name__ == "__main__":
    Path(sys.argv[2]).write_bytes(manifest_bytes(sys.argv[1]))
