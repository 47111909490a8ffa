"""Register adapters: those that ship, those that installed packages bring, and those of `metaforge.toml`.

A broken one is told, and the server starts all the same.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import orjson

from metaforge.adapters import ALWAYS, CATALOG, OPTIONAL
from metaforge.core.errors import ToolUnavailable
from metaforge.engine.sources import Sources
from metaforge.registry.discovery import Discovered, discover, find_manifest
from metaforge.registry.registry import ToolRegistry
from metaforge.settings import Settings
from metaforge.tools.manifest import AdapterManifest
from metaforge.tools.source import ToolSource, Trouble

if TYPE_CHECKING:
    from metaforge.engine.elsewhere import Introduction
    from metaforge.tools.config import AdapterConfig

_START_SECONDS = 1.0
"""How long a start waits, for all of them together, for adapters elsewhere that never answered before."""
_ASKED_SECONDS = 6.0

_REINSTALL = "pip install --force-reinstall metaforge"
_OURS = "the server serves this adapter itself: it takes no configuration"


class Expected:
    """An adapter elsewhere that is registered as soon as it has said what tools it has."""

    def __init__(self, late: "Introduction", make: Callable[[AdapterManifest], ToolSource]) -> None:
        self._late = late
        self._make = make

    def arrived(self) -> ToolSource | None:
        """Return its source, once it has answered."""
        manifest = self._late.manifest()
        return None if manifest is None else self._make(manifest)

    def trouble(self) -> Trouble:
        """Return why it is not there, and when it is asked again."""
        return Trouble(self._late.problem, self._late.retry_after_seconds)


class Adapters:
    """Which adapters there are, and where each runs.

    Args:
        sources: makes the sources of those that run outside the server.
        configs: tables of `metaforge.toml`, by adapter id.
        local: makes the source of one that the server runs itself.
        cache: folder for manifests that had to be made or asked for.
    """

    def __init__(
        self,
        settings: Settings,
        sources: Sources,
        configs: "Mapping[str, AdapterConfig]",
        local: Callable[[AdapterManifest], ToolSource],
        cache: Path,
    ) -> None:
        self._settings = settings
        self._sources = sources
        self._configs = dict(configs)
        for adapter_id in sorted(ALWAYS & set(configs)):
            from metaforge.tools.config import BadConfig

            raise BadConfig(f"[adapters.{adapter_id}]: {_OURS}")
        self._local = local
        self._cache = cache

    def register_all(self, registry: ToolRegistry) -> None:
        """Register everything that the settings want."""
        for adapter_id in CATALOG:
            if self._is_wanted(adapter_id):
                self._add(registry, adapter_id, self._shipped)
        known = set(CATALOG)
        away: dict[str, tuple[AdapterConfig, Introduction]] = {}
        for found in discover(self._cache):
            known.add(found.adapter_id)
            if found.adapter_id not in CATALOG and self._is_wanted(found.adapter_id):
                self._add(registry, found.adapter_id, partial(self._brought, found))
        for adapter_id in dict.fromkeys((*self._configs, *self._settings.adapter_url)):
            if adapter_id not in known and self._is_wanted(adapter_id):
                config = self._own_config(adapter_id)
                if self._must_say(config):
                    # All of them are asked at once, while the others are registered.
                    away[adapter_id] = config, self._sources.introduce(adapter_id, config, self._cache)
                else:
                    self._add(registry, adapter_id, partial(self._configured, config=config))
            known.add(adapter_id)
        self._await(registry, away)
        for name in self._settings.adapters:
            if name not in known and name != "none":
                there = ", ".join(sorted(known - OPTIONAL))
                registry.drop_adapter(name, f"there is no adapter {name}; there are: {there}")

    def _await(self, registry: ToolRegistry, away: "Mapping[str, tuple[AdapterConfig, Introduction]]") -> None:
        """Register adapters that listen elsewhere; those that have not answered when the time is up come later."""
        until = time.monotonic() + _START_SECONDS
        for adapter_id, (config, late) in away.items():
            late.wait(until - time.monotonic())
            registry.expect(adapter_id, Expected(late, partial(self._sources.configured, config=config)))

    async def make(self, adapter_id: str, config: "AdapterConfig") -> ToolSource:
        """Make the source of an adapter by a configuration, its tools discovered: the registry's factory.

        Raises:
            ToolUnavailable: it cannot be reached, or is configured as something that cannot be run.
        """
        return await asyncio.to_thread(self._configured, adapter_id, config)

    def _add(self, registry: ToolRegistry, adapter_id: str, make: Callable[[str], ToolSource]) -> None:
        try:
            source = make(adapter_id)
        except (OSError, ValueError, KeyError) as fault:
            registry.drop_adapter(adapter_id, f"its manifest cannot be read: {fault}", _REINSTALL)
        except ToolUnavailable as fault:
            registry.drop_adapter(adapter_id, fault.message, str(fault.data.get("install") or ""))
        else:
            registry.add_source(source, is_checked=adapter_id in CATALOG)

    def _is_wanted(self, adapter_id: str) -> bool:
        settings = self._settings
        if adapter_id in ALWAYS:
            return True
        if not settings.adapter_enabled.get(adapter_id, True):
            return False
        if adapter_id in OPTIONAL:
            return settings.fixtures
        return not settings.adapters or adapter_id in settings.adapters

    def _shipped(self, adapter_id: str) -> ToolSource:
        manifest = _shipped_manifest(adapter_id)
        return self._local(manifest) if manifest.in_process else self._sources.of(manifest)

    def _brought(self, found: Discovered, _: str) -> ToolSource:
        manifest, *folders = _manifest_of(found)
        return self._local(manifest) if manifest.in_process else self._sources.of(manifest, *folders)

    def _own_config(self, adapter_id: str) -> "AdapterConfig":
        """Return the configuration of an adapter that only the file or the environment names."""
        from metaforge.tools.config import AdapterConfig

        config = self._configs.get(adapter_id) or AdapterConfig(adapter_id=adapter_id)
        url = self._settings.adapter_url.get(adapter_id)
        return config.model_copy(update={"url": url, "urls": []}) if url else config

    def _must_say(self, config: "AdapterConfig") -> bool:
        """Return whether only the adapter itself can say what tools it has: it is elsewhere, or in an image."""
        return config.is_remote or (not config.target and config.is_container)

    def _configured(self, adapter_id: str, config: "AdapterConfig") -> ToolSource:
        if adapter_id in CATALOG:
            manifest = _shipped_manifest(adapter_id)
            if manifest.in_process:
                raise ToolUnavailable(f"{adapter_id}: {_OURS}", reason=_OURS)
            return self._sources.configured(manifest, config)
        if self._must_say(config):
            late = self._sources.introduce(adapter_id, config, self._cache)
            if (told := late.wait(_ASKED_SECONDS)) is None:
                raise ToolUnavailable(late.problem, reason=late.problem, install="")
            return self._sources.configured(told, config)
        if config.target:
            manifest, *folders = _manifest_of(find_manifest(adapter_id, config.target, self._cache))
            return self._sources.configured(manifest, config, *folders)
        raise ToolUnavailable(
            f"there is no adapter {adapter_id}; there are: {', '.join(sorted(set(CATALOG) - OPTIONAL))}. One of your "
            'own needs target = "module:Class" for a process here, image for a container, or url for one that listens '
            "elsewhere",
            reason="no such adapter",
        )


def _shipped_manifest(adapter_id: str) -> AdapterManifest:
    path = Path(__file__).parent / adapter_id / "manifest.json"
    return AdapterManifest.from_json(orjson.loads(path.read_bytes()))


def _manifest_of(found: Discovered) -> tuple[AdapterManifest, *tuple[Path, ...]]:
    """Return a found adapter's manifest and the folders its process must be able to import from.

    Raises:
        ToolUnavailable: it has none.
    """
    if found.manifest is None:
        raise ToolUnavailable(found.problem, reason=found.problem)
    folders = (found.folder,) if found.folder else ()
    return (AdapterManifest.from_json(found.manifest), *folders)
