"""Stage 7: keep what a CAD session exports, and put exactly that into a commit which names it.

What a caller carried back is a copy of the export: equal, or damaged. The kept one counts.
"""

import asyncio
import base64
import binascii
from typing import Any

from metaforge.calls.call import Call, Proceed, replace
from metaforge.core.ids import sha256_bytes
from metaforge.store.blobs import Blobs
from metaforge.store.stash import GeometryStash
from metaforge.telemetry.logs import event
from metaforge.tools.context import Outcome

EXPORT, COMMIT = "export_model", "twin.commit_geometry"


class Stash:
    """Knows exports by session_id and obj_id, of any adapter whose `export_model` takes both."""

    def __init__(self, stash: GeometryStash, blobs: Blobs) -> None:
        self._stash = stash
        self._blobs = blobs

    async def __call__(self, call: Call, proceed: Proceed) -> Outcome:
        names = _names(call.arguments)
        if names is None:
            return await proceed(call)
        tool_id = call.resolved().id
        if tool_id.endswith("." + EXPORT):
            outcome = await proceed(call)
            await asyncio.to_thread(self._keep, names, outcome)
            return outcome
        if tool_id == COMMIT:
            return await self._commit(call, names, proceed)
        return await proceed(call)

    def _keep(self, names: tuple[str, str], outcome: Outcome) -> None:
        content = self._exported(outcome)
        try:
            kept = content is not None and self._stash.put(*names, content)
        except OSError as fault:
            event("geometry_stash_failed", "error", session_id=names[0], obj_id=names[1], reason=str(fault))
            return
        if content is not None and not kept:
            event("geometry_stash_too_large", "warning", session_id=names[0], obj_id=names[1], size_bytes=len(content))

    def _exported(self, outcome: Outcome) -> bytes | None:
        carried = outcome.data.get("step_base64")
        if isinstance(carried, str):
            return _decode(carried)
        for file in outcome.files:
            if file.role == "geometry" or file.media_type == "model/step":
                return self._blobs.read(file.sha256)
        return None

    async def _commit(self, call: Call, names: tuple[str, str], proceed: Proceed) -> Outcome:
        kept = await asyncio.to_thread(self._stash.get, *names)
        if kept is None:
            return await proceed(call)
        carried = call.arguments.get("step_base64")
        diverged = isinstance(carried, str) and carried != "" and _decode(carried) != kept
        if diverged:
            assert isinstance(carried, str)
            event(
                "geometry_commit_blob_diverged", "warning",
                call_id=call.id, session_id=names[0], obj_id=names[1], kept_sha256=sha256_bytes(kept),
                kept_bytes=len(kept), carried_chars=len(carried),
            )  # fmt: skip
        arguments = {**call.arguments, "step_base64": base64.b64encode(kept).decode()}
        arguments.pop("file_path", None)
        outcome = await proceed(replace(call, arguments=arguments))
        if not diverged:
            return outcome
        warning = "The step_base64 given differs from what the session exported; the export was committed"
        return _warned(outcome, warning)


def _names(arguments: dict[str, Any]) -> tuple[str, str] | None:
    session_id, obj_id = arguments.get("session_id"), arguments.get("obj_id")
    if isinstance(session_id, str) and isinstance(obj_id, str) and session_id and obj_id:
        return session_id, obj_id
    return None


def _decode(text: str) -> bytes | None:
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        return None


def _warned(outcome: Outcome, warning: str) -> Outcome:
    from dataclasses import replace as changed

    return changed(outcome, warnings=(warning, *outcome.warnings))
