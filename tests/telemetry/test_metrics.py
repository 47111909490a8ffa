import threading

import pytest
from prometheus_client.parser import text_string_to_metric_families

from metaforge.telemetry import metrics
from metaforge.telemetry.metrics import DURATION_BUCKETS_SECONDS, Metrics

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def samples_of(rendered: bytes) -> Samples:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(rendered.decode())
        for sample in family.samples
    }


def sample(of: Metrics, name: str, **labels: str) -> float:
    return samples_of(of.render())[name, frozenset(labels.items())]


def test_calls_are_counted_by_tool_adapter_and_status() -> None:
    own = Metrics()
    own.call_finished("a.x", "a", "ok", 0.2)
    own.call_finished("a.x", "a", "ok", 0.2)
    own.call_finished("a.x", "a", "failed", 0.2)

    assert sample(own, "metaforge_tool_calls_total", tool_id="a.x", adapter_id="a", status="ok") == 2
    assert sample(own, "metaforge_tool_calls_total", tool_id="a.x", adapter_id="a", status="failed") == 1


def test_durations_fall_into_cumulative_buckets_with_inclusive_bounds() -> None:
    own = Metrics()
    for seconds in (0.0005, 0.001, 0.0011, 0.7, 5000.0):
        own.call_finished("a.x", "a", "ok", seconds)

    name, labels = "metaforge_tool_call_duration_seconds", {"tool_id": "a.x", "adapter_id": "a"}
    assert sample(own, f"{name}_bucket", le="0.001", **labels) == 2
    assert sample(own, f"{name}_bucket", le="0.005", **labels) == 3
    assert sample(own, f"{name}_bucket", le="1.0", **labels) == 4
    assert sample(own, f"{name}_bucket", le="1800.0", **labels) == 4
    assert sample(own, f"{name}_bucket", le="+Inf", **labels) == 5
    assert sample(own, f"{name}_count", **labels) == 5
    assert sample(own, f"{name}_sum", **labels) == pytest.approx(5000.7026)


def test_the_buckets_reach_from_a_millisecond_to_half_an_hour() -> None:
    assert sorted(DURATION_BUCKETS_SECONDS) == list(DURATION_BUCKETS_SECONDS)
    assert (DURATION_BUCKETS_SECONDS[0], DURATION_BUCKETS_SECONDS[-1]) == (0.001, 1800.0)


def test_what_clients_invent_makes_no_new_series(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "MAX_SERIES_COUNT", 3)
    own = Metrics()
    for number in range(50):
        own.call_finished(f"junk.{number}", "", "unknown_tool", 0.0)
    for number in range(50):
        own.call_finished(f"tool.{number}", "a", "ok", 0.0)

    assert sample(own, "metaforge_tool_calls_total", tool_id="unknown", adapter_id="", status="unknown_tool") == 50
    assert sample(own, "metaforge_tool_calls_total", tool_id="other", adapter_id="", status="ok") == 48
    assert sample(own, "metaforge_tool_call_duration_seconds_count", tool_id="other", adapter_id="") == 48


def test_names_with_quotes_and_line_ends_survive_the_text_format() -> None:
    own = Metrics()
    own.call_finished('a."x"\n\\é', "a", "ok", 0.0)
    assert sample(own, "metaforge_tool_calls_total", tool_id='a."x"\n\\é', adapter_id="a", status="ok") == 1


def test_workers_are_counted_by_what_became_of_them() -> None:
    own = Metrics()
    own.worker_started("a")
    own.worker_started("a")
    own.worker_crashed("a")
    own.worker_retired("b")
    assert sample(own, "metaforge_worker_events_total", adapter_id="a", event="started") == 2
    assert sample(own, "metaforge_worker_events_total", adapter_id="a", event="crashed") == 1
    assert sample(own, "metaforge_worker_events_total", adapter_id="b", event="retired") == 1


def test_gauges_are_read_when_asked_for() -> None:
    own = Metrics()
    workers = {"a": 1.0}
    own.gauge("metaforge_workers_count", "Running.", lambda: workers)
    own.gauge("metaforge_sessions_count", "Open.", lambda: 4)
    assert sample(own, "metaforge_workers_count", adapter_id="a") == 1
    workers["b"] = 2.0
    assert sample(own, "metaforge_workers_count", adapter_id="b") == 2
    assert sample(own, "metaforge_sessions_count") == 4


def test_calls_counted_from_many_threads_all_count() -> None:
    own = Metrics()

    def count() -> None:
        for _ in range(2000):
            own.call_finished("a.x", "a", "ok", 0.0)

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sample(own, "metaforge_tool_calls_total", tool_id="a.x", adapter_id="a", status="ok") == 8000


def test_the_process_itself_is_measured() -> None:
    names = {name for name, _ in samples_of(Metrics().render())}
    assert {"process_resident_memory_bytes", "process_cpu_seconds_total"} <= names
