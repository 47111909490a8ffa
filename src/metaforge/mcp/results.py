"""An Outcome as the wire tells it: what a model must see is structured, what a person reads comes first."""

import base64
from typing import Any

from metaforge.mcp.service import ResourceContent
from metaforge.protocol.revisions import STRUCTURED_SINCE
from metaforge.tools.context import Artefact, Outcome

_SNAKE = {
    "heldSeconds": "held_seconds", "approvalId": "approval_id", "approvedBy": "approved_by",
    "approverVerified": "approver_verified",
}  # fmt: skip
_TEXTUAL = ("text/", "application/json", "application/xml", "application/yaml")


def call_result(outcome: Outcome, call_id: str, revision: str) -> dict[str, Any]:
    """Return the result of `tools/call`.

    The structured part holds the tool's own fields, then the call's id, next step, warnings and files: clients show a
    model that part instead of the text, and images and links beside it. A tool whose result is content itself has none.

    Args:
        revision: the revision spoken; clients before 2025-06-18 are told of files in text.
    """
    content: list[dict[str, Any]] = []
    if outcome.summary or not outcome.content:
        content.append({"type": "text", "text": readable(outcome)})
    if outcome.content:
        content.extend(outcome.content)
    if outcome.meta and "approval" in outcome.meta:
        content.append({"type": "text", "text": outcome.meta["approval"]["note"]})
    for image in outcome.images:
        data = base64.b64encode(image.png).decode()
        content.append({"type": "image", "data": data, "mimeType": "image/png"})
    if outcome.files:
        render = link if revision >= STRUCTURED_SINCE else link_text
        content.extend(map(render, outcome.files))
    result: dict[str, Any] = {"content": content}
    if outcome.data or not outcome.content:
        result["structuredContent"] = structured(outcome, call_id)
    result["_meta"] = {**outcome.meta, "callId": call_id} if outcome.meta else {"callId": call_id}
    return result


def readable(outcome: Outcome) -> str:
    """Return the text block: the summary, and what a person must not miss."""
    if not outcome.warnings and not outcome.next_step:
        return outcome.summary
    parts = [outcome.summary, *(f"Warning: {warning}" for warning in outcome.warnings)]
    if outcome.next_step:
        parts.append(f"Next: {outcome.next_step}")
    return "\n".join(parts)


def structured(outcome: Outcome, call_id: str) -> dict[str, Any]:
    """Return the structured part. A field of the tool's own is never replaced by an added one, the call's id apart."""
    added: dict[str, Any] = {}
    if outcome.next_step:
        added["next_step"] = outcome.next_step
    if outcome.warnings:
        added["warnings"] = outcome.warnings
    if outcome.files:
        added["files"] = [file_entry(file) for file in outcome.files]
    if "approval" in outcome.meta:
        added["approval"] = approval_entry(outcome.meta["approval"])
    return {**added, **outcome.data, "call_id": call_id} if added else {**outcome.data, "call_id": call_id}


def approval_entry(approval: dict[str, Any]) -> dict[str, Any]:
    """Return what is said of an approval in `_meta` as structured results name it."""
    return {_SNAKE.get(name, name): value for name, value in approval.items()}


def file_entry(file: Artefact) -> dict[str, Any]:
    """Return a file as structured results name it."""
    entry = {
        "path": file.path,
        "absolute_path": file.absolute_path,
        "uri": file.uri,
        "media_type": file.media_type,
        "size_bytes": file.size_bytes,
    }
    if file.role:
        entry["role"] = file.role
    return entry


def link(file: Artefact) -> dict[str, Any]:
    """Return a file as a resource link."""
    return {
        "type": "resource_link",
        "uri": file.uri,
        "name": file.path,
        "mimeType": file.media_type,
        "size": file.size_bytes,
    }


def link_text(file: Artefact) -> dict[str, Any]:
    """Return a file as text, for clients that do not know links."""
    return {"type": "text", "text": f"File: {file.path} ({file.media_type}, {file.size_bytes} bytes) {file.uri}"}


def legacy_result(outcome: Outcome, tool_id: str, call_id: str, duration_ms: float) -> dict[str, Any]:
    """Return the result of `tool/call`."""
    result: dict[str, Any] = {
        "tool_id": tool_id,
        "status": "success",
        "data": outcome.data,
        "duration_ms": duration_ms,
        "output_files": [file.absolute_path for file in outcome.files],
        "summary": outcome.summary,
        "warnings": outcome.warnings,
        "next_step": outcome.next_step,
        "files": [file_entry(file) for file in outcome.files],
        "programs": {program.name: program.version for program in outcome.programs},
        "call_id": call_id,
    }
    if "approval" in outcome.meta:
        result["approval"] = approval_entry(outcome.meta["approval"])
    return result


def resource_contents(resource: ResourceContent) -> dict[str, Any]:
    """Return one entry of `resources/read`: text where it is text, else base64."""
    entry: dict[str, Any] = {"uri": resource.uri, "mimeType": resource.media_type}
    if resource.media_type.startswith(_TEXTUAL) or resource.media_type.endswith(("+json", "+xml")):
        try:
            return {**entry, "text": resource.content.decode()}
        except UnicodeDecodeError:
            pass
    return {**entry, "blob": base64.b64encode(resource.content).decode()}
