"""One call as it is kept: enough to cite a result as evidence, without secrets and of bounded size."""

import hashlib
from dataclasses import asdict, dataclass, field, fields
from typing import Any

import orjson

from metaforge.telemetry.redaction import redact, redact_text
from metaforge.tools.context import Artefact, Caller, ServiceClaims, Trust

MAX_ARGUMENTS_BYTES = 64 * 1024
MAX_TEXT_CHARS = 4000
MAX_NAME_CHARS = 200
_KEPT_STRING_CHARS = 1000
_OPTIONS = orjson.OPT_NON_STR_KEYS
_UNKNOWN = Caller()
_CALLER_JSON = "_record_json"
"""Where a caller keeps its own JSON: beside its fields, no part of what it is."""


@dataclass(frozen=True)
class CallRecord:
    """One finished call.

    Attributes:
        call_id: unique; a record that arrives twice is kept once.
        tool_id: what was called, or asked for where there is no such tool.
        started_at: ISO 8601 in UTC.
        duration_ms: from arrival to answer.
        status: ok, refused, failed, timeout, cancelled, unavailable, invalid or unknown_tool.
        arguments: as they were sent; secrets are taken out and 64 KiB kept when the record is written.
        inputs: files the call read, with their digests.
        artefacts: files it produced.
        programs: name -> version of what did the work.
    """

    call_id: str
    tool_id: str
    started_at: str
    duration_ms: float
    status: str
    adapter_id: str = ""
    adapter_version: str = ""
    error_kind: str = ""
    error_message: str = ""
    arguments: Any = None
    inputs: tuple[Artefact, ...] = ()
    artefacts: tuple[Artefact, ...] = ()
    programs: dict[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    summary: str = ""
    caller: Caller = _UNKNOWN
    project_id: str = ""
    run_id: str = ""
    trace_id: str = ""
    work_session_id: str = ""
    """The work session whose event this call is; a session nobody started is made of its first call."""

    def line(self) -> bytes:
        """Return the record as one line of JSON without its line end, which is how it is written and stored."""
        body = self._body()
        line = _dumps(body)
        if len(line) > MAX_ARGUMENTS_BYTES:
            body["arguments"] = orjson.Fragment(_bounded(body["arguments"]))
            line = _dumps(body)
        return line

    def _body(self) -> dict[str, Any]:
        body: dict[str, Any] = {
            "call_id": self.call_id,
            "tool_id": self.tool_id[:MAX_NAME_CHARS],
            "started_at": self.started_at,
            "duration_ms": self.duration_ms,
            "status": self.status,
            "adapter_id": self.adapter_id,
            "adapter_version": self.adapter_version,
            "arguments": redact(self.arguments),
            "caller": _caller_json(self.caller),
            "summary": self.summary[:MAX_TEXT_CHARS],
        }
        if self.work_session_id:
            body["work_session_id"] = self.work_session_id[:MAX_NAME_CHARS]
        if self.project_id:
            body["project_id"] = self.project_id[:MAX_NAME_CHARS]
        if self.run_id:
            body["run_id"] = self.run_id[:MAX_NAME_CHARS]
        if self.trace_id:
            body["trace_id"] = self.trace_id[:MAX_NAME_CHARS]
        if self.error_kind or self.error_message:
            body["error_kind"] = self.error_kind[:MAX_NAME_CHARS]
            body["error_message"] = redact_text(self.error_message[:MAX_TEXT_CHARS])
        if self.inputs:
            body["inputs"] = self.inputs
        if self.artefacts:
            body["artefacts"] = self.artefacts
        if self.programs:
            body["programs"] = self.programs
        if self.warnings:
            body["warnings"] = [text[:MAX_TEXT_CHARS] for text in self.warnings[:100]]
        return body

    @classmethod
    def parse(cls, line: str | bytes) -> "CallRecord":
        """Read a record back.

        Raises:
            ValueError: the text is no call record.
        """
        body = orjson.loads(line)
        if not isinstance(body, dict):
            raise ValueError("a call record is a JSON object")
        try:
            body["caller"] = _caller(body.get("caller") or {})
            for name in ("inputs", "artefacts"):
                body[name] = tuple(Artefact(**each) for each in body.get(name, ()))
            body["warnings"] = tuple(body.get("warnings", ()))
            known = {name: body[name] for name in cls.__dataclass_fields__ if name in body}
            return cls(**known)
        except (TypeError, KeyError) as fault:
            raise ValueError(f"not a call record: {fault}") from None


def _caller_json(caller: Caller) -> orjson.Fragment:
    """Return a caller as JSON, written once for each: one caller makes many calls."""
    kept: orjson.Fragment | None = caller.__dict__.get(_CALLER_JSON)
    if kept is None:
        values = {each.name: getattr(caller, each.name) for each in fields(caller)}
        body: dict[str, Any] = {
            name: value if isinstance(value, bool) else str(value)[:MAX_NAME_CHARS]
            for name, value in values.items()
            if name != "service"
        }
        if caller.service is not None:
            body["service"] = asdict(caller.service)
        kept = caller.__dict__[_CALLER_JSON] = orjson.Fragment(_dumps(body))
    return kept


def _caller(body: dict[str, Any]) -> Caller:
    service = body.get("service")
    told = ServiceClaims(**service) if isinstance(service, dict) else None
    return Caller(**{**body, "trust": Trust(body.get("trust", Trust.UNTRUSTED)), "service": told})


def _bounded(clean: Any) -> bytes:
    text = _dumps(clean)
    if len(text) <= MAX_ARGUMENTS_BYTES:
        return text
    note = f"arguments of {len(text)} bytes, SHA-256 {hashlib.sha256(text).hexdigest()}; long texts are cut"
    if isinstance(clean, dict):
        cut = _dumps({**{name: _cut(value) for name, value in clean.items()}, "_cut": note})
        if len(cut) <= MAX_ARGUMENTS_BYTES:
            return cut
    return _dumps({"_cut": note, "beginning": text[:_KEPT_STRING_CHARS].decode(errors="replace")})


def _cut(value: Any) -> Any:
    if isinstance(value, str) and len(value) > _KEPT_STRING_CHARS:
        return f"{value[:_KEPT_STRING_CHARS]}... [{len(value)} characters]"
    if isinstance(value, dict):
        return {name: _cut(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_cut(each) for each in value]
    return value


def _dumps(body: Any) -> bytes:
    try:
        return orjson.dumps(body, default=str, option=_OPTIONS)
    except TypeError:  # integers beyond 64 bits, lone surrogates, deep nesting
        return orjson.dumps(_plain(body), default=str, option=_OPTIONS)


def _plain(value: Any, depth: int = 0) -> Any:
    if depth > 64:
        return "[nested too deeply]"
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        return str(value)
    if isinstance(value, dict):
        return {_plain(str(name)): _plain(each, depth + 1) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each, depth + 1) for each in value]
    return value
