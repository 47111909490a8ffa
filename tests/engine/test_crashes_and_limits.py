"""A tool that crashes, hangs or takes too much: a clear error, the next call works, nothing is left."""

import asyncio
import uuid

import psutil
import pytest

from metaforge.core.errors import OverLimit, ToolCrashed, ToolError, ToolTimedOut


async def works(house) -> bool:
    return (await house.call("echo", text="still here")).data["text"] == "still here"


async def test_an_exit_names_its_status_and_last_words(house):
    with pytest.raises(ToolCrashed, match=r"exit status 3.*the kernel says goodbye") as caught:
        await house.call("crash")
    assert caught.value.data["exit_status"] == 3
    assert await works(house)


async def test_a_crash_is_counted_apart_from_a_call_that_was_ended_and_health_tells_both(house):
    with pytest.raises(ToolCrashed):
        await house.call("crash")
    assert await works(house)
    with pytest.raises(ToolTimedOut):
        await house.call("loop", seconds=0.3)
    assert await works(house)
    pool = house.source.pool
    assert (pool.crashed_count, pool.retired_count) == (1, 1)
    detail = (await house.source.health(3.0)).detail
    assert (detail["workers_crashed_count"], detail["workers_retired_count"]) == (1, 1)


async def test_a_segmentation_fault_is_told_as_a_crash_of_the_kernel(house):
    with pytest.raises(ToolCrashed, match=r"CAD kernel or program crashed \(signal 11") as caught:
        await house.call("segfault")
    assert caught.value.data["signal"] == 11
    assert await works(house)


async def test_asking_for_64_gigabytes_is_over_the_memory_limit(house):
    with pytest.raises(OverLimit, match="2048 MB") as caught:
        await house.call("reserve", size_mb=65536)
    assert caught.value.kind == "memory_limit"
    assert await works(house)


async def test_memory_taken_bit_by_bit_ends_at_the_tools_own_limit(house):
    with pytest.raises(OverLimit, match="256 MB") as caught:
        await house.call("hoard", size_mb=1024)
    assert caught.value.kind == "memory_limit"
    assert caught.value.data["limit_mb"] == 256
    assert await works(house)


async def test_without_control_groups_a_watchdog_holds_memory(make_house, monkeypatch):
    monkeypatch.setattr("metaforge.engine.sandbox._memory_rung", lambda folder: "watchdog")
    house = make_house("auto")
    try:
        with pytest.raises(OverLimit, match="256 MB"):
            await house.call("hoard", size_mb=4096)
        assert await works(house)
    finally:
        await house.source.close()
    assert house.strangers() == []


async def test_without_control_groups_or_box_a_watchdog_ends_a_fork_bomb(make_house, monkeypatch):
    monkeypatch.setattr("metaforge.engine.sandbox._memory_rung", lambda folder: "watchdog")
    house = make_house("rlimits")
    try:
        with pytest.raises(OverLimit, match="256 processes"):
            await house.call("fork_bomb")
        assert await works(house)
    finally:
        await house.source.close()
    assert house.strangers() == []


async def test_a_fork_bomb_in_a_box_runs_into_its_limit(box):
    outcome = await box.call("fork_bomb")
    assert 0 < outcome.data["count"] <= 256


async def test_cpu_time_is_limited_apart_from_the_deadline(house):
    with pytest.raises(OverLimit, match="1 s of CPU time") as caught:
        await house.call("burn")
    assert caught.value.kind == "cpu_limit"
    assert await works(house)


async def test_a_loop_ends_at_its_deadline_even_when_it_ignores_sigterm(house):
    await works(house)
    with pytest.raises(ToolTimedOut, match=r"within 0\.4 s"):
        await house.call("loop", seconds=0.4)
    assert house.strangers() == []
    assert await works(house)


async def test_cancelling_ends_every_process_before_it_returns(house):
    marker = uuid.uuid4().hex
    task = asyncio.create_task(house.call("linger", marker=marker, answer=False))
    await house.begun.wait()
    assert len(marked_children(marker)) == 3
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert marked_children(marker) == []
    assert house.strangers() == []
    assert await works(house)


async def test_what_a_crashed_tool_left_running_is_ended_with_it(house):
    marker = uuid.uuid4().hex
    await house.call("linger", marker=marker, answer=True)
    with pytest.raises(ToolCrashed):
        await house.call("crash")
    assert marked_children(marker) == []


def marked_children(marker: str) -> list[int]:
    wanted = f"# {marker}"
    return [p.pid for p in psutil.process_iter(["cmdline"]) if any(wanted in word for word in p.info["cmdline"] or ())]


async def test_five_calls_in_flight_fail_each_for_itself(make_house):
    house = make_house("auto", max_workers=2)
    try:
        ended = await asyncio.gather(*(house.call("crash") for _ in range(5)), return_exceptions=True)
        assert [type(fault).__name__ for fault in ended] == ["WorkerCrashed"] * 5
        assert [message for _, message in house.told] == ["begun"] * 5
        for _ in range(3):
            assert await works(house)
    finally:
        await house.source.close()


async def test_a_fault_of_the_adapter_is_an_answer_and_its_worker_lives_on(house):
    before = (await house.call("echo", text="a")).data["pid"]
    with pytest.raises(ToolError, match="KeyError: 'no such face'") as caught:
        await house.call("fail")
    assert caught.value.kind == "adapter_fault"
    assert (await house.call("echo", text="a")).data["pid"] == before


async def test_a_refusal_arrives_with_all_its_fields(house):
    with pytest.raises(ToolError) as caught:
        await house.call("refuse_retried")
    fault = caught.value
    assert (fault.kind, fault.where, fault.fix) == ("fillet_too_large", "edge 3", "4.99 mm at the most")
    assert fault.failure_mode == "design"
    assert fault.data == {"largest_mm": 4.99}
