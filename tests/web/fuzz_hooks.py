"""Lets schemathesis reach what exists: about half of all requests name things that were made before the run."""

import json
import os
import re
from collections.abc import Mapping
from typing import Any

import schemathesis

VALID = {
    "project_id": r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,99}",
    "session_id": r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,99}",
    "key": r"[A-Z0-9][A-Z0-9_.-]{0,79}",
    "revision": r"[1-9][0-9]{0,8}",
    "sha256": r"[0-9a-f]{64}",
    "approval_id": r"run_[0-9a-f]{16}",
    "item_id": r"([a-z_]{1,30}:)?[A-Za-z0-9_.-]{1,80}",
}
"""What a value looks like that may be exchanged: what was made wrong on purpose stays wrong."""
KNOWN: dict[str, list[str]] = json.loads(os.environ.get("METAFORGE_FUZZ_KNOWN", "{}"))


@schemathesis.hook
def map_path_parameters(context: Any, path_parameters: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Name something that exists instead of something made up."""
    if not path_parameters:
        return path_parameters
    mark = sum(map(ord, "".join(map(str, path_parameters.values()))))
    valid = all(name in KNOWN and re.fullmatch(VALID[name], str(value)) for name, value in path_parameters.items())
    if mark % 2 or not valid:
        return path_parameters
    return {name: KNOWN[name][mark // 2 % len(KNOWN[name])] for name in path_parameters}
