import subprocess
import sys

HEAVY = {
    "opentelemetry", "prometheus_client", "sqlalchemy", "alembic", "pydantic", "httpx", "requests", "structlog",
    "http.server", "psutil",
}  # fmt: skip


def loaded_by(code: str) -> set[str]:
    code += f"\nimport sys; print(*sorted({HEAVY!r} & set(sys.modules)))"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended.stderr
    return set(ended.stdout.split())


def test_counting_logging_and_tracing_load_nothing_heavy() -> None:
    assert (
        loaded_by(
            "from metaforge.telemetry import logs, metrics, spans\n"
            "logs.configure('info'); logs.event('x', a=1)\n"
            "metrics.call_finished('a.x', 'a', 'ok', 0.1)\n"
            "spans.configure('')\n"
            "with spans.span('x', {'a': 1}, 'abc'): pass\n"
            "spans.shutdown()\n"
        )
        == set()
    )


def test_a_configured_collector_loads_nothing_before_the_first_span() -> None:
    code = "from metaforge.telemetry import spans; spans.configure('http://127.0.0.1:9')"
    assert loaded_by(code) == set()


def test_rendering_is_what_loads_the_prometheus_client() -> None:
    code = "from metaforge.telemetry import metrics; metrics.render()"
    assert "prometheus_client" in loaded_by(code)


def test_the_record_and_the_store_load_nothing_heavy() -> None:
    code = "import metaforge.record.queries, metaforge.record.recorder, metaforge.store.blobs, metaforge.store.database"
    assert loaded_by(code) == set()
