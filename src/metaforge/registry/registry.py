"""`ToolRegistry`: the catalogue of tools, where each comes from and whether it can run here."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Container, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from metaforge.core.errors import Quarantined, ToolUnavailable, UnknownTool
from metaforge.registry.lint import fault_of, inner_fault_of, mended
from metaforge.registry.names import NameIndex, fold
from metaforge.registry.probe import Probe
from metaforge.tools.manifest import Tool
from metaforge.tools.source import AdapterHealth, Joinable, Supervised, ToolSource, Trouble

if TYPE_CHECKING:
    from metaforge.protocol.messages import HealthStatus, ToolManifest
    from metaforge.tools.config import AdapterConfig

HEALTH_SECONDS = 3.0
"""How long one adapter may take to answer a health check."""

QUARANTINED = "quarantined: "
"""What the reason of a tool begins with whose own manifest entry cannot be used."""

SourceFactory = Callable[[str, "AdapterConfig"], Awaitable[ToolSource]]


@dataclass(frozen=True)
class Unavailable:
    """Why tools of one adapter cannot run here, and the command that mends it."""

    adapter_id: str
    reason: str
    install: str
    tools: tuple[str, ...]
    retry_after_seconds: float | None = None
    """When it is tried again, where it is; its tools stay listed meanwhile."""

    def within(self, served: Container[str]) -> "Unavailable | None":
        """Return what of it concerns the tools of a profile; None when nothing does."""
        kept = tuple(tool_id for tool_id in self.tools if tool_id in served)
        return replace(self, tools=kept) if kept or not self.tools else None

    def wire(self) -> dict[str, Any]:
        entry: dict[str, Any] = {"adapterId": self.adapter_id, "reason": self.reason, "tools": list(self.tools)}
        if self.install:
            entry["install"] = self.install
        if self.retry_after_seconds is not None:
            entry["retryAfterSeconds"] = self.retry_after_seconds
        return entry


class Expected(Protocol):
    """An adapter that is not there yet."""

    def arrived(self) -> ToolSource | None:
        """Return its source, once it is there; nobody is waited for."""
        ...

    def trouble(self) -> Trouble:
        """Return why it is not there, and when it is tried again."""
        ...


class ToolRegistry:
    """Central catalogue of tools.

    Registered tools never disappear because a program is missing: they are unlisted, named as unavailable with the
    command that mends it, and a call to one says the same.
    """

    def __init__(self, probe: Probe, *, phase: int = 2, make_source: SourceFactory | None = None) -> None:
        self.probe = probe
        self.phase = phase
        self._make_source = make_source
        self._sources: dict[str, ToolSource] = {}
        self._tools: dict[str, Tool] = {}
        self._quarantine: dict[str, tuple[str, str]] = {}
        self._dropped: dict[str, tuple[str, str]] = {}
        self._expected: dict[str, Expected] = {}
        self._names: NameIndex | None = None
        self.mended: dict[str, tuple[str, ...]] = {}
        """What was put right in the schemas of tools that other people's adapters bring."""

    # -- registering ---------------------------------------------------------------------------------------------

    def add_source(self, source: ToolSource, *, is_checked: bool = False) -> None:
        """Register an adapter and its tools. A tool that cannot be listed is quarantined by name.

        Args:
            source: serves them.
            is_checked: whether its schemas are known to be sound, as those that ship are.
        """
        manifest = source.manifest
        if manifest.adapter_id in self._sources:
            raise ValueError(f"adapter {manifest.adapter_id} is already registered")
        self._sources[manifest.adapter_id] = source
        taken = {fold(tool_id): tool_id for tool_id in self._tools}
        for name, reason in manifest.broken:
            self._quarantine[name] = (manifest.adapter_id, reason)
        for tool in manifest.tools:
            notes: tuple[str, ...] = ()
            if not is_checked:
                tool, notes = mended(tool)
            reason = fault_of(tool) or ("" if is_checked else inner_fault_of(tool))
            if not reason and fold(tool.id) in taken:
                reason = f"its id collides with {taken[fold(tool.id)]} once separators are folded"
            if reason:
                self._quarantine[tool.id] = (manifest.adapter_id, reason)
                continue
            if notes:
                self.mended[tool.id] = notes
            taken[fold(tool.id)] = tool.id
            self._tools[tool.id] = tool
        self._names = None

    def drop_adapter(self, adapter_id: str, reason: str, install: str = "") -> None:
        """Note an adapter that could not be registered at all, so that listings and health can say why."""
        self._dropped[adapter_id] = (reason, install)

    def expect(self, adapter_id: str, expected: "Expected") -> None:
        """Register an adapter as soon as it has arrived; until then its tools are unavailable, with the reason."""
        self._expected[adapter_id] = expected
        self._welcome()

    def _welcome(self) -> None:
        """Register the adapters that have arrived meanwhile."""
        for adapter_id, expected in list(self._expected.items()):
            try:
                source = expected.arrived()
            except ToolUnavailable as fault:
                del self._expected[adapter_id]
                self.drop_adapter(adapter_id, fault.message)
                continue
            if source is not None:
                del self._expected[adapter_id]
                self.add_source(source)

    async def register_adapter(self, adapter_id: str, config: "AdapterConfig") -> None:
        """Register an adapter by its configuration and discover its tools; more addresses of one share its calls.

        Raises:
            ToolUnavailable: it is registered already, cannot be reached, or this registry cannot make one.
        """
        known = self._sources.get(adapter_id)
        if isinstance(known, Joinable) and config.is_remote and set(config.addresses) - set(known.urls):
            known.join(config.addresses)
            return
        if known is not None:
            raise ToolUnavailable(f"{adapter_id} is registered already", reason="registered already")
        if self._make_source is None:
            raise ToolUnavailable(f"this registry cannot make {adapter_id}: it was given no source factory")
        source = await self._make_source(adapter_id, config)
        if adapter_id in self._sources:
            await source.close()
            raise ToolUnavailable(f"{adapter_id} was registered meanwhile", reason="registered already")
        self.add_source(source)
        self._dropped.pop(adapter_id, None)
        self._expected.pop(adapter_id, None)

    # -- asking --------------------------------------------------------------------------------------------------

    def source(self, adapter_id: str) -> ToolSource | None:
        """Return the adapter's source, or None."""
        return self._sources.get(adapter_id)

    def adapter_version(self, adapter_id: str) -> str:
        """Return the version of a registered adapter, or an empty string."""
        source = self._sources.get(adapter_id)
        return source.manifest.version if source else ""

    def sources(self) -> Iterator[ToolSource]:
        yield from self._sources.values()

    def knows(self, tool_id: str) -> bool:
        """Return whether a loaded adapter has a tool of this exact id, whether or not it can run here."""
        return tool_id in self._tools or tool_id in self._quarantine

    def find(self, name: str, served: Collection[str] | None = None) -> Tool:
        """Return the tool that a caller's name means.

        Args:
            name: an id, or one that was meant to be.
            served: ids that an error may name; None for all.

        Raises:
            UnknownTool: nothing answers to it, or two do; the closest are named.
            Quarantined: its own schema is broken.
        """
        tool = self._tools.get(name)
        if tool is not None:
            return tool
        if self._expected:
            self._welcome()
        matches = self.names.matches(name)
        if len(matches) == 1:
            return self._tools[matches[0]]
        if name in self._quarantine:
            adapter_id, reason = self._quarantine[name]
            raise Quarantined(
                f"{name} is left out: {reason}. The adapter {adapter_id} must mend its manifest",
                tool_id=name, reason=reason,
            )  # fmt: skip
        if not matches and (dropped := self._dropped_of(name)) is not None:
            raise dropped
        raise self.unknown(name, matches, served)

    def _dropped_of(self, name: str) -> ToolUnavailable | None:
        """Return the error for a tool of an adapter that could not be registered: it may well exist."""
        away = [*self._dropped, *self._expected]
        adapter_id = next((each for each in away if fold(name).startswith(f"{fold(each)}_")), None)
        if adapter_id is None:
            return None
        if adapter_id in self._expected:
            trouble = self._expected[adapter_id].trouble()
            return ToolUnavailable(
                f"{name} cannot run: {trouble.reason}. It is asked again in {trouble.retry_after_seconds:.0f} s",
                tool_id=name, reason=trouble.reason, install="", retry_after_seconds=trouble.retry_after_seconds,
            )  # fmt: skip
        reason, install = self._dropped[adapter_id]
        mend = f" To mend it: {install}" if install else ""
        return ToolUnavailable(
            f"{name} cannot run: {adapter_id} is not available: {reason}.{mend}",
            tool_id=name, reason=reason, install=install,
        )  # fmt: skip

    def unknown(
        self, name: str, matches: list[str] | None = None, served: Collection[str] | None = None
    ) -> UnknownTool:
        """Return the error for a name nothing answers to."""
        names = self.names if served is None else NameIndex(each for each in self._tools if each in served)
        if matches:
            text = f"Tool name {name} is ambiguous: it may mean {' or '.join(matches)}. Use the exact id"
            closest = matches
        else:
            closest = names.closest(name)
            text = f"Tool not found: {name}" + (f". Did you mean: {', '.join(closest)}" if closest else "")
        return UnknownTool(text, tool_id=name, did_you_mean=closest, tool_count=len(names))

    @property
    def names(self) -> NameIndex:
        if self._names is None:
            self._names = NameIndex(self._tools)
        return self._names

    @property
    def tool_count(self) -> int:
        return len(self._tools)

    def unavailable_reason(self, tool_id: str) -> tuple[str, str] | None:
        """Return (reason, the command that mends it) when a registered tool cannot run here, else None."""
        tool = self._tools[tool_id]
        missing = self.probe.missing(tool.needs)
        if not missing:
            return None
        reason = "; ".join(f"{need.kind} {need.name} is not installed" for need in missing)
        return reason, " && ".join(dict.fromkeys(need.install for need in missing))

    def listed(self) -> list[Tool]:
        """Return the tools that can run here, in registration order, none of a later phase."""
        if self._expected:
            self._welcome()
        return [
            tool for tool in self._tools.values() if tool.phase <= self.phase and not self.probe.missing(tool.needs)
        ]

    def unavailable(self) -> list[Unavailable]:
        """Return what is not listed and why, grouped by adapter and reason."""
        grouped: dict[tuple[str, str, str], list[str]] = {}
        for tool in self._tools.values():
            if tool.phase <= self.phase and (told := self.unavailable_reason(tool.id)):
                grouped.setdefault((tool.adapter_id, *told), []).append(tool.id)
        for tool_id, (adapter_id, reason) in self._quarantine.items():
            grouped.setdefault((adapter_id, f"{QUARANTINED}{reason}", ""), []).append(tool_id)
        for adapter_id, (reason, install) in self._dropped.items():
            grouped.setdefault((adapter_id, reason, install), [])
        return [*(Unavailable(*key, tuple(tools)) for key, tools in grouped.items()), *self._in_trouble()]

    def _in_trouble(self) -> Iterator[Unavailable]:
        for adapter_id, expected in self._expected.items():
            away = expected.trouble()
            yield Unavailable(adapter_id, away.reason, "", (), away.retry_after_seconds)
        for adapter_id, source in self._sources.items():
            if isinstance(source, Supervised) and (trouble := source.trouble()) is not None:
                tools = tuple(tool.id for tool in source.manifest.tools if tool.id in self._tools)
                yield Unavailable(adapter_id, trouble.reason, "", tools, trouble.retry_after_seconds)

    # -- the documented interface --------------------------------------------------------------------------------

    async def get_tool(self, tool_id: str) -> "ToolManifest | None":
        """Return a tool's manifest by its exact id."""
        tool = self._tools.get(tool_id)
        return None if tool is None else _manifest(tool)

    async def list_tools(
        self, adapter_id: str | None = None, capability: str | None = None, phase: int | None = None
    ) -> "list[ToolManifest]":
        """Return manifests, filtered; `phase` keeps tools available in that phase."""
        return [
            _manifest(tool)
            for tool in self._tools.values()
            if (adapter_id is None or tool.adapter_id == adapter_id)
            and (capability is None or tool.capability == capability)
            and (phase is None or tool.phase <= phase)
        ]

    async def measure_health(self) -> list[AdapterHealth]:
        """Ask every adapter at once, three seconds each."""
        self._welcome()
        return list(await asyncio.gather(*(source.health(HEALTH_SECONDS) for source in self._sources.values())))

    async def health_check(self, adapter_id: str) -> "HealthStatus":
        """Check one adapter.

        Raises:
            ToolUnavailable: no such adapter.
        """
        source = self._sources.get(adapter_id)
        if source is None:
            raise ToolUnavailable(f"no adapter {adapter_id} is registered; there are: {', '.join(self._sources)}")
        return _status(await source.health(HEALTH_SECONDS))

    async def health_check_all(self) -> "dict[str, HealthStatus]":
        """Check every adapter at once."""
        return {health.adapter_id: _status(health) for health in await self.measure_health()}

    async def get_healthy_adapter(self, tool_id: str) -> str | None:
        """Return the id of the adapter that can serve the tool now, or None."""
        tool = self._tools.get(tool_id)
        if tool is None or self.unavailable_reason(tool_id):
            return None
        health = await self._sources[tool.adapter_id].health(HEALTH_SECONDS)
        return tool.adapter_id if health.reachable else None


def _manifest(tool: Tool) -> "ToolManifest":
    from metaforge.protocol.messages import NeedMessage, ResourceLimits, ToolManifest

    return ToolManifest(
        tool_id=tool.id, adapter_id=tool.adapter_id, name=tool.name, description=tool.description,
        capability=tool.capability, input_schema=tool.input_schema, output_schema=tool.output_schema,
        phase=tool.phase, effect=tool.effect.value, idempotent=tool.idempotent,
        timeout_seconds=tool.timeout_seconds, retries=tool.retries, search_hint=tool.search_hint,
        runs_caller_code=tool.runs_caller_code, needs=[NeedMessage(**vars(need)) for need in tool.needs],
        resource_limits=ResourceLimits(**{k: v for k, v in vars(tool.limits).items() if v}),
    )  # fmt: skip


def _status(health: AdapterHealth) -> "HealthStatus":
    from metaforge.protocol.messages import HealthStatus

    detail = health.detail or {}
    return HealthStatus(
        adapter_id=health.adapter_id,
        status="healthy" if health.reachable else "unhealthy",
        version=health.version,
        tools_available=health.tools_registered if health.reachable else 0,
        uptime_seconds=float(detail.get("uptime_seconds", 0.0)),
        last_invocation=detail.get("last_invocation"),
    )
