"""Live news of approvals: what is told, when, and that streams end."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from metaforge.approvals.holders import Holder
from metaforge.approvals.ledger import SqlLedger
from metaforge.approvals.model import Approver, State
from metaforge.approvals.waking import StoreWaker
from metaforge.store.database import Database

LIMIT_SECONDS = 10
PERSON = Approver("local:dashboard", False, "dashboard")


class Stream:
    def __init__(self, response) -> None:
        self.response = response
        self._lines = response.aiter_lines()

    async def event(self) -> tuple[str, dict]:
        """Return the next event's name and data; comments are passed over."""
        name = ""
        async with asyncio.timeout(LIMIT_SECONDS):
            async for line in self._lines:
                if line.startswith("event: "):
                    name = line[7:]
                elif line.startswith("data: "):
                    return name, json.loads(line[6:])
        raise AssertionError("the stream ended")

    async def ends(self) -> bool:
        async with asyncio.timeout(LIMIT_SECONDS):
            async for _ in self._lines:
                pass
        return True


@asynccontextmanager
async def followed(served) -> AsyncIterator[Stream]:
    async with served.http.stream("GET", "/v1/approvals/events") as response:
        assert response.status_code == 200
        assert response.headers["content-type"].startswith("text/event-stream")
        assert response.headers["x-accel-buffering"] == "no"
        assert "no-cache" in response.headers["cache-control"]
        yield Stream(response)


async def test_a_reader_hears_how_many_wait_then_of_each_that_comes_and_goes(served) -> None:
    served.hold()
    async with followed(served) as stream:
        assert await stream.event() == ("pending", {"pending_count": 1})

        entry = served.hold()
        name, item = await stream.event()
        assert (name, item["id"], item["status"]) == ("approval", f"tool:{entry.approval_id}", "pending")
        assert item["detail"]["arguments"]["api_key"] == "[redacted]"
        assert await stream.event() == ("pending", {"pending_count": 2})

        await served.services.decide(entry.approval_id, "approve", PERSON)
        name, item = await stream.event()
        assert (item["id"], item["status"]) == (f"tool:{entry.approval_id}", "approved")
        assert await stream.event() == ("pending", {"pending_count": 1})


async def test_what_another_process_holds_is_told_too(served) -> None:
    other = Database("", served.app.home)
    waker, holder = StoreWaker(other, served.app.home), Holder(served.app.home)
    ledger = SqlLedger(other, holder, nudge=waker.nudge)
    async with followed(served) as stream:
        assert await stream.event() == ("pending", {"pending_count": 0})
        entry = ledger.open(served.call())
        _, item = await stream.event()
        assert item["id"] == f"tool:{entry.approval_id}"
        ledger.end(entry.approval_id, State.CANCELED, "the client left")
        assert (await stream.event())[1] == {"pending_count": 1}
        assert (await stream.event())[1]["status"] == "canceled"
    holder.close()
    other.close()


async def test_a_second_reader_hears_the_count_at_once(served) -> None:
    async with followed(served) as first:
        await first.event()
        async with followed(served) as second:
            assert await second.event() == ("pending", {"pending_count": 0})


async def test_nothing_is_watched_once_nobody_reads(served, until) -> None:
    async with followed(served) as stream:
        await stream.event()
        assert served.gateway.feed.is_watching
    await until(lambda: not served.gateway.feed.is_watching)


async def test_the_end_of_the_server_ends_the_streams(served) -> None:
    async with followed(served) as stream:
        await stream.event()
        served.gateway.stop()
        assert await stream.ends()
    async with followed(served) as stream:
        assert await stream.ends()


async def test_a_reader_is_let_go_when_what_let_it_in_is_no_longer_good(served) -> None:
    assert [event async for event in served.gateway.feed.events(0)] == [b"retry: 1000\n\n"]


async def test_more_readers_than_the_server_takes_are_sent_away(served, monkeypatch) -> None:
    monkeypatch.setattr("metaforge.web.feed.MAX_READERS", 1)
    async with followed(served) as stream:
        await stream.event()
        refused = await served.get("/v1/approvals/events", 503)
        assert refused["detail"]["error_type"] == "unavailable"
