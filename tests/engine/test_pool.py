"""Workers handed out, kept apart, retired and started again."""

import asyncio

import pytest

from metaforge.core.errors import Busy, ToolCrashed, ToolError, ToolTimedOut, ToolUnavailable
from metaforge.engine.breaker import Breaker
from metaforge.engine.pool import CRASHES_IN_A_ROW, WorkerPool
from metaforge.engine.turns import Turns
from metaforge.telemetry import metrics


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class FakeBox:
    pid = 1


class FakeWorker:
    def __init__(self) -> None:
        self.spoiled = False
        self.alive = True
        self.idle_since = 0.0
        self.started = 0.0
        self.calls_served = 0
        self.died = False
        self.box = FakeBox()
        self.ended = asyncio.get_running_loop().create_future()

    async def kill(self) -> None:
        self.alive = False
        if not self.ended.done():
            self.ended.set_result(None)

    def die(self) -> None:
        self.died, self.alive = True, False
        self.ended.set_result(None)


def make_pool(clock: Clock, start=None, **more) -> WorkerPool:
    async def begin():
        return FakeWorker()

    options = {"max_workers": 2, "idle_seconds": 300.0, "free_mb": lambda: 10_000.0} | more
    return WorkerPool("test", start or begin, clock=clock, **options)


async def test_calls_wait_in_line_for_the_workers_there_may_be():
    pool = make_pool(Clock())
    first, second = await pool.wait(), await pool.wait()
    third, fourth = pool.wait(), pool.wait()
    await asyncio.sleep(0)
    assert not third.done()
    pool.release(second)
    assert third.result() is second
    pool.release(first)
    assert fourth.result() is first
    await pool.close()


async def test_a_worker_given_to_a_call_that_left_goes_to_the_next():
    pool = make_pool(Clock(), max_workers=1)
    worker = await pool.wait()
    left, next_one = pool.wait(), pool.wait()
    pool.release(worker)
    assert left.result() is worker
    pool.give_up(left)
    assert next_one.result() is worker
    await pool.close()


async def test_a_call_that_left_while_waiting_is_passed_over():
    pool = make_pool(Clock(), max_workers=1)
    worker = await pool.wait()
    left, next_one = pool.wait(), pool.wait()
    pool.give_up(left)
    pool.release(worker)
    assert next_one.result() is worker
    await pool.close()


async def test_an_idle_worker_is_retired_after_its_time_and_none_is_kept():
    clock = Clock()
    pool = make_pool(clock)
    worker = await pool.wait()
    pool.release(worker)
    clock.now += 299
    pool.retire_idle()
    assert pool.idle == [worker]
    clock.now += 1
    pool.retire_idle()
    await asyncio.sleep(0)
    assert pool.workers == []
    assert not worker.alive
    await pool.close()


async def test_a_spoiled_worker_serves_no_other_call():
    pool = make_pool(Clock(), max_workers=1)
    worker = await pool.wait()
    waiting = pool.wait()
    worker.spoiled = True
    pool.release(worker)
    other = await waiting
    assert other is not worker
    assert not worker.alive
    await pool.close()


async def test_what_starts_is_retired_or_has_crashed_and_is_counted_once(monkeypatch):
    counted = []
    for name in ("worker_started", "worker_retired", "worker_crashed"):
        monkeypatch.setattr(metrics, name, lambda adapter_id, name=name: counted.append(name))
    clock = Clock()
    pool = make_pool(clock, max_workers=4)
    idle_too_long, dies_at_work, dies_idle, spoiled = [await pool.wait() for _ in range(4)]
    dies_at_work.die()
    pool.release(dies_at_work)
    pool.release(dies_idle)
    dies_idle.die()
    await asyncio.sleep(0)
    spoiled.spoiled = True
    await pool.discard(spoiled)
    pool.release(idle_too_long)
    clock.now += 301
    pool.retire_idle()
    last = await pool.wait()
    pool.release(last)
    await pool.close()
    assert sorted(counted) == 2 * ["worker_crashed"] + 3 * ["worker_retired"] + 5 * ["worker_started"]
    assert (pool.retired_count, pool.crashed_count) == (3, 2)


@pytest.mark.parametrize(("free_mb", "started"), [(2049.0, 1), (2048.0, 0)])
async def test_a_worker_is_started_ahead_only_where_memory_is_free(free_mb, started):
    pool = make_pool(Clock(), prestart_free_mb=2048, free_mb=lambda: free_mb)
    pool.prestart()
    await asyncio.sleep(0.0)
    await asyncio.sleep(0.0)
    assert len(pool.idle) == started
    pool.prestart()
    assert pool.starting_count == 0
    await pool.close()


async def test_starting_ahead_can_be_switched_off():
    pool = make_pool(Clock(), prestart=False)
    pool.prestart()
    assert pool.starting_count == 0
    await pool.close()


async def test_three_failed_starts_open_the_breaker_and_a_probe_closes_it():
    clock, broken, starts = Clock(), True, []

    async def start():
        starts.append(clock.now)
        if broken:
            raise ToolCrashed("No module named 'OCP'")
        return FakeWorker()

    pool = make_pool(clock, start)
    for _ in range(3):
        with pytest.raises(ToolCrashed, match="OCP"):
            await pool.wait()
    with pytest.raises(ToolUnavailable, match=r"failed to start 3 times in a row: No module named 'OCP'.*in 30 s"):
        await pool.wait()
    assert len(starts) == 3
    clock.now += 31
    with pytest.raises(ToolCrashed):
        await pool.wait()
    assert len(starts) == 4
    with pytest.raises(ToolUnavailable):
        await pool.wait()
    clock.now += 31
    with pytest.raises(ToolUnavailable, match="in 29 s"):
        await pool.wait()
    broken = False
    clock.now += 30
    worker = await pool.wait()
    assert pool.breaker.state == "closed"
    pool.release(worker)
    await pool.close()


async def test_what_starts_and_crashes_again_and_again_is_paused_until_a_probe_answers():
    clock = Clock()

    async def begin():
        worker = FakeWorker()
        worker.started = clock.now
        return worker

    pool = make_pool(clock, begin, max_workers=5)
    # Five at once say once that something is wrong.
    together = [await pool.wait() for _ in range(5)]
    for worker in together:
        worker.die()
        pool.note_crash(worker, "exit status 3")
        pool.release(worker)
    assert pool.crashes.failures == 1
    for _ in range(CRASHES_IN_A_ROW - 1):
        clock.now += 0.1
        worker = await pool.wait()
        worker.die()
        pool.note_crash(worker, "exit status 3")
        pool.release(worker)
    with pytest.raises(ToolUnavailable, match=r"started and crashed 8 times in a row: exit status 3.* in 2 s") as told:
        await pool.wait()
    assert told.value.data["retry_after_seconds"] == 2
    pool.prestart()
    assert pool.starting_count == 0
    clock.now += 2
    worker = await pool.wait()
    pool.note_refusal()
    assert pool.open_breaker is None
    pool.release(worker)
    await pool.close()


async def test_callers_take_turns_and_each_ones_calls_keep_their_order():
    pool = make_pool(Clock(), max_workers=1)
    worker = await pool.wait("a")
    order = []

    def line_up(caller, number):
        future = pool.wait(caller)
        future.add_done_callback(lambda _: order.append(f"{caller}{number}"))
        return future

    waiting = [line_up("a", number) for number in range(4)] + [line_up("b", 0), line_up("b", 1), line_up("c", 0)]
    pool.give_up(waiting[1])
    for _ in range(6):
        pool.release(worker)
        await asyncio.sleep(0)
    assert order == ["a1", "a0", "b0", "c0", "a2", "b1", "a3"]
    assert pool.waiting_count == 0
    await pool.close()


async def test_one_callers_line_and_all_lines_together_are_bounded_and_say_when_to_call_again():
    pool = make_pool(Clock(), max_workers=1, turns=Turns("test", longest=4, longest_of_one=2))
    worker = await pool.wait("a")
    pool.note_answer(6.0)
    waiting = [pool.wait("a"), pool.wait("a")]
    with pytest.raises(Busy, match=r"test is busy: 2 of your calls wait.* call again in 12 s") as told:
        await pool.wait("a")
    assert told.value.data == {"reason": "busy", "retry_after_seconds": 12, "waiting_count": 2, "install": ""}
    waiting += [pool.wait("b"), pool.wait("c")]
    with pytest.raises(Busy, match="4 calls wait"):
        await pool.wait("d")
    pool.give_up(waiting[2])
    waiting[2] = pool.wait("d")
    for future in waiting:
        pool.give_up(future)
    pool.release(worker)
    await pool.close()


async def test_closing_refuses_those_who_wait():
    pool = make_pool(Clock(), max_workers=1)
    await pool.wait()
    waiting = pool.wait()
    await pool.close()
    with pytest.raises(ToolUnavailable, match="shutting down"):
        await waiting
    with pytest.raises(ToolUnavailable, match="shutting down"):
        await pool.wait()


def test_a_half_open_breaker_admits_one():
    clock = Clock()
    breaker = Breaker(threshold=1, pause_seconds=10, clock=clock)
    breaker.fail("no licence")
    assert (breaker.state, breaker.admit(), breaker.seconds_left) == ("open", False, 10)
    clock.now += 10
    assert breaker.state == "half-open"
    assert breaker.admit()
    assert not breaker.admit()
    breaker.release()
    assert breaker.admit()


# -- the same with real processes ----------------------------------------------------------------------------------


async def test_a_warm_worker_is_used_again(house):
    pids = {(await house.call("echo", text="a")).data["pid"] for _ in range(3)}
    assert len(pids) == 1
    assert house.source.pool.workers[0].calls_served == 3


async def test_a_process_that_ran_a_callers_code_serves_no_other_call(house):
    await house.call("script", code="import builtins; builtins.poisoned = True")
    outcome = await house.call("script", code="import builtins; text = str(hasattr(builtins, 'poisoned'))")
    assert outcome.data["text"] == "False"
    assert house.source.pool.workers == []


async def test_a_callers_code_is_gone_before_its_files_are_taken(house):
    code = """
if os.fork() == 0:
    os.setsid()
    while True:
        with open(ctx.output / "a.txt", "a") as file:
            file.write("more")
ctx.output_file("a.txt").write_text("one")
from metaforge.tools.context import OutputFile
files = [OutputFile("a.txt")]
"""
    outcome = await house.call("script", code=code, output_path="a.txt")
    placed = (house.workspace / "a.txt").read_bytes()
    assert len(placed) == outcome.files[0].size_bytes
    assert house.strangers() == []


async def test_a_callers_code_places_no_picture_but_beside_what_was_asked_for(any_house):
    code = """
from metaforge.tools.context import Picture
ctx.output_file("elsewhere.png").write_bytes(b"\\x89PNG\\r\\n\\x1a\\n")
pictures = [Picture("elsewhere.png", "")]
"""
    with pytest.raises(ToolError, match=r"asked for part\.step"):
        await any_house.call("script", code=code, output_path="part.step")
    assert list(any_house.workspace.iterdir()) == []


async def test_a_spare_is_started_after_a_worker_was_used_up(make_house):
    house = make_house("auto", METAFORGE_PRESTART="true", METAFORGE_PRESTART_FREE_MB="1")
    try:
        await house.call("script", code="pass")
        assert house.source.pool.starting_count == 1
    finally:
        await house.source.close()
    assert house.strangers() == []


async def test_an_adapter_that_cannot_start_says_why_and_then_is_unavailable_at_once(make_house):
    house = make_house("auto", target="misbehaving:BrokenServer")
    try:
        for _ in range(3):
            with pytest.raises(ToolCrashed, match="No module named 'no_such_cad_kernel'"):
                await house.call("echo", text="a")
        with pytest.raises(ToolUnavailable, match="3 times in a row"):
            await house.call("echo", text="a")
        health = await house.source.health(3.0)
        assert (health.reachable, health.state) == (False, "down")
        assert "no_such_cad_kernel" in health.error
    finally:
        await house.source.close()


async def test_waiting_for_a_worker_counts_against_the_deadline(make_house):
    house = make_house("auto", max_workers=1)
    try:
        busy = asyncio.create_task(house.call("loop"))
        await house.begun.wait()
        with pytest.raises(ToolTimedOut, match="waiting for a free worker"):
            await house.call("echo", text="a", seconds=1.0)
        assert not busy.done()
        busy.cancel()
        with pytest.raises(asyncio.CancelledError):
            await busy
    finally:
        await house.source.close()


async def test_closing_ends_a_call_under_way_and_one_that_is_starting(make_house):
    house = make_house("auto", max_workers=2)
    busy = asyncio.create_task(house.call("loop"))
    await house.begun.wait()
    starting = asyncio.create_task(house.call("echo", text="a"))
    await asyncio.sleep(0)
    await house.source.close()
    ended = await asyncio.gather(busy, starting, return_exceptions=True)
    assert [isinstance(fault, ToolCrashed | ToolUnavailable) for fault in ended] == [True, True]
    assert house.strangers() == []


async def test_health_of_a_ready_adapter_is_asked_and_of_an_idle_one_is_not(house):
    health = await house.source.health(3.0)
    assert (health.state, health.reachable, house.source.pool.workers) == ("idle", True, [])
    await house.call("echo", text="a")
    health = await house.source.health(3.0)
    assert (health.state, health.reachable) == ("ready", True)
    (worker,) = health.detail["workers"]
    assert worker["rss_mb"] > 5
    assert worker["calls_served"] == 1


async def test_progress_is_passed_on(house):
    await house.call("slow", duration_seconds=0.0)
    assert house.told == [(0.0, "begun"), (1.0, "ended")]
