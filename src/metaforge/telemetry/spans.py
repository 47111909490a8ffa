"""Spans for an OpenTelemetry collector. Without one configured nothing is imported and a span is a shared no-op."""

import threading
from collections.abc import Mapping
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Protocol

from metaforge.telemetry import trace_context

Attribute = str | int | float | bool

EXPORT_TIMEOUT_SECONDS = 5.0
SHUTDOWN_SECONDS = 0.3


class Span(Protocol):
    """One timed piece of work, open inside a `with span(...)`."""

    @property
    def trace_id(self) -> str:
        """32 hex digits to give back to the caller; the caller's own text when nothing is recorded."""
        ...

    @property
    def traceparent(self) -> str:
        """W3C header for whoever works on behalf of this span; empty when there is no trace."""
        ...

    def set(self, name: str, value: Attribute) -> None:
        """Add an attribute."""
        ...

    def fail(self, message: str) -> None:
        """Mark the work as failed; an exception that leaves the block does so by itself."""
        ...


class Tracer(Protocol):
    """Makes real spans; `spans_otlp.OtlpTracer` is one."""

    def span(self, name: str, attributes: Mapping[str, Attribute], parent: str) -> AbstractContextManager[Span]: ...

    def problem(self) -> str: ...

    def shutdown(self) -> None: ...


class NoSpan:
    """Records nothing and passes the caller's trace on."""

    __slots__ = ("_parent",)

    def __init__(self, parent: str = "") -> None:
        self._parent = parent

    def __enter__(self) -> "NoSpan":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    @property
    def trace_id(self) -> str:
        return trace_context.trace_id_of(self._parent)

    @property
    def traceparent(self) -> str:
        parsed = trace_context.parse(self._parent)
        return self._parent.strip().lower() if parsed and parsed[1] else ""

    def set(self, name: str, value: Attribute) -> None:
        return None

    def fail(self, message: str) -> None:
        return None


_NO_SPAN = NoSpan()


class Spans:
    """Where spans go; unconfigured, nowhere."""

    def __init__(self) -> None:
        self._endpoint = ""
        self._version = ""
        self._tracer: Tracer | None = None
        self._problem = ""
        self._lock = threading.Lock()

    def configure(self, endpoint: str, *, version: str = "") -> None:
        """Send spans to a collector from now on; the SDK is imported by the first span.

        Args:
            endpoint: base URL of an OTLP/HTTP collector, such as `http://127.0.0.1:4318`; empty for none.
            version: of this program, as `service.version`.
        """
        self.shutdown()
        self._endpoint, self._version, self._problem = endpoint, version, ""

    def enabled(self) -> bool:
        """Return whether spans go anywhere."""
        return bool(self._endpoint)

    def span(
        self, name: str, attributes: Mapping[str, Attribute] | None = None, parent: str = ""
    ) -> AbstractContextManager[Span]:
        """Open a span around a `with` block.

        Args:
            name: low in variety: `tools/call`.
            attributes: what is known from the start.
            parent: the caller's `traceparent` or trace id; without one the enclosing span is the parent.
        """
        if not self._endpoint:
            return NoSpan(parent) if parent else _NO_SPAN
        tracer = self._tracer or self._start()
        return tracer.span(name, attributes or {}, parent) if tracer else NoSpan(parent)

    def problem(self) -> str:
        """Return why spans do not arrive, for health; empty when there is nothing to say."""
        tracer = self._tracer
        return self._problem or (tracer.problem() if tracer else "")

    def shutdown(self) -> None:
        """Send what is left, waiting at most 0.3 s, whatever the collector does."""
        tracer, self._tracer, self._endpoint = self._tracer, None, ""
        if tracer is None:
            return
        farewell = threading.Thread(target=tracer.shutdown, name="spans-shutdown", daemon=True)
        farewell.start()
        farewell.join(SHUTDOWN_SECONDS)

    def _start(self) -> Tracer | None:
        with self._lock:
            if self._tracer is None and self._endpoint:
                try:
                    from metaforge.telemetry.spans_otlp import OtlpTracer
                except ImportError as fault:
                    self._problem = (
                        f"OTEL_EXPORTER_OTLP_ENDPOINT is set but spans cannot be sent ({fault}): "
                        "pip install 'metaforge[telemetry]'"
                    )
                    self._endpoint = ""
                    return None
                self._tracer = OtlpTracer(self._endpoint, self._version, EXPORT_TIMEOUT_SECONDS)
            return self._tracer


PROCESS = Spans()
"""This process's own."""

configure = PROCESS.configure
enabled = PROCESS.enabled
span = PROCESS.span
problem = PROCESS.problem
shutdown = PROCESS.shutdown
