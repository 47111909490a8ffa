"""Counters, histograms and gauges in plain memory, rendered for Prometheus when it asks.

Counting a call is two dictionary look-ups; `prometheus_client` is imported by the first `render()`.
"""

import threading
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prometheus_client.core import Metric

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
DURATION_BUCKETS_SECONDS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0)
MAX_SERIES_COUNT = 2000
"""Tool ids come from clients: beyond this many series everything new is counted under `other`."""

GaugeReading = float | Mapping[str, float]
"""One value, or one for each adapter."""


@dataclass
class _Durations:
    counts: list[int] = field(default_factory=lambda: [0] * (len(DURATION_BUCKETS_SECONDS) + 1))
    sum_seconds: float = 0.0


class Metrics:
    """What a process has done since it started."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._calls: dict[tuple[str, str, str], int] = {}
        self._durations: dict[tuple[str, str], _Durations] = {}
        self._workers: dict[tuple[str, str], int] = {}
        self._retrievals: dict[tuple[str, str], _Durations] = {}
        self._hit_count = self._indexed_count = 0
        self._gauges: dict[str, tuple[str, Callable[[], GaugeReading]]] = {}
        self._collector: Callable[[], bytes] | None = None

    def call_finished(self, tool_id: str, adapter_id: str, status: str, seconds: float) -> None:
        """Count one call.

        Args:
            tool_id: the tool; calls with status `unknown_tool` are counted under `unknown`, whatever was asked for.
            adapter_id: the adapter that has the tool, or empty.
            status: how it ended, as its record says.
            seconds: from arrival to answer.
        """
        if status == "unknown_tool":
            tool_id = "unknown"
        with self._lock:
            key = (tool_id, adapter_id, status)
            calls = self._calls
            if key in calls:
                calls[key] += 1
            else:
                tool_id, adapter_id = self._admit(key)
            durations = self._durations.get((tool_id, adapter_id))
            if durations is None:
                durations = self._durations[tool_id, adapter_id] = _Durations()
            durations.counts[bisect_left(DURATION_BUCKETS_SECONDS, seconds)] += 1
            durations.sum_seconds += seconds

    def _admit(self, key: tuple[str, str, str]) -> tuple[str, str]:
        if len(self._calls) >= MAX_SERIES_COUNT:
            key = ("other", "", key[2])
        self._calls[key] = self._calls.get(key, 0) + 1
        return key[0], key[1]

    def worker_started(self, adapter_id: str) -> None:
        """Count an adapter process that came up."""
        self._worker(adapter_id, "started")

    def worker_retired(self, adapter_id: str) -> None:
        """Count an adapter process that was ended on purpose."""
        self._worker(adapter_id, "retired")

    def worker_crashed(self, adapter_id: str) -> None:
        """Count an adapter process that died by itself."""
        self._worker(adapter_id, "crashed")

    def _worker(self, adapter_id: str, event: str) -> None:
        with self._lock:
            self._workers[adapter_id, event] = self._workers.get((adapter_id, event), 0) + 1

    def retrieved(self, mode: str, is_answered: bool, seconds: float, hit_count: int) -> None:
        """Count one search of the knowledge.

        Args:
            mode: hybrid or full_text.
            is_answered: whether anything was near enough.
            seconds: what it took.
            hit_count: how many passages were returned.
        """
        with self._lock:
            durations = self._retrievals.setdefault((mode, "hits" if is_answered else "no_hits"), _Durations())
            durations.counts[bisect_left(DURATION_BUCKETS_SECONDS, seconds)] += 1
            durations.sum_seconds += seconds
            self._hit_count += hit_count

    def passages_indexed(self, count: int) -> None:
        """Count passages that were put into the knowledge."""
        with self._lock:
            self._indexed_count += count

    def gauge(self, name: str, about: str, read: Callable[[], GaugeReading]) -> None:
        """Show a value that is read when asked for.

        Args:
            name: the metric's full name, unit last: `metaforge_journal_pending_count`.
            about: one sentence.
            read: returns one number, or a mapping from adapter id to number.
        """
        self._gauges[name] = (about, read)

    def render(self) -> bytes:
        """Return everything in the Prometheus text format (`CONTENT_TYPE`)."""
        if self._collector is None:
            self._collector = _renderer(self)
        return self._collector()

    def collect(self) -> "Iterator[Metric]":
        """Yield the metric families, for `prometheus_client`'s registry."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

        with self._lock:
            calls = dict(self._calls)
            durations = {key: (list(each.counts), each.sum_seconds) for key, each in self._durations.items()}
            workers = dict(self._workers)
            retrievals = {key: (list(each.counts), each.sum_seconds) for key, each in self._retrievals.items()}
            hit_count, indexed_count = self._hit_count, self._indexed_count
        total = CounterMetricFamily(
            "metaforge_tool_calls", "Tool calls answered.", labels=["tool_id", "adapter_id", "status"]
        )
        for labels, count in calls.items():
            total.add_metric(list(labels), count)
        yield total
        spent = HistogramMetricFamily(
            "metaforge_tool_call_duration_seconds",
            "Time from a call's arrival to its answer.",
            labels=["tool_id", "adapter_id"],
        )
        for pair, (counts, sum_seconds) in durations.items():
            spent.add_metric(list(pair), list(_cumulated(counts)), sum_seconds)
        yield spent
        processes = CounterMetricFamily(
            "metaforge_worker_events", "Adapter processes started, retired and crashed.", labels=["adapter_id", "event"]
        )
        for pair, count in workers.items():
            processes.add_metric(list(pair), count)
        yield processes
        if retrievals or indexed_count:
            yield from _of_knowledge(retrievals, hit_count, indexed_count)
        for name, (about, read) in list(self._gauges.items()):
            reading = read()
            if isinstance(reading, Mapping):
                family = GaugeMetricFamily(name, about, labels=["adapter_id"])
                for adapter_id, value in reading.items():
                    family.add_metric([adapter_id], value)
            else:
                family = GaugeMetricFamily(name, about, value=reading)
            yield family


def _of_knowledge(
    retrievals: Mapping[tuple[str, str], tuple[list[int], float]], hit_count: int, indexed_count: int
) -> "Iterator[Metric]":
    from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily

    spent = HistogramMetricFamily(
        "metaforge_retrieval_duration_seconds",
        "Searches of the knowledge: how long they took, and whether anything was near enough.",
        labels=["mode", "outcome"],
    )
    for pair, (counts, sum_seconds) in retrievals.items():
        spent.add_metric(list(pair), list(_cumulated(counts)), sum_seconds)
    yield spent
    yield CounterMetricFamily("metaforge_retrieval_hits", "Passages that searches returned.", value=hit_count)
    yield CounterMetricFamily("metaforge_knowledge_passages_indexed", "Passages put in.", value=indexed_count)


def _cumulated(counts: list[int]) -> Iterator[tuple[str, float]]:
    so_far = 0
    for bound, count in zip((*DURATION_BUCKETS_SECONDS, float("inf")), counts, strict=True):
        so_far += count
        yield ("+Inf" if bound == float("inf") else repr(bound)), so_far


def _renderer(metrics: Metrics) -> Callable[[], bytes]:
    from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
    from prometheus_client.registry import Collector

    class Adapted(Collector):
        def collect(self) -> "Iterator[Metric]":
            return metrics.collect()

    registry = CollectorRegistry(auto_describe=False)
    registry.register(Adapted())
    ProcessCollector(registry=registry)
    return lambda: generate_latest(registry)


PROCESS = Metrics()
"""This process's own."""

call_finished = PROCESS.call_finished
worker_started = PROCESS.worker_started
worker_retired = PROCESS.worker_retired
worker_crashed = PROCESS.worker_crashed
retrieved = PROCESS.retrieved
passages_indexed = PROCESS.passages_indexed
gauge = PROCESS.gauge
render = PROCESS.render
