"""What a worker said, held to the shape of an answer: a caller's own code may have written it."""

from functools import lru_cache
from typing import Any

import jsonschema_rs
import orjson

from metaforge.core.errors import FailureMode, ToolError
from metaforge.tools.manifest import Tool

_OURS = frozenset({"call_id", "approval", "warnings", "next_step", "files"})
"""What the server itself puts beside a tool's own fields."""
_SELDOM = ("files", "pictures", "output_files", "programs", "warnings")
_NOUNS: dict[Any, str] = {dict: "an object", list: "a list", str: "text"}


def checked(tool: Tool, answer: Any) -> dict[str, Any]:
    """Return the `result` of a `tool/call` whose every known field has its kind.

    The fields of a tool that ran a caller's code are held to its output schema as well: that process is not believed.

    Raises:
        ToolError: kind `bad_answer`, naming the field.
    """
    if not isinstance(answer, dict):
        raise _bad(tool, "the result", dict)
    if not _is_plain(answer):
        _check_kinds(tool, answer)
    return _distrusted(tool, answer) if tool.runs_caller_code else answer


def _check_kinds(tool: Tool, answer: dict[str, Any]) -> None:
    for name, kind in (("data", dict), ("programs", dict), ("files", list), ("pictures", list), ("warnings", list)):
        if not isinstance(answer.get(name, kind()) or kind(), kind):
            raise _bad(tool, name, kind)
    for name in ("files", "pictures"):
        if not all(isinstance(entry, dict) for entry in answer.get(name) or ()):
            raise _bad(tool, f"an entry of {name}", dict)
    for name in ("warnings", "output_files"):
        listed = answer.get(name) or []
        if not isinstance(listed, list) or not all(isinstance(entry, str) for entry in listed):
            raise _bad(tool, f"an entry of {name}", str)
    for name in ("summary", "next_step"):
        if not isinstance(answer.get(name) or "", str):
            raise _bad(tool, name, str)


def without_files(tool: Tool, answer: dict[str, Any]) -> dict[str, Any]:
    """Return a checked answer that names no files.

    Raises:
        ToolError: kind `bad_answer`.
    """
    if any(answer.get(name) for name in ("files", "pictures", "output_files")):
        raise _refusal(tool, "a quick tool leaves no files")
    return answer


def _is_plain(answer: dict[str, Any]) -> bool:
    """Return whether an answer has nothing but fields, a summary and a next step, as most have; a quick look."""
    return (
        type(answer.get("data")) is dict
        and type(answer.get("summary")) is str
        and type(answer.get("next_step", "")) is str
        and not any(answer.get(name) for name in _SELDOM)
    )


def _distrusted(tool: Tool, answer: dict[str, Any]) -> dict[str, Any]:
    data = {name: value for name, value in (answer.get("data") or {}).items() if name not in _OURS}
    if tool.output_schema:
        fault = next(_validator(orjson.dumps(tool.output_schema)).iter_errors(data), None)
        if fault is not None:
            place = ".".join(map(str, fault.instance_path)) or "its fields"
            raise _refusal(tool, f"{place}: {str(fault.message)[:200]}")
    return {**answer, "data": data}


@lru_cache(maxsize=8)
def _validator(schema: bytes) -> Any:
    return jsonschema_rs.validator_for(orjson.loads(schema))


def _bad(tool: Tool, name: str, kind: type) -> ToolError:
    return _refusal(tool, f"{name} is not {_NOUNS[kind]}")


def _refusal(tool: Tool, reason: str) -> ToolError:
    fix = (
        "leave the worker's own descriptors and modules alone in the script"
        if tool.runs_caller_code
        else "this is a fault of the adapter: report it with the call id"
    )
    return ToolError(
        f"The answer of {tool.id} is refused: {reason}. Nothing was placed in the workspace",
        kind="bad_answer",
        fix=fix,
        failure_mode=FailureMode.ENVIRONMENT,
    )
