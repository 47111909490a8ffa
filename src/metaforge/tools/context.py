"""Who calls, what a running tool may know, and what comes back.

`Caller`, `Invocation` and `Outcome` are the server's side; `ToolContext`, `Answer`, `OutputFile` and `Picture`
are what a tool's own code touches.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path, PurePosixPath
from typing import Any, Generic, TypeVar

T = TypeVar("T")

Progress = Callable[[float, str], None]
"""Report a fraction of the work done (0 to 1) and what is being done."""


def no_progress(fraction: float, message: str) -> None:
    """Report nothing: for callers that did not ask."""


class Trust(StrEnum):
    """How far a caller is known."""

    LOCAL = "local"
    """A process of the same person on the same machine, over stdio or the command line."""
    REMOTE = "remote"
    """Over HTTP with a verified identity."""
    UNTRUSTED = "untrusted"
    """Over HTTP otherwise, with the API key too: it identifies nobody."""
    SERVICE = "service"
    """The worker of a run that a person approved, whose run was just looked up."""


@dataclass(frozen=True)
class ServiceClaims:
    """What the worker of a server-driven run says of a call, beside the service key."""

    run_id: str
    phase: str = ""
    model: str = ""
    project_id: str = ""


@dataclass(frozen=True)
class Caller:
    """Who is calling, as the transport knows it; never taken from arguments."""

    actor_id: str = "local"
    trust: Trust = Trust.UNTRUSTED
    client_name: str = ""
    client_version: str = ""
    session_id: str = ""
    verified: bool = False
    """Whether `actor_id` is the identity of an authenticated person, not a shared key or nobody in particular."""
    service: ServiceClaims | None = None
    """Set where the service key was shown; `trust` says whether the run behind it was found to hold."""
    profile: str = ""
    """The profile its connection is served, which binds its calls; empty for every tool."""


@dataclass(frozen=True)
class ProgramVersion:
    """A program or library that did the work, for the call's record."""

    name: str
    version: str


@dataclass(frozen=True)
class Artefact:
    """A file that a call produced, after the engine hashed it, stored it and placed it."""

    path: str
    """Relative to the workspace, with forward slashes."""
    absolute_path: str
    sha256: str
    size_bytes: int
    media_type: str
    role: str = ""
    """What it is to the caller: `geometry`, `mesh`, `results`, `picture`, `log` ..."""

    @property
    def uri(self) -> str:
        return f"metaforge://artefacts/{self.sha256}"


@dataclass(frozen=True)
class ImageContent:
    """A picture to show the model: PNG bytes and a sentence saying what it shows."""

    png: bytes
    caption: str


@dataclass(frozen=True)
class Outcome:
    """What a call gives back through the pipeline. Errors are exceptions, never Outcomes."""

    data: dict[str, Any]
    """The tool's own fields: top level of `structuredContent`."""
    summary: str
    """Stands alone in under 120 tokens: verdict, three to six numbers with units."""
    warnings: tuple[str, ...] = ()
    next_step: str = ""
    files: tuple[Artefact, ...] = ()
    images: tuple[ImageContent, ...] = ()
    programs: tuple[ProgramVersion, ...] = ()
    inputs: tuple[Artefact, ...] = ()
    """Files that the call read, with their digests."""
    content: tuple[dict[str, Any], ...] = ()
    """MCP content blocks to pass on unchanged; for tools whose result is content itself."""
    meta: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Invocation:
    """What the engine or an in-process source knows of a call while it runs it."""

    call_id: str
    caller: Caller
    timeout_seconds: float
    progress: Progress = no_progress
    project_id: str = ""
    run_id: str = ""
    trace_id: str = ""
    overwrite: bool = False
    approver: str = ""
    """The person who approved this call, as the approval gate knows them; never taken from arguments."""
    approver_verified: bool = False
    ask: Any = None
    """The transport's question port (`mcp.peer.Peer`), for in-process tools that may ask a person."""


@dataclass(frozen=True)
class OutputFile:
    """A file a tool wrote below its output folder."""

    path: PurePosixPath | str
    """Relative to the output folder, and so to the workspace."""
    media_type: str = "application/octet-stream"
    role: str = ""


@dataclass(frozen=True)
class Picture:
    """A PNG below the output folder that the model should see."""

    path: PurePosixPath | str
    caption: str


@dataclass(frozen=True)
class Answer(Generic[T]):
    """What a tool returns. `data` becomes `structuredContent`; its type is the output schema.

    Args:
        data: a pydantic model or frozen dataclass; every physical number carries its unit in its name.
        summary: under 120 tokens, stands alone: verdict, three to six numbers with units.
        warnings: sentences in the field's words, each with a number.
        next_step: the call that usually follows, named exactly.
        files: what was written below the output folder.
        pictures: PNGs the model should see.
        programs: name -> version of what did the work.
    """

    data: T
    summary: str
    warnings: tuple[str, ...] = ()
    next_step: str = ""
    files: tuple[OutputFile, ...] = ()
    pictures: tuple[Picture, ...] = ()
    programs: dict[str, str] = field(default_factory=dict)


@dataclass
class ToolContext:
    """What a tool's code may know of its call, inside the adapter's process.

    Attributes:
        call_id: the call's id.
        workspace: root of the workspace, read-only.
        output: this call's own output folder; its tree mirrors the workspace.
        scratch: an empty folder of this call, removed afterwards; the current directory of programs it runs.
        timeout_seconds: what is left for this call when it starts.
        overwrite: whether the caller allowed replacing existing files.
    """

    call_id: str
    workspace: Path
    output: Path
    scratch: Path
    timeout_seconds: float = 120.0
    overwrite: bool = False
    progress: Progress = no_progress

    def input_file(self, path: str) -> Path:
        """Return where to read a workspace-relative path that the server has already judged."""
        return self.workspace / path

    def output_file(self, path: str) -> Path:
        """Return where to write a workspace-relative path, its parent folders made."""
        target = self.output / path
        target.parent.mkdir(parents=True, exist_ok=True)
        return target
