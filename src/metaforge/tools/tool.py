"""`@tool`: an adapter's typed method is a tool; its signature and docstring are its schema.

Imported by adapters and by the manifest generator, never on the server's own start-up path.
"""

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from types import GenericAlias, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, create_model

from metaforge.core.errors import InvalidArguments
from metaforge.protocol.messages import NeedMessage, ResourceLimits, ToolManifest
from metaforge.tools.context import Answer
from metaforge.tools.effect import Effect, HoldRule
from metaforge.tools.manifest import Need

F = TypeVar("F", bound=Callable[..., Any])

DEFAULT_MEMORY_MB = 2048
_UNIT = re.compile(r"_(mm|deg)$")


@dataclass(frozen=True)
class ToolMark:
    """What `@tool` notes on a method."""

    effect: Effect
    capability: str
    title: str
    idempotent: bool
    timeout_seconds: float
    retries: int
    phase: int
    limits: ResourceLimits
    needs: tuple[Need, ...]
    runs_caller_code: bool
    is_quick: bool
    search_hint: str
    hold: HoldRule
    session: str
    unitless_names: bool


def tool(
    *,
    effect: Effect,
    capability: str,
    title: str,
    idempotent: bool = False,
    timeout_seconds: float = 120.0,
    retries: int = 0,
    phase: int = 1,
    max_memory_mb: int = DEFAULT_MEMORY_MB,
    max_cpu_seconds: int = 600,
    max_disk_mb: int = 512,
    needs: tuple[Need, ...] = (),
    runs_caller_code: bool = False,
    is_quick: bool = False,
    search_hint: str = "",
    hold: HoldRule = HoldRule.BY_EFFECT,
    session: str = "",
    unitless_names: bool = False,
) -> Callable[[F], F]:
    """Mark a method of an McpToolServer as a tool.

    Args:
        effect: what a call leaves behind.
        capability: the category a client can filter by, such as `stress_analysis`.
        title: what a person reads.
        idempotent: whether the same call twice leaves the same state; needed for `retries`.
        timeout_seconds: the longest it may run.
        retries: how often to try again after a crash, a deadline or a lost connection.
        needs: programs and modules this tool needs beside those of its adapter.
        runs_caller_code: whether code of the caller runs in the process, which is then retired.
        is_quick: whether it reads only, leaves no file and answers within milliseconds; its worker may then be given
            the next such call before it has answered this one.
        hold: whether a person is asked first, where the effect alone does not say.
        session: `open`, `use` or `close` a session, which has a process of its own and is named by `session_id`.
        unitless_names: whether an argument may also be named without its unit, as `length` for `length_mm`.
    """
    if retries and not idempotent:
        raise ValueError("retries need idempotent=True: a call that may have acted is never repeated")
    if is_quick and (effect is not Effect.READ or runs_caller_code):
        raise ValueError("is_quick needs effect=Effect.READ, and no code of the caller")
    limits = ResourceLimits(max_memory_mb=max_memory_mb, max_cpu_seconds=max_cpu_seconds, max_disk_mb=max_disk_mb)
    mark = ToolMark(
        effect, capability, title, idempotent, timeout_seconds, retries, phase, limits, needs,
        runs_caller_code, is_quick, search_hint, hold, session, unitless_names,
    )  # fmt: skip

    def attach(function: F) -> F:
        function.__tool_mark__ = mark  # type: ignore[attr-defined]
        return function

    return attach


class MarkedTool:
    """A marked method, bound to its adapter: schema, validation and the call itself."""

    def __init__(self, adapter_id: str, needs: tuple[Need, ...], method: Callable[..., Any]) -> None:
        self.adapter_id = adapter_id
        self.method = method
        self.mark: ToolMark = method.__tool_mark__  # type: ignore[attr-defined]
        self.id = f"{adapter_id}.{method.__name__}"
        self.needs = needs + self.mark.needs

    @cached_property
    def arguments(self) -> type[BaseModel]:
        hints = get_type_hints(self.method, include_extras=True)
        about = _split_docstring(self.method)[1]
        fields: dict[str, Any] = {}
        for name, parameter in inspect.signature(self.method).parameters.items():
            if name == "ctx":
                continue
            default = ... if parameter.default is parameter.empty else parameter.default
            fields[name] = (hints[name], Field(default, description=about.get(name)))
        return create_model(self.method.__name__, __config__=ConfigDict(extra="forbid"), **fields)

    @cached_property
    def result_type(self) -> TypeAdapter[Any]:
        annotation = get_type_hints(self.method, include_extras=True)["return"]
        if isinstance(annotation, GenericAlias) or getattr(annotation, "__origin__", None) is Answer:
            annotation = get_args(annotation)[0]
        return TypeAdapter(annotation)

    @cached_property
    def is_async(self) -> bool:
        return inspect.iscoroutinefunction(self.method)

    @cached_property
    def _plain_types(self) -> dict[str, tuple[type, ...]] | None:
        """The types of each parameter where all are plain JSON ones without conditions, else None."""
        hints = get_type_hints(self.method, include_extras=True)
        plain: dict[str, tuple[type, ...]] = {}
        for name in inspect.signature(self.method).parameters:
            if name != "ctx":
                hint = hints[name]
                plain[name] = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
        # An integer would stay one where the method says float.
        return plain if all(set(types) <= {str, int, bool, type(None)} for types in plain.values()) else None

    @cached_property
    def _required(self) -> frozenset[str]:
        parameters = inspect.signature(self.method).parameters.values()
        return frozenset(each.name for each in parameters if each.default is each.empty and each.name != "ctx")

    def fits(self, arguments: dict[str, Any]) -> bool:
        """Return whether arguments can be passed as they are; False only means that `validate` must look."""
        plain = self._plain_types
        if plain is None or not arguments.keys() >= self._required:
            return False
        return all(type(value) in plain.get(name, ()) for name, value in arguments.items())

    def manifest(self) -> ToolManifest:
        """Return the tool's documented description with both schemas."""
        mark = self.mark
        return ToolManifest(
            tool_id=self.id,
            adapter_id=self.adapter_id,
            name=mark.title,
            description=_split_docstring(self.method)[0],
            capability=mark.capability,
            input_schema=_tidy(self.arguments.model_json_schema()),
            output_schema=_tidy(self.result_type.json_schema(mode="serialization")),
            phase=mark.phase,
            resource_limits=mark.limits,
            effect=mark.effect.value,
            idempotent=mark.idempotent,
            timeout_seconds=mark.timeout_seconds,
            retries=mark.retries,
            needs=[NeedMessage(**vars(need)) for need in self.needs],
            runs_caller_code=mark.runs_caller_code,
            is_quick=mark.is_quick,
            search_hint=mark.search_hint,
            hold=mark.hold.value,
            session=mark.session,
            aliases=self.aliases,
        )

    @cached_property
    def aliases(self) -> dict[str, str]:
        """Other names that arguments are taken under."""
        names = inspect.signature(self.method).parameters if self.mark.unitless_names else ()
        shortened = {_UNIT.sub("", name): name for name in names if _UNIT.search(name)}
        return {short: name for short, name in shortened.items() if short not in names}

    def validate(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Turn JSON arguments into typed ones.

        Raises:
            InvalidArguments: every wrong field named at once in `data.fields`.
        """
        if self.aliases:
            arguments = {self.aliases.get(name, name): value for name, value in arguments.items()}
        try:
            parsed = self.arguments.model_validate(arguments)
        except ValidationError as fault:
            wrong = {".".join(map(str, e["loc"])): e["msg"] for e in fault.errors()}
            listed = "; ".join(f"{name}: {text}" for name, text in wrong.items())
            raise InvalidArguments(f"{self.id}: {listed}", fields=wrong) from None
        return {name: getattr(parsed, name) for name in type(parsed).model_fields}

    def dump(self, data: Any) -> dict[str, Any]:
        """Return the tool's data as JSON-ready fields."""
        dumped: dict[str, Any] = self.result_type.dump_python(data, mode="json", exclude_none=True)
        return dumped


_ARGUMENT = re.compile(r"^ {4}(\w+): (.+)$")


def _split_docstring(function: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """Split a Google-style docstring into its prose and its `Args:` entries."""
    prose, _, rest = (inspect.getdoc(function) or "").partition("\nArgs:\n")
    about: dict[str, str] = {}
    name = ""
    for line in rest.splitlines():
        if match := _ARGUMENT.match(line):
            name, about[match[1]] = match[1], match[2]
        elif line.startswith(" " * 8) and name:
            about[name] += " " + line.strip()
        elif line.strip():
            break
    return re.sub(r"\s*\n\s*", " ", prose.strip()), about


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Say an optional X as X: absent and null mean the same, and the second shape costs a model tokens."""
    branches = schema.get("anyOf")
    if not branches or {"type": "null"} not in branches:
        return schema
    rest = [branch for branch in branches if branch != {"type": "null"}]
    others = {key: value for key, value in schema.items() if key != "anyOf"}
    return {**rest[0], **others} if len(rest) == 1 else {**others, "anyOf": rest}


def _without_places(schema: dict[str, Any]) -> dict[str, Any]:
    """Say a list of so many alike as that: the kind once, and how many."""
    places = schema.get("prefixItems")
    if not places or any(place != places[0] for place in places) or schema.get("minItems") != schema.get("maxItems"):
        return schema
    return {**{key: value for key, value in schema.items() if key != "prefixItems"}, "items": places[0]}


def _tidy(schema: dict[str, Any]) -> dict[str, Any]:
    """Drop what a model need not read: generated titles and null defaults, the same place said several times."""

    def walk(node: Any, *, is_properties: bool = False) -> Any:
        if isinstance(node, list):
            return [walk(item) for item in node]
        if not isinstance(node, dict):
            return node
        kept = {
            key: walk(value, is_properties=not is_properties and key in ("properties", "$defs"))
            for key, value in node.items()
            if is_properties or key != "title" or not isinstance(value, str)
        }
        if is_properties:
            return kept
        if kept.get("default", ...) is None:
            del kept["default"]
        return _without_null(_without_places(kept))

    tidied: dict[str, Any] = walk(schema)
    return tidied
