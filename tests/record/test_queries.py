from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone

import pytest

from metaforge.record.call_record import CallRecord
from metaforge.record.queries import CallLog
from metaforge.record.recorder import Recorder
from metaforge.tools.context import Artefact

Make = Callable[..., CallRecord]


def artefact(path: str, letter: str) -> Artefact:
    return Artefact(path, f"/w/{path}", letter * 64, 10, "model/step", "geometry")


@pytest.fixture
def three_calls(recorder: Recorder, make: Make) -> None:
    mesh = artefact("part.inp", "b")
    recorder.append(make("cad", started_at="2026-01-01T10:00:00.000Z", artefacts=(artefact("part.step", "a"),)))
    recorder.append(
        make(
            "mesh", tool_id="freecad.generate_mesh", started_at="2026-01-01T11:00:00.000Z",
            inputs=(artefact("part.step", "a"),), artefacts=(mesh,),
        )
    )  # fmt: skip
    recorder.append(
        make("fea", tool_id="calculix.run_fea", started_at="2026-01-02T09:00:00.000Z", status="failed", inputs=(mesh,))
    )


def ids(calls: list[CallRecord]) -> list[str]:
    return [call.call_id for call in calls]


@pytest.mark.usefixtures("three_calls")
def test_calls_are_listed_latest_first_and_filtered(log: CallLog) -> None:
    assert ids(log.list_calls()) == ["fea", "mesh", "cad"]
    assert ids(log.list_calls(2)) == ["fea", "mesh"]
    assert ids(log.list_calls(tool_id="calculix.run_fea")) == ["fea"]
    assert ids(log.list_calls(status="ok")) == ["mesh", "cad"]
    assert ids(log.list_calls(status="failed", tool_id="freecad.generate_mesh")) == []


@pytest.mark.usefixtures("three_calls")
@pytest.mark.parametrize(
    ("since", "expected"),
    [
        ("2026-01-02", ["fea"]),
        ("2026-01-01T11:00:00Z", ["fea", "mesh"]),
        ("2026-01-01T12:00:00+01:00", ["fea", "mesh"]),
        (datetime(2026, 1, 1, 11, 0, 1, tzinfo=UTC), ["fea"]),
        (datetime(2026, 1, 1, 13, 0, tzinfo=timezone(timedelta(hours=2))), ["fea", "mesh"]),
    ],
)
def test_since_takes_dates_and_times_of_any_zone(log: CallLog, since: str | datetime, expected: list[str]) -> None:
    assert ids(log.list_calls(since=since)) == expected


def test_a_since_that_is_no_time_is_refused(log: CallLog) -> None:
    with pytest.raises(ValueError, match="yesterday"):
        log.list_calls(since="yesterday")


@pytest.mark.usefixtures("three_calls")
def test_one_call_is_found_whole(log: CallLog) -> None:
    found = log.get_call("mesh")
    assert found.inputs == (artefact("part.step", "a"),)
    assert found.artefacts == (artefact("part.inp", "b"),)
    with pytest.raises(KeyError):
        log.get_call("nope")


@pytest.mark.usefixtures("three_calls")
def test_a_content_leads_to_the_calls_that_made_and_read_it(log: CallLog) -> None:
    uses = [(use.direction, use.call.call_id, use.file.path) for use in log.uses_of("b" * 64)]
    assert uses == [("input", "fea", "part.inp"), ("artefact", "mesh", "part.inp")]
    assert log.uses_of("f" * 64) == []


@pytest.mark.usefixtures("three_calls")
def test_a_content_has_the_name_and_type_it_was_last_called_by(log: CallLog) -> None:
    assert log.artefact("a" * 64) == artefact("part.step", "a")
    with pytest.raises(KeyError):
        log.artefact("f" * 64)


def test_an_empty_record_lists_nothing(log: CallLog) -> None:
    assert log.list_calls() == []
