"""Say what is wrong with arguments so that the next call is right: every field at once, with the nearest value."""

from collections.abc import Callable
from typing import Any

import jsonschema_rs

from metaforge.core.errors import InvalidArguments, Quarantined
from metaforge.tools.manifest import Tool

_SHOWN_OPTIONS = 12
_MOST_TOLD = 40
"""Wrong fields named in one answer: a model mends no more at once, and senseless ones come by the ten thousand."""
_ACTED_ON = frozenset({"overwrite", "project_id"})
"""What says whether a person is asked, and about what: known before arguments are judged, so by its own name alone."""


class ArgumentJudge:
    """Validates arguments against input schemas; one compiled validator a tool, made at its first call."""

    def __init__(self) -> None:
        self._validators: dict[str, Any] = {}

    def judge(self, tool: Tool, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments when they fit. Null means not given, unless the schema takes null.

        Raises:
            InvalidArguments: `data.fields` maps each wrong field to what was expected.
            Quarantined: the tool's own schema cannot be compiled.
        """
        validator = self._validators.get(tool.id) or self._compile(tool)
        if validator.is_valid(arguments):
            return arguments
        arguments = _without_nulls(arguments)
        if tool.aliases:
            arguments = _renamed(arguments, tool.aliases)
        if validator.is_valid(arguments):
            return arguments
        problems: dict[str, str] = {}
        try:
            for fault in validator.iter_errors(arguments):
                _explain(fault, tool.input_schema, problems)
                if len(problems) > _MOST_TOLD:
                    break
        except ValueError as fault:  # what it raises for nesting beyond its own limit
            raise InvalidArguments(f"{tool.id} was not run: its arguments cannot be followed ({fault})") from None
        told = {_cut(name): _cut(text) for name, text in list(problems.items())[:_MOST_TOLD]}
        listed = "\n".join(f"- {name}: {text}" for name, text in told.items())
        more = "\n- and more" if len(problems) > len(told) else ""
        count = "1 argument is" if len(told) == 1 else f"{len(told)}{' or more' if more else ''} arguments are"
        raise InvalidArguments(f"{tool.id} was not run: {count} wrong.\n{listed}{more}", fields=told)

    def _compile(self, tool: Tool) -> Any:
        try:
            validator = jsonschema_rs.validator_for(tool.input_schema)
        except (ValueError, jsonschema_rs.ReferencingError) as fault:
            raise Quarantined(
                f"{tool.id} cannot be called: its input schema is broken ({fault})", tool_id=tool.id, reason=str(fault)
            ) from None
        self._validators[tool.id] = validator
        return validator


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return value


def _renamed(arguments: dict[str, Any], aliases: dict[str, str]) -> dict[str, Any]:
    """Give arguments their full names; one that is there under both stays, to be refused."""

    def full(name: str) -> str:
        meant = aliases.get(name, name)
        return name if meant in arguments or meant in _ACTED_ON else meant

    return {full(name): value for name, value in arguments.items()}


def _explain(fault: Any, schema: dict[str, Any], problems: dict[str, str], depth: int = 0) -> None:
    path = ".".join(str(part) for part in fault.instance_path)
    kind = fault.kind
    if kind.name == "required":
        name = _join(path, kind.property)
        problems[name] = "is required" + _described(schema, kind.property, path)
    elif kind.name in ("additionalProperties", "unevaluatedProperties"):
        for name in kind.unexpected[: _MOST_TOLD + 1]:
            problems[_join(path, name)] = "is not an argument" + _nearest_name(fault, schema, name)
    elif kind.name in ("anyOf", "oneOf") and depth < 4 and hasattr(kind, "context"):
        _explain_branches(fault, schema, problems, path, depth)
    else:
        problems.setdefault(path or "arguments", _WORDS.get(kind.name, _plain)(fault))


def _explain_branches(fault: Any, schema: dict[str, Any], problems: dict[str, str], path: str, depth: int) -> None:
    """Of several allowed shapes, explain the one the caller came closest to."""
    branches = [branch for branch in fault.kind.context if branch]
    if not branches:
        problems.setdefault(path or "arguments", fault.message)
        return
    same_type = [b for b in branches if not any(e.kind.name == "type" and not _deeper(e, fault) for e in b)]
    for each in min(same_type or branches, key=lambda branch: (_wrong_constants(branch), len(branch))):
        _explain(each, schema, problems, depth + 1)


def _wrong_constants(branch: Any) -> int:
    """A branch whose discriminator does not fit is not the one the caller meant."""
    return sum(1 for error in branch if error.kind.name in ("const", "enum"))


def _deeper(inner: Any, outer: Any) -> bool:
    return len(list(inner.instance_path)) > len(list(outer.instance_path))


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else str(name)


def _cut(text: str) -> str:
    return text if len(text) <= 1000 else text[:1000] + "..."


def _described(schema: dict[str, Any], name: str, path: str) -> str:
    if path:
        return ""
    about = schema.get("properties", {}).get(name, {}).get("description", "")
    return f" ({about.rstrip('.')})" if about else ""


def _nearest_name(fault: Any, schema: dict[str, Any], name: str) -> str:
    import difflib

    if list(fault.instance_path):
        return ""
    known = list(schema.get("properties", {}))
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    return f"; did you mean {close[0]}?" if close else f"; there are: {', '.join(known[:_SHOWN_OPTIONS])}"


def _plain(fault: Any) -> str:
    return str(fault.message)


def _options(fault: Any) -> str:
    import difflib

    options = [str(option) for option in fault.kind.options]
    shown = ", ".join(options[:_SHOWN_OPTIONS]) + (", ..." if len(options) > _SHOWN_OPTIONS else "")
    close = difflib.get_close_matches(str(fault.instance), options, n=1, cutoff=0.4)
    nearest = f"; nearest: {close[0]}" if close else ""
    return f"{fault.instance!r} is not allowed, it takes one of {shown}{nearest}"


def _type(fault: Any) -> str:
    return f"{_short(fault.instance)} is not of type {' or '.join(fault.kind.types)}"


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


_WORDS: dict[str, Callable[[Any], str]] = {
    "enum": _options,
    "type": _type,
    "minimum": lambda f: f"{f.instance} is too small, the smallest allowed is {f.kind.limit:g}",
    "maximum": lambda f: f"{f.instance} is too large, the largest allowed is {f.kind.limit:g}",
    "exclusiveMinimum": lambda f: f"{f.instance} is too small, it must be greater than {f.kind.limit:g}",
    "exclusiveMaximum": lambda f: f"{f.instance} is too large, it must be less than {f.kind.limit:g}",
    "minItems": lambda f: f"has {len(f.instance)} items, it takes at least {f.kind.limit}",
    "maxItems": lambda f: f"has {len(f.instance)} items, it takes at most {f.kind.limit}",
    "minLength": lambda f: f"has {len(f.instance)} characters, it takes at least {f.kind.limit}",
    "maxLength": lambda f: f"has {len(f.instance)} characters, it takes at most {f.kind.limit}",
}
