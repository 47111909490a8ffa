"""The record of calls, and the contents they read and produced."""

from datetime import MINYEAR, UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response
from pydantic import AfterValidator, BaseModel, Field, WithJsonSchema
from starlette.concurrency import run_in_threadpool

from metaforge.core.errors import ResourceNotFound
from metaforge.record.call_record import CallRecord
from metaforge.tools.context import Artefact
from metaforge.web.api.parameters import MAX_LIMIT, CallId, Filter, Served, Sha256

router = APIRouter(tags=["calls"])
_SHOWN_TYPES = frozenset(("image/png", "image/jpeg", "image/webp", "model/gltf-binary"))
"""What browsers show without running anything in it; all else is saved."""


def _moment(text: str) -> str:
    """Return a time as records write it: UTC with milliseconds."""
    try:
        moment = datetime.fromisoformat(text.upper())
    except ValueError:
        raise ValueError("takes a time with its zone, such as 2026-11-30T18:00:00Z") from None
    if moment.tzinfo is None:
        raise ValueError("takes a time with its zone, such as 2026-11-30T18:00:00Z")
    try:
        return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    except OverflowError:  # beyond the years that can be written: before or after everything
        return "" if moment.year == MINYEAR else text


Moment = Annotated[str, AfterValidator(_moment), WithJsonSchema({"type": "string", "format": "date-time"})]


class FileRow(BaseModel):
    """A file that a call read or produced."""

    path: str
    uri: str
    sha256: str
    size_bytes: int
    media_type: str
    role: str


class CallRow(BaseModel):
    """A call in a list."""

    call_id: str
    tool_id: str
    status: str
    started_at: str
    duration_ms: float
    summary: str
    error_kind: str
    error_message: str
    actor_id: str
    client_name: str
    project_id: str
    run_id: str
    session_id: str = Field(description="The work session whose event the call is.")


class CallDetail(CallRow):
    """A call: what it was asked, what it read, what it made, and with which programs."""

    adapter_id: str
    adapter_version: str
    client_version: str
    trust: str
    arguments: Any = Field(description="As they were sent, without secrets.")
    inputs: list[FileRow]
    artefacts: list[FileRow]
    programs: dict[str, str]
    warnings: list[str]
    trace_id: str


class Calls(BaseModel):
    """Calls, the latest first."""

    items: list[CallRow]


class CallFilter(Filter):
    """Which calls."""

    limit: int = Query(50, ge=1, le=MAX_LIMIT, description="At most so many.")
    tool_id: str = Query("", pattern="^([a-z0-9_.]{1,100})?$", description="Of this tool only.")
    status: str = Query("", pattern="^([a-z_]{1,30})?$", description="That ended so only: ok, refused, failed ...")
    since: Moment | None = Query(None, description="That started then or later.")


@router.get("/calls")
async def list_calls(served: Served, which: Annotated[CallFilter, Query()]) -> Calls:
    """List calls, the latest first."""
    found = await run_in_threadpool(
        served.calls.list_calls, which.limit, which.tool_id, which.status, which.since or ""
    )
    return Calls(items=[CallRow(**call_row(each)) for each in found])


@router.get("/calls/{call_id}")
async def read_call(served: Served, call_id: CallId, nothing: Annotated[Filter, Query()]) -> CallDetail:
    """Read one call."""
    return call_detail(await found_call(served, call_id))


async def found_call(served: Served, call_id: str) -> CallRecord:
    """Return a call's record.

    Raises:
        ResourceNotFound: no call has this id.
    """
    try:
        return await run_in_threadpool(served.calls.get_call, call_id)
    except KeyError:
        raise ResourceNotFound(f"There is no call {call_id!r}: GET /v1/calls lists them") from None


def call_row(call: CallRecord) -> dict[str, Any]:
    """Return what a list tells of a call."""
    return {
        "call_id": call.call_id, "tool_id": call.tool_id, "status": call.status, "started_at": call.started_at,
        "duration_ms": call.duration_ms, "summary": call.summary, "error_kind": call.error_kind,
        "error_message": call.error_message, "actor_id": call.caller.actor_id,
        "client_name": call.caller.client_name, "project_id": call.project_id, "run_id": call.run_id,
        "session_id": call.work_session_id,
    }  # fmt: skip


def call_detail(call: CallRecord) -> CallDetail:
    """Return all that is told of a call."""
    return CallDetail(
        **call_row(call), adapter_id=call.adapter_id, adapter_version=call.adapter_version,
        client_version=call.caller.client_version, trust=str(call.caller.trust), arguments=call.arguments,
        inputs=[_file(each) for each in call.inputs], artefacts=[_file(each) for each in call.artefacts],
        programs=call.programs, warnings=list(call.warnings), trace_id=call.trace_id,
    )  # fmt: skip


def _file(file: Artefact) -> FileRow:
    return FileRow(path=file.path, uri=file.uri, sha256=file.sha256, size_bytes=file.size_bytes,
                   media_type=file.media_type, role=file.role)  # fmt: skip


@router.get(
    "/artefacts/{sha256}",
    response_class=Response,
    responses={
        200: {
            "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
            "description": "The content, by its own media type",
        }
    },
)
async def read_artefact(served: Served, sha256: Sha256, nothing: Annotated[Filter, Query()]) -> Response:
    """Read a content that a call read or produced, such as a picture or a model."""
    content = await served.resources.read(f"metaforge://artefacts/{sha256}")
    shown = content.media_type in _SHOWN_TYPES
    return Response(
        content.content,
        media_type=content.media_type if shown else "application/octet-stream",
        headers={
            "content-disposition": f'{"inline" if shown else "attachment"}; filename="{sha256[:16]}"',
            # The address is the content's own digest: it can never change.
            "cache-control": "private, max-age=31536000, immutable",
            "etag": f'"{sha256}"',
        },
    )
