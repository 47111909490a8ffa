"""The engine's own system-call filter, less what no engineering tool needs and boxes here are refused as well."""

import errno
import hashlib
import json
import os
from pathlib import Path
from typing import Any

from metaforge.engine.seccomp import CLONE_NEWUSER, refused_calls

_ALLOW, _ERRNO, _MASKED = "SCMP_ACT_ALLOW", "SCMP_ACT_ERRNO", "SCMP_CMP_MASKED_EQ"


def tightened(profile: Path, folder: Path) -> Path | None:
    """Write a stricter copy of an engine's filter, and return where; None where it cannot be read.

    Args:
        profile: the engine's filter, in the form that OCI runtimes' callers share.
        folder: where the copy is kept, under a name that its content decides.
    """
    try:
        ours = tighten(json.loads(profile.read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    text = json.dumps(ours)
    path = folder / f"seccomp-{hashlib.sha256(text.encode()).hexdigest()[:16]}.json"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        fresh = path.with_suffix(f".{os.getpid()}")
        fresh.write_text(text)
        fresh.replace(path)
    return path


def tighten(profile: dict[str, Any]) -> dict[str, Any]:
    """Return a filter that refuses what boxes here are refused, and new user namespaces however they are asked for."""
    refused = refused_calls()
    apart = {*refused, "clone", "clone3", "unshare"}
    kept = []
    for rule in profile["syscalls"]:
        names = [name for name in rule["names"] if name not in apart]
        if names:
            kept.append({**rule, "names": names})
    kept.append({"names": sorted(refused), "action": _ERRNO, "errnoRet": errno.EPERM})
    # Its flags lie in memory, where a filter cannot look: "no such call" makes libc fall back to clone.
    kept.append({"names": ["clone3"], "action": _ERRNO, "errnoRet": errno.ENOSYS})
    for value, action in ((0, {"action": _ALLOW}), (CLONE_NEWUSER, {"action": _ERRNO, "errnoRet": errno.EPERM})):
        flags = {"index": 0, "value": CLONE_NEWUSER, "valueTwo": value, "op": _MASKED}
        kept.append({"names": ["clone", "unshare"], **action, "args": [flags]})
    return {**profile, "syscalls": kept}
