"""Spans through the OpenTelemetry SDK; imported only once a collector is configured."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator

from metaforge.telemetry import trace_context
from metaforge.telemetry.logs import event
from metaforge.telemetry.spans import Attribute

BATCH_DELAY_MS = 1000
MAX_QUEUED_COUNT = 4096


class OtlpTracer:
    """Makes spans and sends them in batches from a thread of its own."""

    def __init__(self, endpoint: str, version: str, timeout_seconds: float) -> None:
        logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)  # `Watched` reports a failing collector, once
        self._exporter = Watched(endpoint, timeout_seconds)
        self._provider = TracerProvider(
            resource=Resource.create({"service.name": "metaforge", "service.version": version}),
            id_generator=CallerTraceIds(),
            shutdown_on_exit=False,
        )
        self._provider.add_span_processor(
            BatchSpanProcessor(self._exporter, max_queue_size=MAX_QUEUED_COUNT, schedule_delay_millis=BATCH_DELAY_MS)
        )
        self._tracer = self._provider.get_tracer("metaforge", version)

    @contextmanager
    def span(self, name: str, attributes: Mapping[str, Attribute], parent: str) -> Iterator["OtlpSpan"]:
        """Open a span that is the current one inside the block."""
        with _started_from(parent) as context:
            live = self._tracer.start_span(name, context, attributes=dict(attributes))
        with trace.use_span(live, end_on_exit=True):
            yield OtlpSpan(live)

    def problem(self) -> str:
        """Return why the last batch did not arrive, or nothing."""
        return self._exporter.problem

    def shutdown(self) -> None:
        """Send what is queued; may take as long as the collector makes it."""
        self._provider.shutdown()


class OtlpSpan:
    """A span of the SDK behind our own words."""

    def __init__(self, live: trace.Span) -> None:
        self._live = live

    @property
    def trace_id(self) -> str:
        return f"{self._live.get_span_context().trace_id:032x}"

    @property
    def traceparent(self) -> str:
        context = self._live.get_span_context()
        return trace_context.render(
            f"{context.trace_id:032x}", f"{context.span_id:016x}", recorded=context.trace_flags.sampled
        )

    def set(self, name: str, value: Attribute) -> None:
        self._live.set_attribute(name, value)

    def fail(self, message: str) -> None:
        self._live.set_status(trace.StatusCode.ERROR, message)


class Watched(SpanExporter):
    """Sends batches and remembers whether they arrive, so that health can tell."""

    def __init__(self, endpoint: str, timeout_seconds: float) -> None:
        self._url = endpoint.rstrip("/") + "/v1/traces"
        self._inner = OTLPSpanExporter(endpoint=self._url, timeout=timeout_seconds)
        self.problem = ""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        result = self._inner.export(spans)
        if result is SpanExportResult.SUCCESS:
            self.problem = ""
        elif not self.problem:
            self.problem = f"spans do not reach the collector at {self._url}"
            event("span_export_failed", "warning", endpoint=self._url, lost_count=len(spans))
        return result

    def shutdown(self) -> None:
        self._inner.shutdown()  # type: ignore[no-untyped-call]

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        return self._inner.force_flush(timeout_millis)


class CallerTraceIds(RandomIdGenerator):
    """Gives a root span the trace id its caller asked for."""

    def generate_trace_id(self) -> int:
        return _wanted_trace_id.get() or super().generate_trace_id()


_wanted_trace_id: ContextVar[int] = ContextVar("wanted_trace_id", default=0)


@contextmanager
def _started_from(parent: str) -> Iterator[Context | None]:
    """Yield where a span starts: under the caller's span, as root of the caller's trace, or under the current span."""
    parsed = trace_context.parse(parent) if parent else None
    if parsed is None:
        yield None
        return
    trace_id, span_id, recorded = parsed
    if not span_id:
        wanted = _wanted_trace_id.set(int(trace_id, 16))
        try:
            yield Context()
        finally:
            _wanted_trace_id.reset(wanted)
        return
    flags = trace.TraceFlags.SAMPLED if recorded else trace.TraceFlags.DEFAULT
    caller = trace.SpanContext(int(trace_id, 16), int(span_id, 16), is_remote=True, trace_flags=trace.TraceFlags(flags))
    yield trace.set_span_in_context(trace.NonRecordingSpan(caller))
