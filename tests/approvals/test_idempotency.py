from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from metaforge.approvals.holders import Holder
from metaforge.approvals.idempotency import KEPT_SECONDS, KeyedWrites
from metaforge.approvals.model import later
from metaforge.core.clock import utc_now
from metaforge.core.errors import InvalidArguments, ToolError
from metaforge.store.database import Database

BOB = ("bob", "key-1")
RESULT = {"summary": "Project Drone created", "data": {"id": "p1", "mass_kg": 0.1}}


@pytest.fixture
def writes(database: Database, holder: Holder) -> KeyedWrites:
    return KeyedWrites(database, holder)


def kind_of(attempt: Callable[[], object]) -> str:
    with pytest.raises(ToolError) as refused:
        attempt()
    return refused.value.kind


def test_a_write_sent_again_gets_the_first_result(writes: KeyedWrites) -> None:
    assert writes.reserve(*BOB, "digest", "call-1") is None
    writes.start(*BOB, "call-1")
    writes.finish(*BOB, "call-1", RESULT)
    assert writes.reserve(*BOB, "digest", "call-2") == RESULT


def test_a_key_stands_for_one_call(writes: KeyedWrites) -> None:
    writes.reserve(*BOB, "digest", "call-1")
    with pytest.raises(InvalidArguments, match="belongs to another call \\(call-1\\)"):
        writes.reserve(*BOB, "other", "call-2")
    writes.finish(*BOB, "call-1", RESULT)
    with pytest.raises(InvalidArguments, match="with a new key"):
        writes.reserve(*BOB, "other", "call-2")


def test_a_key_is_its_callers_own(writes: KeyedWrites) -> None:
    writes.reserve("bob", "key-1", "digest", "call-1")
    assert writes.reserve("eve", "key-1", "digest", "call-2") is None


def test_while_the_first_is_on_its_way_the_second_waits(writes: KeyedWrites) -> None:
    writes.reserve(*BOB, "digest", "call-1")
    assert kind_of(lambda: writes.reserve(*BOB, "digest", "call-2")) == "write_in_progress"
    writes.start(*BOB, "call-1")
    assert kind_of(lambda: writes.reserve(*BOB, "digest", "call-2")) == "write_in_progress"


def test_a_refused_write_gives_its_key_back(writes: KeyedWrites) -> None:
    writes.reserve(*BOB, "digest", "call-1")
    writes.release(*BOB, "call-1")
    assert writes.reserve(*BOB, "other", "call-2") is None


def test_a_result_is_not_taken_back(writes: KeyedWrites) -> None:
    writes.reserve(*BOB, "digest", "call-1")
    writes.finish(*BOB, "call-1", RESULT)
    writes.release(*BOB, "call-1")
    assert writes.reserve(*BOB, "digest", "call-2") == RESULT


def test_a_write_that_waited_in_a_dead_process_may_be_sent_again(
    writes: KeyedWrites, database: Database, tmp_path: Path
) -> None:
    gone = Holder(tmp_path)
    KeyedWrites(database, gone).reserve(*BOB, "digest", "call-1")
    gone.close()
    assert writes.reserve(*BOB, "digest", "call-2") is None


def test_a_write_that_ran_in_a_dead_process_is_not_done_again(
    writes: KeyedWrites, database: Database, tmp_path: Path
) -> None:
    gone = Holder(tmp_path)
    dead = KeyedWrites(database, gone)
    dead.reserve(*BOB, "digest", "call-1")
    dead.start(*BOB, "call-1")
    gone.close()
    assert kind_of(lambda: writes.reserve(*BOB, "digest", "call-2")) == "write_outcome_unknown"


def test_of_ten_sent_at_once_one_goes_on(writes: KeyedWrites) -> None:
    barrier = Barrier(10)

    def reserve(number: int) -> str:
        barrier.wait()
        try:
            return str(writes.reserve(*BOB, "digest", f"call-{number}"))
        except ToolError as refused:
            return refused.kind

    with ThreadPoolExecutor(10) as pool:
        found = sorted(pool.map(reserve, range(10)))
    assert found == ["None"] + ["write_in_progress"] * 9


def test_results_are_kept_a_week(database: Database, holder: Holder) -> None:
    now = start = utc_now()
    writes = KeyedWrites(database, holder, clock=lambda: now)
    writes.reserve(*BOB, "digest", "call-1")
    writes.finish(*BOB, "call-1", RESULT)
    now = later(start, KEPT_SECONDS)
    assert writes.reserve(*BOB, "digest", "call-2") == RESULT
    now = later(start, KEPT_SECONDS + 1)
    assert writes.reserve(*BOB, "digest", "call-3") is None


@pytest.mark.parametrize("key", ["", "x" * 201])
def test_a_key_has_a_length(writes: KeyedWrites, key: str) -> None:
    with pytest.raises(InvalidArguments, match="1 to 200 characters"):
        writes.reserve("bob", key, "digest", "call-1")


def test_any_characters_make_a_key(writes: KeyedWrites) -> None:
    assert writes.reserve("bob", "ä'\"%s?💡", "digest", "call-1") is None
    writes.finish("bob", "ä'\"%s?💡", "call-1", RESULT)
    assert writes.reserve("bob", "ä'\"%s?💡", "digest", "call-2") == RESULT
