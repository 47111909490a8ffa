"""Every METAFORGE_* variable: typed, documented, read once. No other module reads the environment.

`Settings.load(environ)` never raises for an optional value out of range: it keeps the default and notes it in
`problems`, which `doctor` and the log show. Values that would be unsafe to guess (what is held for a person, a
workspace that is `/`) are errors.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from metaforge.core.errors import MetaForgeError
from metaforge.core.setting_values import between, one_of, read_effects, read_flag, read_folders, read_names


class BadSetting(MetaForgeError):
    """A setting that cannot be used; the message names the variable and what it takes."""


def _doc(variable: str, text: str, default: Any, parse: Callable[[str], Any] = str, **also: Any) -> Any:
    metadata = {"variable": variable, "doc": text, "parse": parse, **also}
    return field(default=default, metadata=metadata)


@dataclass(frozen=True)
class Settings:
    """What this process was told. Field metadata holds the variable, its meaning and its parser."""

    home: Path | None = _doc(
        "METAFORGE_HOME",
        "Where the database, journal, artefacts and workers live. Default: the platform's user data directory.",
        None,
        Path,
    )
    workspace: Path | None = _doc(
        "METAFORGE_WORKSPACE",
        "Root of the files tools may read and write. "
        "Default: the current directory over stdio, METAFORGE_HOME/workspace for HTTP.",
        None,
        Path,
        also="ADAPTER_WORKSPACE_DIR",
    )
    adapters: tuple[str, ...] = _doc(
        "METAFORGE_ADAPTERS", "Adapters to load, separated by commas. Default: all.", (), read_names
    )
    config: Path | None = _doc(
        "METAFORGE_CONFIG",
        "File with a table [adapters.<id>] for each adapter that runs elsewhere or under other limits. "
        "Default: METAFORGE_HOME/metaforge.toml, where there is one.",
        None,
        Path,
    )
    program_prefixes: tuple[Path, ...] = _doc(
        "METAFORGE_PROGRAM_PREFIXES",
        "Where programs lie that are not among the system's, such as another FreeCAD: folders with a `bin`, by colons. "
        "They are looked in first, and boxes that need one of their programs show them whole, read-only.",
        (),
        read_folders,
    )
    profile: str = _doc(
        "METAFORGE_PROFILE",
        "Serve the tools of one kind of work: core, mechanical, simulation, electronics or robotics. Default: all.",
        "",
        str.strip,
    )
    phase: int = _doc("METAFORGE_PHASE", "Tools of a later phase are not listed.", 2, between(0, 9, int))
    fixtures: bool = _doc(
        "METAFORGE_FIXTURES",
        "Load the fixture tools that conformance suites and benchmarks call.",
        False,
        read_flag,
    )
    database_url: str = _doc(
        "METAFORGE_DATABASE_URL",
        "The store: postgresql://user:password@host/database (extra `postgres`), or sqlite:////absolute/file.db. "
        "Default: SQLite below METAFORGE_HOME.",
        "",
    )
    blob_url: str = _doc(
        "METAFORGE_BLOB_URL",
        "Object store of files and long texts: s3://bucket/prefix (extra `objects`) or file:///mounted/folder; "
        "the folder below METAFORGE_HOME is then its verified cache. Default: that folder alone.",
        "",
    )
    log_level: str = _doc(
        "METAFORGE_LOG_LEVEL",
        "debug, info, warning or error; logs go to stderr as JSON lines.",
        "warning",
        str.lower,
    )
    max_workers: int = _doc("METAFORGE_MAX_WORKERS", "Processes one adapter may run at once.", 2, between(0, 16, int))
    max_waiting_calls: int = _doc(
        "METAFORGE_MAX_WAITING_CALLS",
        "Calls that may wait for one adapter; more are told that it is busy and when to call again.",
        512,
        between(0, 100_000, int),
    )
    max_waiting_calls_per_caller: int = _doc(
        "METAFORGE_MAX_WAITING_CALLS_PER_CALLER",
        "How many of them may be one caller's. Callers who wait take turns.",
        128,
        between(0, 100_000, int),
    )
    idle_seconds: float = _doc(
        "METAFORGE_IDLE_SECONDS",
        "An adapter process idle for this long is retired.",
        300.0,
        between(0, 86400),
    )
    tool_session_idle_seconds: float = _doc(
        "METAFORGE_TOOL_SESSION_IDLE_SECONDS",
        "A session of a tool, such as a live CAD document, that nobody used for this long is ended.",
        1800.0,
        between(0, 86400),
    )
    max_tool_sessions: int = _doc(
        "METAFORGE_MAX_TOOL_SESSIONS",
        "Sessions of one adapter that may be open at once; each has a process of its own.",
        8,
        between(0, 64, int),
    )
    prestart: bool = _doc(
        "METAFORGE_PRESTART",
        "Start adapter processes in the background after initialize, where memory allows.",
        True,
        read_flag,
    )
    prestart_free_mb: int = _doc(
        "METAFORGE_PRESTART_FREE_MB",
        "Free memory below which nothing is started ahead of a call.",
        2048,
        between(0, 1_000_000, int),
    )
    sandbox: str = _doc(
        "METAFORGE_SANDBOX",
        "auto (bubblewrap where it works), bubblewrap (refuse without it) or rlimits.",
        "auto",
        str.lower,
    )
    runner: str = _doc(
        "METAFORGE_RUNNER",
        "Where adapters run whose configuration does not say: process (a sandboxed one) or container.",
        "process",
        one_of("process", "container"),
        strict=True,
    )
    container_engine: str = _doc(
        "METAFORGE_CONTAINER_ENGINE",
        "podman, docker, or auto: the first that works.",
        "auto",
        one_of("auto", "podman", "docker"),
        strict=True,
    )
    container_runtime: str = _doc(
        "METAFORGE_CONTAINER_RUNTIME",
        "The OCI runtime the engine is to use, such as runc or runsc. Default: the engine's own.",
        "",
        str.strip,
    )
    container_image: str = _doc(
        "METAFORGE_CONTAINER_IMAGE",
        "Images of adapters whose configuration names none; {adapter} and {version} stand for its id and this release. "
        "The server never fetches one.",
        "localhost/metaforge-{adapter}:{version}",
        str.strip,
    )
    max_output_mb: int = _doc(
        "METAFORGE_MAX_OUTPUT_MB",
        "The largest answer of one tool call, files apart.",
        32,
        between(0, 1024, int),
    )
    max_request_mb: int = _doc("METAFORGE_MAX_REQUEST_MB", "The largest request body.", 16, between(0, 1024, int))
    session_idle_seconds: float = _doc(
        "METAFORGE_SESSION_IDLE_SECONDS",
        "An HTTP session unused for this long is ended.",
        1800.0,
        between(0, 86400),
    )
    auth_mode: str = _doc(
        "METAFORGE_AUTH_MODE",
        "off, api_key, oauth or api_key+oauth. Off is allowed on loopback only. "
        "Default: what is set of METAFORGE_MCP_API_KEY and METAFORGE_OAUTH_ISSUER, else off.",
        "",
    )
    api_key: str = _doc("METAFORGE_MCP_API_KEY", "Bearer key that HTTP clients must send, and stdio must match.", "")
    client_key: str = _doc("METAFORGE_MCP_CLIENT_KEY", "The key a stdio client presents.", "")
    service_key: str = _doc(
        "METAFORGE_MCP_SERVICE_KEY",
        "Secret of the worker that drives approved runs, at least 16 characters; not the bearer key. "
        "Default: no worker.",
        "",
    )
    public_url: str = _doc(
        "METAFORGE_PUBLIC_URL",
        "The URL clients reach this server by where a proxy stands in front: https://forge.example.com, without /mcp.",
        "",
    )
    trusted_proxies: tuple[str, ...] = _doc(
        "METAFORGE_TRUSTED_PROXIES",
        "Addresses or networks of reverse proxies whose X-Forwarded-For is believed, separated by commas.",
        (),
        read_names,
    )
    session_secret: str = _doc(
        "METAFORGE_SESSION_SECRET",
        "What signs the sessions of people on the pages, at least 32 characters; the same for servers behind one URL. "
        "Default: made once, below METAFORGE_HOME.",
        "",
    )
    oauth_issuer: str = _doc(
        "METAFORGE_OAUTH_ISSUER", "URL of the issuer whose access tokens (JWT) are taken, as in their `iss`.", ""
    )
    oauth_audience: tuple[str, ...] = _doc(
        "METAFORGE_OAUTH_AUDIENCE",
        "What `aud` of a token must hold, one of several by commas. Default: METAFORGE_PUBLIC_URL and /mcp.",
        (),
        read_names,
    )
    oauth_jwks_url: str = _doc(
        "METAFORGE_OAUTH_JWKS_URL", "Where the issuer's keys are. Default: where its metadata says.", ""
    )
    oauth_scopes: tuple[str, ...] = _doc(
        "METAFORGE_OAUTH_SCOPES", "Scopes every token must carry, separated by commas. Default: none.", (), read_names
    )
    oauth_approve_scope: str = _doc(
        "METAFORGE_OAUTH_APPROVE_SCOPE",
        "Scope a token must carry to decide approvals over the web, so that an agent's own token cannot; "
        "`none`: every token may.",
        "metaforge:approve",
    )
    otlp_endpoint: str = _doc(
        "OTEL_EXPORTER_OTLP_ENDPOINT", "OpenTelemetry collector; no spans are made without one.", ""
    )
    allow_twin_mutations: bool = _doc(
        "METAFORGE_ALLOW_TWIN_MUTATIONS",
        "List twin.query_cypher as a tool that may write. Queries that write are refused all the same.",
        False,
        read_flag,
    )
    approval_hold: tuple[str, ...] = _doc(
        "METAFORGE_APPROVAL_HOLD",
        "Effects of remote callers' tools that wait for a person: produce, write, destroy.",
        ("write", "destroy"),
        read_effects,
        strict=True,
    )
    exempt_local_writes: bool = _doc(
        "METAFORGE_EXEMPT_LOCAL_WRITES",
        "Let writes over stdio run unasked; false holds them too. A person's own decisions are always held.",
        True,
        read_flag,
        strict=True,
    )
    approval_route: str = _doc(
        "METAFORGE_APPROVAL_ROUTE",
        "auto (ask in the client where it can; unanswered, on the dashboard too), both (at once) or dashboard (only).",
        "auto",
        one_of("auto", "both", "dashboard"),
        strict=True,
    )
    approval_hold_seconds: float = _doc(
        "METAFORGE_APPROVAL_HOLD_SECONDS",
        "How long a held call waits for a person while its client is sent no progress.",
        100.0,
        between(0, 3600),
    )
    approval_hold_progress_seconds: float = _doc(
        "METAFORGE_APPROVAL_HOLD_PROGRESS_SECONDS",
        "How long a held call waits for a person while its client is sent progress.",
        180.0,
        between(0, 3600),
    )
    approval_progress_interval_seconds: float = _doc(
        "METAFORGE_APPROVAL_PROGRESS_INTERVAL_SECONDS",
        "How often a held call reports progress.",
        10.0,
        between(0, 3600),
    )
    approval_rescue_seconds: float = _doc(
        "METAFORGE_APPROVAL_RESCUE_SECONDS",
        "A question in the client that is unanswered for this long opens on the dashboard too.",
        20.0,
        between(0, 3600),
    )
    gateway_url: str = _doc(
        "METAFORGE_GATEWAY_URL",
        "The gateway whose ledger and runs this server uses instead of its own store's: http://gateway:8000.",
        "",
        lambda text: text.strip().rstrip("/"),
    )
    gateway_key: str = _doc(
        "METAFORGE_GATEWAY_KEY", "The key this server shows to the gateway. Default: METAFORGE_MCP_API_KEY.", ""
    )
    approval_webhook_url: str = _doc(
        "METAFORGE_APPROVAL_WEBHOOK_URL",
        "Told by POST when a call waits for a person; Slack and Mattermost show its `text`.",
        "",
    )
    approval_webhook_secret: str = _doc(
        "METAFORGE_APPROVAL_WEBHOOK_SECRET", "Signs what is sent there: X-MetaForge-Signature, HMAC-SHA256.", ""
    )
    allow_agent_human_authority: bool = _doc(
        "METAFORGE_ALLOW_AGENT_HUMAN_AUTHORITY",
        "Let an agent take decisions that are a person's alone.",
        False,
        read_flag,
        strict=True,
    )
    dashboard_url: str = _doc(
        "METAFORGE_DASHBOARD_URL",
        "Where people reach the dashboard; links in questions, progress and results lead there.",
        "",
        lambda text: text.strip().rstrip("/"),
    )
    adapter_enabled: Mapping[str, bool] = field(
        default_factory=dict,
        metadata={"variable": "METAFORGE_ADAPTER_<ID>_ENABLED", "doc": "Switch one adapter on or off."},
    )
    adapter_url: Mapping[str, str] = field(
        default_factory=dict,
        metadata={
            "variable": "METAFORGE_ADAPTER_<ID>_URL",
            "doc": "Reach one adapter over HTTP instead of a local process; "
            "several addresses, by commas, share its calls.",
        },
    )
    adapter_key: Mapping[str, str] = field(
        default_factory=dict,
        repr=False,
        metadata={
            "variable": "METAFORGE_ADAPTER_<ID>_KEY",
            "doc": "The key that an adapter reached over HTTP wants to be shown; there it is METAFORGE_WORKER_KEY.",
        },
    )
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The environment this was read from, for `PATH` and `HOME` look-ups by the rooms that start programs. The `bin` of
    each of `program_prefixes` stands first in its `PATH`."""
    problems: tuple[str, ...] = ()

    @classmethod
    def load(cls, environ: Mapping[str, str]) -> "Settings":
        """Read every variable from `environ`; bad optional values are noted in `problems`.

        Raises:
            BadSetting: one that would be unsafe to guess is bad.
        """
        values: dict[str, Any] = {"environment": dict(environ)}
        problems: list[str] = []
        for each in fields(cls):
            parse = each.metadata.get("parse")
            if parse is None:
                continue
            variable = each.metadata["variable"]
            text = environ.get(variable) or environ.get(each.metadata.get("also", ""), "")
            if not text:
                continue
            try:
                values[each.name] = parse(text)
            except ValueError as fault:
                if each.metadata.get("strict"):
                    raise BadSetting(f"{variable}={text!r} is refused: it {fault}") from None
                problems.append(f"{variable}={text!r} is ignored: {fault}; using {each.default!r}")
        if prefixes := values.get("program_prefixes"):
            folders = [*(str(prefix / "bin") for prefix in prefixes), environ.get("PATH", os.defpath)]
            values["environment"]["PATH"] = os.pathsep.join(folders)
        values["adapter_enabled"], values["adapter_url"], values["adapter_key"] = _per_adapter(environ, problems)
        return cls(**values, problems=tuple(problems))

    @classmethod
    def from_environment(cls) -> "Settings":
        """Read this process's own environment."""
        return cls.load(os.environ)

    @property
    def home_path(self) -> Path:
        """METAFORGE_HOME, or the platform's user data directory."""
        if self.home is not None:
            return self.home.expanduser().resolve()
        import platformdirs

        return Path(platformdirs.user_data_dir("metaforge"))

    @property
    def config_path(self) -> Path | None:
        """METAFORGE_CONFIG, or `metaforge.toml` in METAFORGE_HOME where there is one.

        None is looked for in the workspace: what agents may write there must not decide where their calls go.

        Raises:
            BadSetting: METAFORGE_CONFIG names no file.
        """
        if self.config is None:
            usual = self.home_path / "metaforge.toml"
            return usual if usual.is_file() else None
        chosen = self.config.expanduser().resolve()
        if not chosen.is_file():
            raise BadSetting(f"METAFORGE_CONFIG={self.config} is refused: there is no such file")
        return chosen

    def workspace_path(self, *, over_stdio: bool) -> tuple[Path, str]:
        """Return the workspace and a sentence when it is not the one that was asked for.

        Raises:
            BadSetting: METAFORGE_WORKSPACE names `/`, the home folder, or a parent of METAFORGE_HOME.
        """
        home = self.home_path
        if self.workspace is not None:
            chosen = self.workspace.expanduser().resolve()
            if reason := _unfit(chosen, home, self.environment):
                raise BadSetting(
                    f"METAFORGE_WORKSPACE={chosen} is refused: {reason}. Scripts can read all of a workspace: "
                    "name a project folder"
                )
            return chosen, ""
        if over_stdio:
            current = Path.cwd().resolve()
            reason = _unfit(current, home, self.environment)
            if not reason:
                return current, ""
            return (
                home / "workspace",
                f"the current directory {current} is no workspace ({reason}); using {home / 'workspace'}",
            )
        return home / "workspace", ""


def _unfit(folder: Path, home: Path, environ: Mapping[str, str]) -> str:
    if folder == Path(folder.anchor):
        return "it is the root of the file system"
    if environ.get("HOME") and folder == Path(environ["HOME"]).resolve():
        return "it is the home folder"
    if home == folder or folder in home.parents:
        return "MetaForge's own data lies below it"
    return ""


def _per_adapter(
    environ: Mapping[str, str], problems: list[str]
) -> tuple[dict[str, bool], dict[str, str], dict[str, str]]:
    enabled: dict[str, bool] = {}
    urls: dict[str, str] = {}
    keys: dict[str, str] = {}
    for variable, text in environ.items():
        if not variable.startswith("METAFORGE_ADAPTER_"):
            continue
        name = variable.removeprefix("METAFORGE_ADAPTER_")
        if name.endswith("_ENABLED"):
            try:
                enabled[name.removesuffix("_ENABLED").lower()] = read_flag(text)
            except ValueError as fault:
                problems.append(f"{variable}={text!r} is ignored: {fault}")
        elif name.endswith("_URL") and text:
            urls[name.removesuffix("_URL").lower()] = text
        elif name.endswith("_KEY") and text:
            keys[name.removesuffix("_KEY").lower()] = text
    return enabled, urls, keys
