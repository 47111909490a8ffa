"""The question that a person is asked in their client, and what their answer means. No I/O."""

from collections.abc import Mapping
from typing import Any

import orjson

from metaforge.approvals.hold import Answered
from metaforge.approvals.model import Request
from metaforge.approvals.showing import shown_arguments

SHOWN_COUNT = 8
SHOWN_CHARS = 120
NOTE_CHARS = 280
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "approve": {"type": "boolean", "title": "Approve", "description": "Run exactly this call, once."},
        "note": {
            "type": "string",
            "title": "Note",
            "description": "Why; the agent is told.",
            "maxLength": NOTE_CHARS,
        },
    },
    "required": ["approve"],
}


def question(request: Request) -> str:
    """Return what a person is asked: what would happen, for whom, with which arguments, and by when to answer.

    Every value stands on one line and is quoted as JSON, so that no argument can pass for a part of the question.
    """
    lines = [f"{_plain(request.title)} ({request.tool_id}) needs your approval: {request.reason_held}."]
    if request.summary:
        lines.append(f"It would: {_plain(request.summary)}")
    if request.project_id:
        lines.append(f"Project: {_plain(request.project_id)}")
    lines.append(f"Asked by: {asker(request)}")
    lines.extend(_argument_lines(request.arguments))
    lines.append(
        f"Answer within {request.window_seconds:g} seconds. After that this request expires and {request.tool_id} is "
        "not run."
    )
    lines.append(f"(approval {request.approval_id})")
    return "\n".join(lines)


def asker(request: Request) -> str:
    """Return who asks: the client, and the actor behind it."""
    caller = request.caller
    client = " ".join(filter(None, (caller.client_name, caller.client_version))) or "an unnamed client"
    return f"{_plain(client)} ({_plain(caller.actor_id)})"


def _argument_lines(arguments: Mapping[str, Any]) -> list[str]:
    if not arguments:
        return ["Arguments: none"]
    shown = shown_arguments(arguments)
    lines = ["Arguments:", *(f"- {_plain(name)}: {_value(shown[name])}" for name in list(shown)[:SHOWN_COUNT])]
    if len(shown) > SHOWN_COUNT:
        lines.append(
            f"- and {len(shown) - SHOWN_COUNT} more: {', '.join(map(_plain, list(shown)[SHOWN_COUNT:]))[:200]}"
        )
    return lines


def _value(value: Any) -> str:
    if isinstance(value, str) and len(value) > 4 * SHOWN_CHARS:
        return f"{_clipped(_json(value[: 2 * SHOWN_CHARS]))} ({len(value)} characters)"
    return _clipped(_json(value))


def _json(value: Any) -> str:
    return _plain(orjson.dumps(value, default=str).decode())


def _clipped(text: str) -> str:
    return text if len(text) <= SHOWN_CHARS else text[: SHOWN_CHARS - 4] + " ..."


def _plain(text: str) -> str:
    """Return text on one line, without characters that cannot be seen or that turn the writing round."""
    return "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in text)[:1000]


def read_answer(reply: Mapping[str, Any]) -> Answered:
    """Return what a client's reply to the question says."""
    content = reply.get("content")
    filled = content if isinstance(content, Mapping) else {}
    approve, note = filled.get("approve"), filled.get("note")
    return Answered(
        str(reply.get("action", "")),
        approve if isinstance(approve, bool) else None,
        note[:NOTE_CHARS] if isinstance(note, str) else "",
    )
