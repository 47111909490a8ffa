"""A call's arguments as people see them: without secrets; and back again, where a person changed them. No I/O."""

from collections.abc import Mapping
from typing import Any

from metaforge.core.errors import InvalidArguments
from metaforge.telemetry.redaction import REDACTED, redact


def shown_arguments(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments with every secret replaced by `[redacted]`."""
    shown: dict[str, Any] = redact(dict(arguments))
    return shown


def restored(edited: Mapping[str, Any], original: Mapping[str, Any]) -> dict[str, Any]:
    """Return edited arguments with what was hidden from the person put back.

    Args:
        edited: arguments as a person sends them, made from the shown ones.
        original: the complete ones.

    Raises:
        InvalidArguments: a mark of redaction stands where nothing was hidden.
    """
    complete = {name: _restored(value, original.get(name), redact({name: original.get(name)})[name], name)
                for name, value in edited.items()}  # fmt: skip
    return complete


def _restored(edited: Any, original: Any, shown: Any, path: str) -> Any:
    if type(edited) is type(shown) and edited == shown:
        return original
    if isinstance(edited, Mapping):
        before, seen = _mapping(original), _mapping(shown)
        return {name: _restored(value, before.get(name), seen.get(name), f"{path}.{name}")
                for name, value in edited.items()}  # fmt: skip
    if isinstance(edited, list):
        before_list, seen_list = _sequence(original), _sequence(shown)
        return [
            _restored(value, _at(before_list, index), _at(seen_list, index), f"{path}[{index}]")
            for index, value in enumerate(edited)
        ]
    if isinstance(edited, str) and REDACTED in edited:
        raise InvalidArguments(
            f"{path} holds {REDACTED}, which stands for nothing there: leave a hidden value where it was, "
            "or write the whole value",
            fields={path: "a value that is not redacted"},
        )
    return edited


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _sequence(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else []


def _at(values: list[Any], index: int) -> Any:
    return values[index] if index < len(values) else None
