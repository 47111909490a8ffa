"""The composition root: Settings in, one App out. The only file that knows every room."""

import asyncio
import importlib
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from metaforge import __version__
from metaforge.adapters import TWIN_ADAPTERS
from metaforge.adapters.registering import Adapters
from metaforge.approvals.policy import Policy
from metaforge.calls.approve import Approve
from metaforge.calls.arguments import ArgumentJudge
from metaforge.calls.authorise import Authorise
from metaforge.calls.call import Call
from metaforge.calls.capture import Capture
from metaforge.calls.execute import execute_with
from metaforge.calls.geometry_stash import Stash
from metaforge.calls.paths import PathJudge
from metaforge.calls.pipeline import compose
from metaforge.calls.resolve import Resolve
from metaforge.calls.scope import Scope
from metaforge.calls.telemetry import Telemetry
from metaforge.calls.validate import Validate
from metaforge.core.build import build
from metaforge.engine.engine import ExecutionEngine
from metaforge.engine.local import LocalSource
from metaforge.engine.sources import Sources
from metaforge.knowledge.resources import add_resources as add_knowledge
from metaforge.mcp.instructions import instructions
from metaforge.mcp.service import ClientInfo, ResourceContent
from metaforge.record.queries import CallLog
from metaforge.record.recorder import Recorder
from metaforge.record.resources import Resources
from metaforge.registry.probe import Probe
from metaforge.registry.profiles import PROFILES, find_profile
from metaforge.registry.registry import ToolRegistry
from metaforge.settings import Settings
from metaforge.store.blobs import open_blobs
from metaforge.store.database import Database
from metaforge.store.stash import GeometryStash
from metaforge.telemetry import logs, spans
from metaforge.tools.context import Caller, Invocation, Outcome, Progress, no_progress
from metaforge.tools.effect import Effect
from metaforge.tools.manifest import AdapterManifest, Tool
from metaforge.tools.source import ToolSource
from metaforge.twin.resources import add_resources
from metaforge.twin.scopes import ClientScopes

if TYPE_CHECKING:
    from metaforge.access.judge import Access
    from metaforge.access.service import ServiceJudge
    from metaforge.approvals.gate import Gate
    from metaforge.approvals.idempotency import KeyedWrites
    from metaforge.approvals.keyed import Keyed
    from metaforge.approvals.opening import Approvals
    from metaforge.approvals.webhook import Webhook
    from metaforge.knowledge.services import KnowledgeServices
    from metaforge.tools.config import AdapterConfig
    from metaforge.twin.rehearsal import Recording
    from metaforge.twin.services import TwinServices
    from metaforge.web.services import Services


class App:
    """Everything behind a transport. Made in milliseconds: nothing is started, no database is opened.

    Args:
        settings: what this process was told.
        over_stdio: whether one local client talks over pipes; decides the default workspace.

    Raises:
        BadSetting: a setting that would be unsafe to guess.
        UnknownProfile: the settings name a profile that does not exist; the message lists those that do.
        BadConfig: the file of adapter configurations is wrong; the message names the line.
    """

    version = __version__

    def __init__(self, settings: Settings, *, over_stdio: bool) -> None:
        if settings.profile:
            find_profile(settings.profile)
        self.settings = settings
        self.over_stdio = over_stdio
        self._started = time.monotonic()
        self.home = settings.home_path
        self.workspace, self.workspace_note = settings.workspace_path(over_stdio=over_stdio)
        self.home.mkdir(parents=True, exist_ok=True)
        self.workspace.mkdir(parents=True, exist_ok=True)
        logs.configure(settings.log_level)
        spans.configure(settings.otlp_endpoint, version=__version__)
        self.blobs = open_blobs(settings.blob_url, self.home / "blobs")
        self.database = Database(settings.database_url, self.home)
        self.recorder = Recorder(self.database, self.home / "journal")
        self.calls = CallLog(self.database, self.recorder)
        self.resources = Resources(self.blobs, self.calls)
        add_resources(self.resources, lambda: self.twin_services.store)
        add_knowledge(self.resources, lambda: self.knowledge.library)
        probe = Probe(settings.environment.get("PATH"))
        self.registry = ToolRegistry(probe, phase=settings.phase, make_source=self._make_source)
        self.engine = ExecutionEngine(self.registry)
        self.scopes = ClientScopes()
        self._registered = self._adapters()
        self._registered.register_all(self.registry)
        self._paths = PathJudge(self.workspace)
        validate = Validate(ArgumentJudge(), self._paths)
        self._policy = Policy.of(settings)
        self._run = compose(
            [
                Telemetry(),
                Capture(self.recorder, self.registry, self.scopes),
                Resolve(self.registry),
                Authorise(self._service_rules()),
                Scope(self.scopes),
                validate,
                Stash(GeometryStash(self.home / "stash"), self.blobs),
                Approve(self._policy, lambda: self.gate, validate.judged, lambda: self.keyed),
            ],
            execute_with(self.engine),
        )
        self._client_ready = False
        for problem in (*settings.problems, self.workspace_note, self.config_note):
            if problem:
                is_of_hold = problem.startswith("METAFORGE_APPROVAL_")
                logs.event("approval_hold_env_invalid" if is_of_hold else "setting_ignored", "warning", problem=problem)

    # -- adapters ------------------------------------------------------------------------------------------------

    def _adapters(self) -> Adapters:
        """Return what registers adapters; the file of their configurations is read where there is one."""
        configs = {}
        path = self.settings.config_path
        passed_over = self.workspace / "metaforge.toml"
        self.config_note = (
            f"{passed_over} is not read, since agents may write there: METAFORGE_CONFIG names the file to use"
            if passed_over != path and passed_over.is_file()
            else ""
        )
        if path is not None:
            from metaforge.tools.config import load_configs

            configs = load_configs(path)
        sources = Sources(self.settings, self.workspace, self.blobs, self.registry.probe, configs)
        return Adapters(self.settings, sources, configs, self._local_source, self.home / "cache" / "adapters")

    async def _make_source(self, adapter_id: str, config: "AdapterConfig") -> ToolSource:
        return await self._registered.make(adapter_id, config)

    def _local_source(self, manifest: AdapterManifest) -> ToolSource:
        return LocalSource(manifest, make=self._maker(manifest))

    def _service_rules(self) -> "ServiceJudge | None":
        """Return what judges the worker of server-driven runs, where one has a key."""
        if self.over_stdio or not self.settings.service_key:
            return None
        from metaforge.access.runs import GatewayRuns, StoreRuns
        from metaforge.access.service import ServiceJudge

        settings = self.settings
        if settings.gateway_url:
            return ServiceJudge(GatewayRuns(settings.gateway_url, settings.gateway_key or settings.api_key))
        return ServiceJudge(StoreRuns(lambda: self.twin_services.store))

    def _maker(self, manifest: AdapterManifest, services: "TwinServices | None" = None) -> Any:
        """Return what makes an in-process adapter, at its first call, with the part of the server that it needs."""

        def make() -> Any:
            module, _, name = manifest.target.partition(":")
            made = getattr(importlib.import_module(module), name)
            if manifest.adapter_id == "health":
                return made(self._health_of_invocation)
            if manifest.adapter_id == "knowledge":
                return made(self.knowledge)
            return made(services or self.twin_services) if manifest.adapter_id in TWIN_ADAPTERS else made()

        return make

    @cached_property
    def twin_services(self) -> "TwinServices":
        """The design record and what its tools need; made at their first call."""
        from metaforge.twin.measuring import Measurer
        from metaforge.twin.services import TwinServices
        from metaforge.twin.store import TwinStore

        measurer = Measurer(self.engine, self.registry, self.workspace)
        store = TwinStore(self.database, self.blobs)
        return TwinServices(
            store, self.blobs, self.calls, self.scopes, measurer, self.workspace, self.settings.allow_twin_mutations
        )

    @cached_property
    def knowledge(self) -> "KnowledgeServices":
        """The documents that were read, and what finds passages in them; made at its first call."""
        from metaforge.knowledge.embedder import find_embedder
        from metaforge.knowledge.library import Library
        from metaforge.knowledge.services import KnowledgeServices

        return KnowledgeServices(Library(self.database, find_embedder()), self.workspace)

    @cached_property
    def approvals(self) -> "Approvals":
        """The ledger of held calls, and what wakes those who wait for it; made when the first one needs it."""
        from metaforge.approvals.opening import open_approvals

        return open_approvals(self.settings, self.database, self.home)

    @cached_property
    def gate(self) -> "Gate":
        """What asks a person about a held call; made when the first call is held."""
        from metaforge.approvals.gate import Gate
        from metaforge.approvals.keyed import UsedOnce
        from metaforge.approvals.preview import Previewer

        approvals = self.approvals
        previewer = Previewer(self._rehearse, self._paths.outputs, self.workspace)
        return Gate(
            approvals.ledger, approvals.waker, UsedOnce(self._writes), self.settings, self._policy, previewer,
            self.registry, self._webhook.announce,
        )  # fmt: skip

    @cached_property
    def keyed(self) -> "Keyed":
        """What runs writes once that carry a key."""
        from metaforge.approvals.keyed import Keyed

        return Keyed(self._writes)

    @cached_property
    def _writes(self) -> "KeyedWrites":
        from metaforge.approvals.idempotency import KeyedWrites

        return KeyedWrites(self.database, self.approvals.holder)

    @cached_property
    def _webhook(self) -> "Webhook":
        from metaforge.approvals.webhook import Webhook

        settings = self.settings
        return Webhook(settings.approval_webhook_url, settings.approval_webhook_secret, settings.dashboard_url)

    @cached_property
    def _rehearsing(self) -> dict[str, LocalSource]:
        """The tools of the design record once more, undoing what they write."""
        from metaforge.twin.rehearsal import RehearsingMeasurer, RehearsingServices

        twin = self.twin_services
        measurer = RehearsingMeasurer(self.engine, self.registry, self.workspace)
        services = RehearsingServices(
            twin.store, twin.blobs, twin.calls, ClientScopes(), measurer, twin.workspace, twin.mutations_allowed
        )
        return {
            source.manifest.adapter_id: LocalSource(source.manifest, make=self._maker(source.manifest, services))
            for source in self.registry.sources()
            if source.manifest.adapter_id in TWIN_ADAPTERS
        }

    async def _rehearse(
        self, tool: Tool, arguments: dict[str, Any], invocation: Invocation, is_measured: bool
    ) -> "tuple[Recording, Outcome] | None":
        """Try a call of the design record; None for tools of other adapters."""
        from metaforge.twin.rehearsal import rehearse

        source = self._rehearsing.get(tool.adapter_id)
        if source is None:
            return None
        return await rehearse(lambda: source.call(tool, arguments, invocation), is_measured=is_measured)

    def gateway_services(self, access: "Access") -> "Services":
        """Return what the gateway's routes and pages need of this application.

        Args:
            access: the rules of the address that is listened on.
        """
        from metaforge.access.browser import Browser
        from metaforge.web.services import Services

        return Services(
            ledger=self.approvals.ledger, waker=self.approvals.waker, twin=self.twin_services, calls=self.calls,
            resources=self.resources, settings=self.settings, access=access, browser=Browser(access, self.settings),
            health=lambda: self.health(ClientInfo()), agents_may_decide=self.settings.allow_agent_human_authority,
            engine=self.engine, catalogue=self.registry,
        )  # fmt: skip

    # -- what a transport asks -----------------------------------------------------------------------------------

    def ready_line(self) -> str:
        """Return the line that tells a person the server is up."""
        return "metaforge-mcp ready"

    def instructions(self, profile: str = "") -> str:
        return instructions(PROFILES[profile] if profile else None)

    def listed_tools(self, profile: str = "") -> Sequence[Tool]:
        listed = self.registry.listed()
        if profile:
            served = PROFILES[profile].tools
            listed = [tool for tool in listed if tool.id in served]
        if not self.settings.allow_twin_mutations:
            return listed
        # Who lets Cypher write is told that it may, on every listing; each text is judged when it is sent.
        return [replace(tool, effect=Effect.WRITE) if tool.id == "twin.query_cypher" else tool for tool in listed]

    def list_meta(self, profile: str = "") -> dict[str, Any]:
        served = PROFILES[profile] if profile else None
        entries, missing = self.registry.unavailable(), []
        if served is not None:
            entries = [kept for entry in entries if (kept := entry.within(served.tools))]
            missing = [tool_id for tool_id in served.ordered if not self.registry.knows(tool_id)]
        told = {
            "profile": {"name": profile, "missing": missing} if missing else {},
            "unavailableAdapters": [entry.wire() for entry in entries],
            "mendedSchemas": [
                {"toolId": tool_id, "notes": list(notes)}
                for tool_id, notes in self.registry.mended.items()
                if served is None or tool_id in served.tools
            ],
        }
        return {name: value for name, value in told.items() if value}

    def unknown_tool(self, tool_id: str) -> Exception:
        return self.registry.unknown(tool_id)

    async def call_tool(
        self,
        tool_id: str,
        arguments: dict[str, Any],
        *,
        call_id: str,
        caller: Caller,
        timeout_seconds: float | None = None,
        trace_id: str = "",
        progress: Progress | None = None,
        ask: Any = None,
        idempotency_key: str = "",
    ) -> Outcome:
        call = build(
            Call,
            id=call_id,
            tool_id=tool_id,
            arguments=arguments,
            caller=caller,
            timeout_seconds=timeout_seconds,
            trace_id=trace_id,
            progress=progress or no_progress,
            ask=ask,
            idempotency_key=idempotency_key,
            notes={},
        )
        outcome = await self._run(call)
        if outcome.files:
            self.resources.remember(outcome.files)
        return outcome

    def links(self, call_id: str) -> list[dict[str, str]]:
        base = self.settings.dashboard_url
        return [{"url": f"{base}/calls/{call_id}", "label": "This call on the dashboard"}] if base else []

    async def list_resources(self) -> list[dict[str, Any]]:
        return self.resources.listed()

    def resource_templates(self) -> list[dict[str, Any]]:
        return self.resources.templates()

    async def read_resource(self, uri: str, caller: Caller | None = None) -> list[ResourceContent]:
        found = await self.resources.read(uri, self.scopes.project_of(caller) if caller else "")
        return [ResourceContent(uri, found.media_type, found.content)]

    async def health(self, client: ClientInfo) -> dict[str, Any]:
        from metaforge.access.mode import auth_shown
        from metaforge.engine.sandbox import describe
        from metaforge.registry.rollup import roll_up

        problems = [
            *self.settings.problems,
            self.workspace_note,
            self.config_note,
            *self.recorder.problems(),
            spans.problem(),
            *self.blobs.problems(),
        ]
        report = await roll_up(
            self.registry,
            version=__version__,
            uptime_seconds=time.monotonic() - self._started,
            auth=auth_shown(self.settings, over_stdio=self.over_stdio),
            client=_client_row(client),
            sandbox=describe(self.settings),
            problems=[problem for problem in problems if problem],
        )
        if profile := client.profile or self.settings.profile:
            served = len(self.listed_tools(profile))
            report["profile"] = {"active": profile, "served_tool_count": served, "available": list(PROFILES)}
        return report | {"workspace": str(self.workspace), "home": str(self.home)}

    async def _health_of_invocation(self, invocation: Invocation) -> dict[str, Any]:
        caller = invocation.caller
        return await self.health(ClientInfo(caller.client_name, caller.client_version, profile=caller.profile))

    def request_state_key(self) -> bytes:
        from metaforge.store.secret import kept_secret

        return kept_secret(self.home / "keys" / "request-state")

    def client_ready(self) -> None:
        if self.settings.prestart and not self._client_ready:
            self._client_ready = True
            for source in self.registry.sources():
                if self._serves(source):
                    source.prestart()

    def _serves(self, source: ToolSource) -> bool:
        profile = self.settings.profile
        return not profile or any(tool.id in PROFILES[profile].tools for tool in source.manifest.tools)

    async def close(self) -> None:
        if "gate" in self.__dict__:
            await self.gate.close()
        await asyncio.gather(*(source.close() for source in self.registry.sources()))
        if "twin_services" in self.__dict__:
            await self.twin_services.close()
        if "knowledge" in self.__dict__:
            await self.knowledge.close()
        if "_webhook" in self.__dict__:
            await self._webhook.close()
        if "approvals" in self.__dict__:
            await self.approvals.close()
        self.recorder.close()
        self.blobs.close()
        spans.shutdown()
        self.database.close()


def _client_row(client: ClientInfo) -> dict[str, Any]:
    row: dict[str, Any] = {
        "connected": bool(client.name),
        "name": client.name,
        "version": client.version,
        "protocol_requested": client.protocol_requested,
        "protocol_negotiated": client.protocol_negotiated,
        "can_elicit": client.can_elicit,
    }
    if client.protocol_requested and client.protocol_requested != client.protocol_negotiated:
        row["protocol_skew"] = f"the client asked for {client.protocol_requested}, {client.protocol_negotiated} is used"
    return row
