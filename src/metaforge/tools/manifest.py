"""A tool as the server knows it: read from a cached manifest in a millisecond, nothing started or imported.

A manifest file (`manifest.json` in an adapter's folder) holds one adapter: its id, version, the class that serves
it, and its tools. It is written by `python -m metaforge.tools.generate`, which is the only place that turns
signatures into schemas; a test holds it to the code.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from metaforge.core.debian import install_command
from metaforge.tools.effect import Effect, HoldRule, annotations


@dataclass(frozen=True)
class Need:
    """A program or Python module that a tool cannot work without."""

    kind: str
    """`program` or `module`."""
    name: str
    """The executable or the importable module."""
    apt: str = ""
    """Debian packages that bring it, separated by spaces."""
    extra: str = ""
    """The extra of this package that brings it: `pip install 'metaforge[extra]'`."""
    minimum: str = ""
    """The lowest version known to work; empty when any will do."""
    backports_of: str = ""
    """The Debian release whose own version is too old: there it comes from the release's backports."""

    @property
    def install(self) -> str:
        """The one command that mends its absence."""
        if self.extra:
            return f"pip install 'metaforge[{self.extra}]'"
        if self.backports_of:
            return install_command(self.apt.split(), self.backports_of)
        return f"apt-get install -y {self.apt}" if self.apt else f"install {self.name}"


@dataclass(frozen=True)
class Limits:
    """What one call may use. Zero means the engine's default."""

    max_memory_mb: int = 0
    max_cpu_seconds: int = 0
    max_disk_mb: int = 0


@dataclass(frozen=True)
class Tool:
    """One tool: its schemas, effect, limits and needs."""

    id: str
    adapter_id: str
    name: str
    description: str
    capability: str
    input_schema: dict[str, Any]
    output_schema: dict[str, Any]
    effect: Effect = Effect.DESTROY
    """A tool that nobody classified is treated as destructive."""
    idempotent: bool = False
    phase: int = 1
    timeout_seconds: float = 120.0
    retries: int = 0
    limits: Limits = field(default_factory=Limits)
    needs: tuple[Need, ...] = ()
    runs_caller_code: bool = False
    """Its process is retired after one call, because a caller's own code ran in it."""
    is_quick: bool = False
    """It reads only, leaves no file and answers within milliseconds: a worker may be given several such calls."""
    search_hint: str = ""
    """A phrase by which a client that defers tools finds this one."""
    hold: HoldRule = HoldRule.BY_EFFECT
    session: str = ""
    """Whether it opens (`open`), uses (`use`) or closes (`close`) a session, which has a process of its own."""
    aliases: dict[str, str] = field(default_factory=dict)
    """Other names that arguments are taken under: documented ones without their unit."""

    @cached_property
    def annotations(self) -> dict[str, object]:
        return annotations(self.effect, idempotent=self.idempotent, title=self.name)

    @classmethod
    def from_json(cls, raw: dict[str, Any]) -> "Tool":
        """Read one entry of a manifest's `tools`.

        Raises:
            KeyError, TypeError, ValueError: when the entry is not a tool; the registry quarantines it by name.
        """
        limits = raw.get("resource_limits") or {}
        return cls(
            id=_text(raw, "tool_id"),
            adapter_id=_text(raw, "adapter_id"),
            name=_text(raw, "name"),
            description=_text(raw, "description"),
            capability=_text(raw, "capability", ""),
            input_schema=raw["input_schema"],
            output_schema=raw.get("output_schema") or {},
            effect=Effect(raw.get("effect", Effect.DESTROY)),
            idempotent=bool(raw.get("idempotent", False)),
            phase=int(raw.get("phase", 1)),
            timeout_seconds=float(raw.get("timeout_seconds", 120.0)),
            retries=int(raw.get("retries", 0)),
            limits=Limits(**{k: int(v) for k, v in limits.items()}),
            needs=tuple(Need(**{key: _text(need, key) for key in need}) for need in raw.get("needs", ())),
            runs_caller_code=bool(raw.get("runs_caller_code", False)),
            is_quick=bool(raw.get("is_quick", False)),
            search_hint=_text(raw, "search_hint", ""),
            hold=HoldRule(raw.get("hold", HoldRule.BY_EFFECT)),
            session=_text(raw, "session", ""),
            aliases={str(old): _text(raw["aliases"], old) for old in raw.get("aliases") or ()},
        )


@dataclass(frozen=True)
class AdapterManifest:
    """One adapter and its tools, as its `manifest.json` tells them."""

    adapter_id: str
    version: str
    target: str
    """`module:Class` of its McpToolServer."""
    in_process: bool
    """Served by the server itself instead of a process of its own."""
    tools: tuple[Tool, ...]
    broken: tuple[tuple[str, str], ...] = ()
    """Tools left out, each with the reason."""

    @classmethod
    def from_json(cls, raw: dict[str, Any]) -> "AdapterManifest":
        """Read a whole manifest; a tool that cannot be read is named in `broken`, the others stay."""
        tools: list[Tool] = []
        broken: list[tuple[str, str]] = []
        for entry in raw["tools"]:
            try:
                tools.append(Tool.from_json(entry))
            except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as fault:
                name = str(entry.get("tool_id", "?")) if isinstance(entry, dict) else "?"
                broken.append((name, f"{type(fault).__name__}: {fault}"))
        return cls(
            adapter_id=_text(raw, "adapter_id"),
            version=_text(raw, "version"),
            target=_text(raw, "target", ""),
            in_process=bool(raw.get("in_process", False)),
            tools=tuple(tools),
            broken=tuple(broken),
        )

    def elsewhere(self) -> "AdapterManifest":
        """Return this manifest for an adapter that runs on another machine: nothing of it is needed on this one."""
        return replace(self, tools=tuple(replace(tool, needs=()) for tool in self.tools))


def _text(raw: dict[str, Any], key: str, default: str | None = None) -> str:
    """Return a text of a manifest; what others wrote there may be anything."""
    value = raw[key] if default is None else raw.get(key, default)
    if not isinstance(value, str):
        raise TypeError(f"{key} is of type {type(value).__name__}, it must be a text")
    return value
