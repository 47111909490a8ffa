import logging
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from metaforge.telemetry.spans import NoSpan, Spans

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


class Collector(HTTPServer):
    """An OTLP/HTTP receiver that keeps what it is sent."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Receiver)
        self.paths: list[str] = []
        self.service: dict[str, str] = {}
        self.spans: dict[str, Any] = {}
        self.status = 200

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Receiver(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.paths.append(self.path)
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            self.server.service |= {each.key: each.value.string_value for each in resource.resource.attributes}
            for scope in resource.scope_spans:
                self.server.spans |= {span.name: span for span in scope.spans}
        self.send_response(self.server.status)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        return None


@pytest.fixture
def collector() -> Iterator[Collector]:
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason="the extra `telemetry` is not installed")
    with Collector() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def spans(collector: Collector) -> Iterator[Spans]:
    level = logging.getLogger("opentelemetry").level
    own = Spans()
    own.configure(collector.url, version="1.2.3")
    yield own
    own.shutdown()
    logging.getLogger("opentelemetry").setLevel(level)


def test_spans_arrive_at_a_collector_with_their_parents_and_attributes(spans: Spans, collector: Collector) -> None:
    with spans.span("tools/call", {"tool_id": "a.x"}, f"00-{TRACE}-{SPAN}-01") as outer:
        outer.set("status", "ok")
        with spans.span("adapter") as inner:
            assert inner.trace_id == TRACE
    spans.shutdown()

    assert set(collector.paths) == {"/v1/traces"}
    assert collector.service["service.name"] == "metaforge"
    assert collector.service["service.version"] == "1.2.3"
    call, adapter = collector.spans["tools/call"], collector.spans["adapter"]
    assert (call.trace_id.hex(), call.parent_span_id.hex()) == (TRACE, SPAN)
    assert (adapter.trace_id.hex(), adapter.parent_span_id) == (TRACE, call.span_id)
    assert {each.key: each.value.string_value for each in call.attributes} == {"tool_id": "a.x", "status": "ok"}
    assert outer.traceparent == f"00-{TRACE}-{call.span_id.hex()}-01"
    assert call.end_time_unix_nano >= adapter.end_time_unix_nano >= call.start_time_unix_nano


def test_a_bare_trace_id_makes_a_root_span_of_that_trace(spans: Spans, collector: Collector) -> None:
    with spans.span("call", parent=TRACE) as span:
        assert span.trace_id == TRACE
    with spans.span("other") as other:
        assert other.trace_id not in (TRACE, "0" * 32)
    spans.shutdown()
    assert collector.spans["call"].trace_id.hex() == TRACE
    assert collector.spans["call"].parent_span_id == b""


def test_a_caller_who_does_not_record_is_followed(spans: Spans, collector: Collector) -> None:
    with spans.span("call", parent=f"00-{TRACE}-{SPAN}-00") as span:
        assert span.trace_id == TRACE
        assert span.traceparent.endswith("-00")
    spans.shutdown()
    assert collector.spans == {}


def test_failures_are_marked(spans: Spans, collector: Collector) -> None:
    with pytest.raises(ValueError, match="bad"), spans.span("raised"):
        raise ValueError("bad")
    with spans.span("said") as span:
        span.fail("refused")
    spans.shutdown()
    assert collector.spans["raised"].status.code == collector.spans["said"].status.code == 2
    assert collector.spans["said"].status.message == "refused"
    assert collector.spans["raised"].events[0].name == "exception"


def test_a_collector_that_refuses_is_told_in_health_and_logged_once(
    spans: Spans, collector: Collector, caplog: pytest.LogCaptureFixture
) -> None:
    collector.status = 400
    with spans.span("a"):
        pass
    tracer = spans._tracer
    spans.shutdown()
    assert tracer is not None
    assert tracer.problem() == f"spans do not reach the collector at {collector.url}/v1/traces"
    assert [record.message for record in caplog.records] == ["span_export_failed"]


def test_without_a_collector_the_callers_trace_is_handed_on() -> None:
    spans = Spans()
    assert not spans.enabled()
    with spans.span("call", {"a": 1}, f"00-{TRACE}-{SPAN}-01") as span:
        span.set("b", 2)
        span.fail("x")
        assert (span.trace_id, span.traceparent) == (TRACE, f"00-{TRACE}-{SPAN}-01")
    with spans.span("call", parent="abc-123-def") as span:
        assert (span.trace_id, span.traceparent) == ("abc-123-def", "")
    assert isinstance(spans.span("call"), NoSpan)
    assert spans.span("one") is spans.span("two")
    spans.shutdown()


def test_without_the_extra_the_server_works_and_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "metaforge.telemetry.spans_otlp", None)
    spans = Spans()
    spans.configure("http://127.0.0.1:4318")
    with spans.span("call", parent=TRACE) as span:
        assert span.trace_id == TRACE
    assert "pip install 'metaforge[telemetry]'" in spans.problem()
    assert not spans.enabled()


@pytest.mark.parametrize("answers", [False, True], ids=["nobody listens", "accepts and never answers"])
def test_a_dead_collector_does_not_hold_up_the_exit(answers: bool) -> None:
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason="the extra `telemetry` is not installed")
    code = (
        "import sys\n"
        "from metaforge.telemetry import spans as room\n"
        "room.EXPORT_TIMEOUT_SECONDS = 3600\n"
        "room.configure(sys.argv[1])\n"
        "for _ in range(600):\n"
        "    with room.span('call'): pass\n"
        "room.shutdown()\n"
        "print('shut down', flush=True)\n"
    )
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        if answers:
            listener.listen(8)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        # An exit that left it to the SDK would take 30 s, one that waited for the collector an hour.
        ended = subprocess.run([sys.executable, "-c", code, url], capture_output=True, text=True, timeout=25)
    assert (ended.returncode, ended.stdout) == (0, "shut down\n"), ended.stderr
