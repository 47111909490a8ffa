import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from metaforge.telemetry import logs
from metaforge.telemetry.logs import MAX_LINE_BYTES, StderrLines


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    root, own = logging.getLogger(), logging.getLogger("metaforge")
    before = root.handlers[:], root.level, own.level
    yield
    root.handlers[:], level, own_level = before
    root.setLevel(level)
    own.setLevel(own_level)


def written(capfd: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    out, err = capfd.readouterr()
    assert out == ""
    return [orjson.loads(line) for line in err.splitlines()]


def test_an_event_is_one_json_line_on_stderr(capfd: pytest.CaptureFixture[str]) -> None:
    logs.configure("info")
    logs.event("tool_call_failed", "error", tool_id="a.x", path=Path("/w/é\n"), count=3, api_key="k", n=float("nan"))
    (line,) = written(capfd)
    assert line.pop("ts")
    assert line == {
        "level": "error", "event": "tool_call_failed", "tool_id": "a.x", "path": "/w/é\n", "count": 3,
        "api_key": "[redacted]", "n": None,
    }  # fmt: skip


def test_levels_below_the_chosen_one_are_silent(capfd: pytest.CaptureFixture[str]) -> None:
    logs.configure("warning")
    logs.event("quiet", "info")
    logs.event("loud", "warning")
    assert [line["event"] for line in written(capfd)] == ["loud"]


def test_an_unknown_level_counts_as_warning(capfd: pytest.CaptureFixture[str]) -> None:
    logs.configure("chatty")
    logs.event("quiet", "info")
    assert written(capfd) == []


def test_libraries_speak_in_the_same_form(capfd: pytest.CaptureFixture[str]) -> None:
    logs.configure("warning")
    try:
        raise ValueError("inner reason")
    except ValueError:
        logging.getLogger("some.library").exception("broke at %s", "https://u:pw@host")
    (line,) = written(capfd)
    assert (line["event"], line["logger"]) == ("log", "some.library")
    assert line["message"] == "broke at https://u:[redacted]@host"
    assert str(line["exception"]).endswith("ValueError: inner reason")


def test_configuring_twice_writes_each_line_once(capfd: pytest.CaptureFixture[str]) -> None:
    logs.configure("info")
    logs.configure("info")
    logs.event("once")
    assert len(written(capfd)) == 1


@pytest.mark.parametrize(
    "fields",
    [
        {"a": "x" * 100_000, "tail": "the end"},
        {f"field{number}": "\x01" * 500 for number in range(200)},
        {"deep": {"list": ["y" * 3000] * 3000}},
        {"k" * 10_000: 1},
    ],
)
def test_a_line_of_any_content_stays_short_enough_and_json(
    capfd: pytest.CaptureFixture[str], fields: dict[str, object]
) -> None:
    logs.configure("info")
    logs.event("huge", **fields)
    _, err = capfd.readouterr()
    assert len(err.encode()) <= MAX_LINE_BYTES
    line = orjson.loads(err)
    assert line["event"] == "huge"
    assert line["cut_from_bytes"] > MAX_LINE_BYTES


def test_a_reader_who_stops_reading_costs_lines_and_never_time(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    handler = StderrLines(writing)
    real = os.write

    def write(descriptor: int, content: bytes) -> int:
        try:
            return real(descriptor, content)
        except BlockingIOError:
            raise AssertionError("this write would have waited for the reader") from None

    monkeypatch.setattr(os, "write", write)

    def emit(number: int) -> None:
        record = logging.LogRecord("x", logging.INFO, "", 0, "line %d", (number,), None)
        handler.emit(record)

    for number in range(3000):
        emit(number)
    first = os.read(reading, 1 << 20)
    emit(3000)
    emit(3001)
    second = os.read(reading, 1 << 20)

    kept = [orjson.loads(line)["message"] for line in first.splitlines()]
    assert kept == [f"line {number}" for number in range(len(kept))]
    told, *following = [orjson.loads(line) for line in second.splitlines()]
    assert (told["event"], told["count"]) == ("log_lines_dropped", 3000 - len(kept))
    assert [line["message"] for line in following] == ["line 3000", "line 3001"]
    os.close(reading)
    os.close(writing)


def test_a_process_whose_stderr_nobody_reads_works_and_ends() -> None:
    code = (
        "from metaforge.telemetry import logs\n"
        "logs.configure('info')\n"
        "for number in range(5000): logs.event('line', number=number)\n"
        "print('done', flush=True)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        assert process.wait(timeout=60) == 0
        assert process.stdout is not None
        assert process.stdout.read() == b"done\n"
    finally:
        process.kill()
        process.communicate()


def test_a_process_whose_stderr_is_closed_works() -> None:
    code = (
        "import os\n"
        "from metaforge.telemetry import logs\n"
        "os.close(2); logs.configure('info'); logs.event('line'); logs.event('line'); print('done')\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, timeout=60)
    assert ended.stdout == b"done\n"
