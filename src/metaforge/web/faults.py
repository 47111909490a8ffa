"""Errors of the API: one shape for all of them, `{"detail": {"error_type", "reason", ...}}`."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.routing import Route

from metaforge.approvals.faults import LedgerUnavailable, NotClaimable, NotDecidable, UnknownApproval
from metaforge.core.errors import InvalidArguments, MetaForgeError, ResourceNotFound, ResourceUnreadable, ToolError
from metaforge.store.location import StoreUnavailable

_PHRASES = {
    400: "bad_request", 401: "auth_error", 403: "forbidden", 404: "not_found", 405: "method_not_allowed",
    409: "conflict", 413: "too_large", 415: "unsupported_media_type", 422: "invalid_request",
    500: "internal_error", 503: "unavailable",
}  # fmt: skip


class FaultDetail(BaseModel):
    """What went wrong."""

    error_type: str = Field(description="A short stable name to branch on.")
    reason: str = Field(description="What happened, to what, and what to do.")
    fix: str | None = Field(None, description="What to do next.")
    fields: dict[str, str] | None = Field(None, description="What each wrong field should have been.")
    approval_id: str | None = None
    state: str | None = Field(None, description="Where the approval stands.")


class Fault(BaseModel):
    """The body of every error."""

    detail: FaultDetail


FAULTS: dict[int | str, dict[str, Any]] = {
    400: {"model": Fault, "description": "The body cannot be read"},
    401: {"model": Fault, "description": "No valid credential was sent"},
    403: {"model": Fault, "description": "Not from this page, or not this caller's to decide"},
    404: {"model": Fault, "description": "There is no such thing"},
    409: {"model": Fault, "description": "Not possible in its present state"},
    413: {"model": Fault, "description": "The body is too large"},
    415: {"model": Fault, "description": "The body is not JSON"},
    422: {"model": Fault, "description": "The request is not what this operation takes"},
    429: {"model": Fault, "description": "Too many wrong credentials, or calls that wait"},
    503: {"model": Fault, "description": "The store or the ledger cannot be used now"},
}
"""What every operation may answer beside its own results."""


def fault_body(status: int, reason: str, error_type: str = "", **more: Any) -> dict[str, Any]:
    """Return the body of an error."""
    told = {name: value for name, value in more.items() if value}
    return {"detail": {"error_type": error_type or _PHRASES.get(status, "error"), "reason": reason, **told}}


def add_handlers(app: FastAPI) -> None:
    """Let an application answer every error in this shape."""
    app.add_exception_handler(MetaForgeError, _refused)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(Exception, _crashed)


async def _refused(request: Request, fault: Exception) -> JSONResponse:
    assert isinstance(fault, MetaForgeError)
    status, error_type = _standing(fault)
    data = fault.data
    body = fault_body(
        status, fault.message, error_type,
        fix=getattr(fault, "fix", ""), fields=data.get("fields"),
        approval_id=data.get("approval_id"), state=str(data.get("state") or ""),
    )  # fmt: skip
    return JSONResponse(body, status)


def _standing(fault: MetaForgeError) -> tuple[int, str]:
    """Return the HTTP status and the name of a fault."""
    if isinstance(fault, LedgerUnavailable | UnknownApproval | NotDecidable | NotClaimable):
        return fault.status, str(fault.data.get("code") or "unknown_approval")
    if isinstance(fault, ToolError):
        return _status_of_kind(fault.kind), fault.kind
    if isinstance(fault, ResourceNotFound):
        return 404, "not_found"
    if isinstance(fault, StoreUnavailable | ResourceUnreadable):
        return 503, "store_unavailable" if isinstance(fault, StoreUnavailable) else "unreadable"
    return (422, "invalid_arguments") if isinstance(fault, InvalidArguments) else (500, "internal_error")


def _status_of_kind(kind: str) -> int:
    if kind.startswith("unknown_") or kind == "no_item":
        return 404
    if kind.startswith("ambiguous_") or kind in ("session_completed", "run_other_project"):
        return 409
    return 503 if kind == "store_unavailable" else 422


async def _invalid(request: Request, fault: Exception) -> JSONResponse:
    assert isinstance(fault, RequestValidationError)
    fields = _fields(fault.errors())
    told = "; ".join(f"{name}: {what}" for name, what in list(fields.items())[:8])
    return JSONResponse(fault_body(422, f"The request is not valid: {told}", fields=fields), 422)


def _fields(errors: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    fields: dict[str, str] = {}
    for each in errors[:50]:
        where = ".".join(str(part) for part in each["loc"])[:200].encode(errors="replace").decode()
        fields.setdefault(where or "body", str(each["msg"])[:300].encode(errors="replace").decode())
    return fields


async def _http(request: Request, fault: Exception) -> JSONResponse:
    assert isinstance(fault, HTTPException)
    reason, headers = str(fault.detail), fault.headers
    if fault.status_code == 404 and reason == "Not Found":
        reason = f"There is nothing at {request.url.path}: GET /v1/openapi.json lists what there is"
    elif fault.status_code == 405:
        allowed = _allowed(request)
        reason = f"{request.method} is not offered at {request.url.path}: there is {allowed}"
        headers = {"allow": allowed}
    return JSONResponse(fault_body(fault.status_code, reason), fault.status_code, headers=headers)


def _allowed(request: Request) -> str:
    """Return the methods of all routes that a path has."""
    path = request.url.path
    routes: Iterable[tuple[str, Route]] = request.app.state.operations
    found = [
        route.methods
        for prefix, route in routes
        if path.startswith(prefix) and route.path_regex.match(path.removeprefix(prefix))
    ]
    return ", ".join(sorted({method for methods in found for method in methods or ()}))


async def _crashed(request: Request, fault: Exception) -> JSONResponse:
    return JSONResponse(fault_body(500, "This is a fault of the server; its log holds the details"), 500)
