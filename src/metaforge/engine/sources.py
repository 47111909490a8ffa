"""Make the source of an adapter as it is configured: a process here, or an adapter that listens elsewhere."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from metaforge.core.errors import ToolUnavailable
from metaforge.engine.launch import ProcessLauncher
from metaforge.engine.source import ProcessSource
from metaforge.registry.probe import Probe
from metaforge.settings import Settings
from metaforge.store.blobs import Blobs
from metaforge.tools.manifest import AdapterManifest, Limits
from metaforge.tools.source import ToolSource

if TYPE_CHECKING:
    from metaforge.tools.config import AdapterConfig


class Sources:
    """Makes sources of adapters that do not run in the server itself.

    Args:
        configs: tables of `metaforge.toml`, by adapter id.
    """

    def __init__(
        self,
        settings: Settings,
        workspace: Path,
        blobs: Blobs,
        probe: Probe,
        configs: "Mapping[str, AdapterConfig] | None" = None,
    ) -> None:
        self._settings = settings
        self._workspace = workspace
        self._blobs = blobs
        self._probe = probe
        self._configs = dict(configs or {})

    def of(self, manifest: AdapterManifest, *python_paths: Path) -> ToolSource:
        """Return the source of an adapter; a URL among the settings goes before what the file says.

        Args:
            manifest: the adapter.
            python_paths: folders its process must be able to import from.

        Raises:
            ToolUnavailable: it is configured as something that cannot be run.
        """
        config = self._configs.get(manifest.adapter_id)
        if url := self._settings.adapter_url.get(manifest.adapter_id):
            return self._remote(manifest, [part.strip() for part in url.split(",") if part.strip()], config)
        return (
            self._process(manifest, python_paths)
            if config is None
            else self.configured(manifest, config, *python_paths)
        )

    def configured(self, manifest: AdapterManifest, config: "AdapterConfig", *python_paths: Path) -> ToolSource:
        """Return the source of an adapter as one configuration says.

        Raises:
            ToolUnavailable: a container is asked for.
        """
        if config.is_remote:
            return self._remote(manifest, config.addresses, config)
        refuse_container(config)
        limits = config.limits_given()
        tools = (replace(tool, limits=Limits(**(vars(tool.limits) | limits))) for tool in manifest.tools)
        given = config.model_fields_set
        return self._process(
            replace(manifest, tools=tuple(tools)) if limits else manifest,
            python_paths,
            environment=config.environment,
            max_workers=config.max_workers if "max_workers" in given else None,
            idle_seconds=config.idle_seconds if "idle_seconds" in given else None,
        )

    def key_of(self, adapter_id: str, config: "AdapterConfig | None") -> str:
        """Return the key that a remote adapter wants to be shown; one among the settings goes before the file's."""
        return self._settings.adapter_key.get(adapter_id) or (config.key if config else "")

    def _remote(
        self, manifest: AdapterManifest, addresses: Sequence[str], config: "AdapterConfig | None"
    ) -> ToolSource:
        from metaforge.engine.remote import DEFAULT_AT_ONCE, RemoteSource

        is_given = config is not None and "max_workers" in config.model_fields_set
        return RemoteSource(
            manifest.elsewhere(), addresses, blobs=self._blobs, workspace=self._workspace, settings=self._settings,
            key=self.key_of(manifest.adapter_id, config),
            at_once=config.max_workers if config is not None and is_given else DEFAULT_AT_ONCE,
        )  # fmt: skip

    def _process(
        self,
        manifest: AdapterManifest,
        python_paths: tuple[Path, ...],
        *,
        environment: Mapping[str, str] | None = None,
        max_workers: int | None = None,
        idle_seconds: float | None = None,
    ) -> ToolSource:
        launcher = ProcessLauncher(manifest, self._settings, self._workspace, python_paths, environment or {})
        return ProcessSource(
            manifest, self._settings, self._workspace, self._blobs, self._probe,
            launcher=launcher, max_workers=max_workers, idle_seconds=idle_seconds,
        )  # fmt: skip


def refuse_container(config: "AdapterConfig") -> None:
    """Refuse what no launcher here can start.

    Raises:
        ToolUnavailable: the adapter is to run in a container.
    """
    if config.is_container:
        image = f" of {config.image}" if config.image else ""
        raise ToolUnavailable(
            f"{config.adapter_id} is configured as a container{image}, and this release starts none: run the container "
            'yourself and set transport = "http" with its url, or leave transport and image out for a process here',
            reason="containers are not started by this release",
            install="",
        )
