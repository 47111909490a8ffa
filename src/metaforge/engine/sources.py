"""Make the source of an adapter as it is configured: a process here, a container, or one that listens elsewhere."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from metaforge import __version__
from metaforge.core.errors import ToolUnavailable
from metaforge.engine.launch import ProcessLauncher
from metaforge.engine.source import ProcessSource
from metaforge.registry.probe import Probe
from metaforge.settings import Settings
from metaforge.store.blobs import Blobs
from metaforge.tools.manifest import AdapterManifest, Limits
from metaforge.tools.source import ToolSource

if TYPE_CHECKING:
    from metaforge.engine.elsewhere import Introduction
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
        if config is not None:
            return self.configured(manifest, config, *python_paths)
        if self._settings.runner == "container":
            return self._container(manifest, None)
        return self._process(manifest, python_paths)

    def configured(self, manifest: AdapterManifest, config: "AdapterConfig", *python_paths: Path) -> ToolSource:
        """Return the source of an adapter as one configuration says.

        Raises:
            ToolUnavailable: the configuration asks for what cannot be had.
        """
        if config.is_remote:
            return self._remote(manifest, config.addresses, config)
        limits = config.limits_given()
        tools = (replace(tool, limits=Limits(**(vars(tool.limits) | limits))) for tool in manifest.tools)
        given = config.model_fields_set
        limited = replace(manifest, tools=tuple(tools)) if limits else manifest
        if self.in_container(config):
            return self._container(limited, config)
        if config.workspace_mode == "rw":
            raise ToolUnavailable(
                f'{manifest.adapter_id}: workspace_mode = "rw" is for containers; a process reads the workspace, and '
                "what it writes is placed there by the server",
                reason="workspace_mode is for containers",
            )
        return self._process(
            limited,
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

    def in_container(self, config: "AdapterConfig | None") -> bool:
        """Return whether an adapter runs in a container: as its table says, else as METAFORGE_RUNNER does."""
        if config is None or not (config.is_container or "transport" in config.model_fields_set):
            return self._settings.runner == "container"
        return config.is_container

    def introduce(self, adapter_id: str, config: "AdapterConfig", cache: Path) -> "Introduction":
        """Return what learns an adapter's tools from the adapter itself, over HTTP or in a container.

        Args:
            cache: folder for what it said.
        """
        from metaforge.engine.elsewhere import Introduction

        if config.is_remote:
            return Introduction(adapter_id, config.addresses, cache, self.key_of(adapter_id, config))
        image = config.image or self.image_of(adapter_id)
        return Introduction(adapter_id, [image], cache, ask=partial(self._ask_image, config))

    def _ask_image(self, config: "AdapterConfig", adapter_id: str, image: str, key: str) -> dict[str, Any]:
        from metaforge.engine.container import ContainerLauncher, Image
        from metaforge.engine.elsewhere import introduced

        unknown = AdapterManifest(adapter_id, "", "", in_process=False, tools=())
        told = Image(image, workspace_inside=config.workspace_mount, environment=config.environment)
        answers = ContainerLauncher(unknown, self._settings, self._workspace, told).ask("tool/list", "health/check")
        return introduced(adapter_id, image, *answers)

    def _container(self, manifest: AdapterManifest, config: "AdapterConfig | None") -> ToolSource:
        from metaforge.engine.container import ContainerLauncher, Image

        named = config.image if config is not None else ""
        given = config.model_fields_set if config is not None else set()
        image = Image(named or self.image_of(manifest.adapter_id))
        if config is not None:
            image = replace(
                image, workspace_inside=config.workspace_mount, may_write_workspace=config.workspace_mode == "rw",
                environment=config.environment,
            )  # fmt: skip
        # What its tools need is in the image.
        manifest = manifest.elsewhere()
        launcher = ContainerLauncher(manifest, self._settings, self._workspace, image)
        launcher.look()
        return ProcessSource(
            manifest, self._settings, self._workspace, self._blobs, self._probe, launcher=launcher,
            max_workers=config.max_workers if config is not None and "max_workers" in given else None,
            idle_seconds=config.idle_seconds if config is not None and "idle_seconds" in given else None,
        )  # fmt: skip

    def image_of(self, adapter_id: str) -> str:
        """Return the image of an adapter whose table names none."""
        return self._settings.container_image.replace("{adapter}", adapter_id).replace("{version}", __version__)

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
