import asyncio
import hashlib
import hmac
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from metaforge.approvals import webhook
from metaforge.approvals.model import Entry, State
from metaforge.approvals.webhook import SIGNATURE_HEADER, Webhook, told_of
from metaforge.tools.context import Caller, Trust

from .conftest import a_request

SECRET = "a secret of the webhook"


class Receiver:
    """Takes posts on a loopback port and answers each with the next status."""

    def __init__(self) -> None:
        self.statuses: list[int] = []
        self.posts: list[tuple[dict[str, str], bytes]] = []
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        headers = dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if line)
        self.posts.append((headers, await reader.readexactly(int(headers["content-length"]))))
        status = self.statuses.pop(0) if self.statuses else 200
        writer.write(f"HTTP/1.1 {status} X\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".encode())
        await writer.drain()
        writer.close()
        await writer.wait_closed()


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    receiver = Receiver()
    server = await asyncio.start_server(receiver.serve, "127.0.0.1", 0)
    receiver.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/hook/s3cret-path"
    yield receiver
    server.close()
    await server.wait_closed()


@pytest.fixture
def entry() -> Entry:
    request = a_request(arguments={"api_key": "s3cret"}, title="Create", summary="at https://bob:hunter2@host/")
    return Entry(request, State.AWAITING, on_dashboard=True)


async def test_a_waiting_call_is_told_with_a_link_and_without_its_arguments(receiver: Receiver, entry: Entry) -> None:
    assert await Webhook(receiver.url, SECRET, "https://forge.example").tell(entry)
    headers, body = receiver.posts[0]
    told: dict[str, Any] = json.loads(body)
    assert told["event"] == "approval_waiting"
    assert told["url"] == f"https://forge.example/approvals/{entry.approval_id}"
    assert (told["tool_id"], told["caller"], told["client"]) == ("project.create", "bob", "claude-code 2.1.332")
    assert told["text"].startswith("Create: project.create by bob (claude-code 2.1.332) waits for approval until ")
    assert b"s3cret" not in body
    assert b"hunter2" not in body
    signed = hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
    assert headers[SIGNATURE_HEADER.lower()] == f"sha256={signed}"


async def test_without_a_dashboard_the_command_is_told(receiver: Receiver, entry: Entry) -> None:
    assert await Webhook(receiver.url).tell(entry)
    headers, body = receiver.posts[0]
    assert f"metaforge approvals show {entry.approval_id}" in json.loads(body)["text"]
    assert SIGNATURE_HEADER.lower() not in headers


async def test_a_receiver_that_fails_is_told_again(
    receiver: Receiver, entry: Entry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhook, "_PAUSE_SECONDS", 0.0)
    receiver.statuses = [503, 500]
    assert await Webhook(receiver.url).tell(entry)
    assert len(receiver.posts) == 3


async def test_a_receiver_that_refuses_is_told_once(receiver: Receiver, entry: Entry) -> None:
    receiver.statuses = [404]
    assert not await Webhook(receiver.url).tell(entry)
    assert len(receiver.posts) == 1


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/s3cret-path", "nonsense", "http://["])
async def test_nobody_there_is_logged_without_the_address_and_holds_nothing_up(
    url: str, entry: Entry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhook, "_PAUSE_SECONDS", 0.0)
    logged: list[object] = []
    monkeypatch.setattr(webhook.logs, "event", lambda *told, **more: logged.append((told, more)))
    assert not await Webhook(url).tell(entry)
    assert len(logged) == 1
    assert entry.approval_id in str(logged)
    assert "s3cret-path" not in str(logged)


async def test_telling_goes_on_in_the_background_and_can_be_given_up(receiver: Receiver, entry: Entry) -> None:
    hook = Webhook(receiver.url)
    hook.announce(entry)
    await asyncio.wait(set(hook._telling))
    assert len(receiver.posts) == 1
    hook.announce(entry)
    await hook.close()
    Webhook("").announce(entry)


async def test_a_flood_is_told_a_few_at_a_time_and_no_more_than_can_be_kept(
    receiver: Receiver, entry: Entry, monkeypatch: pytest.MonkeyPatch
) -> None:
    logged: list[object] = []
    monkeypatch.setattr(webhook.logs, "event", lambda *told, **more: logged.append((told, more)))
    monkeypatch.setattr(webhook, "MAX_WAITING_COUNT", 20)
    hook = Webhook(receiver.url)
    for _ in range(25):
        hook.announce(entry)
    assert len(hook._telling) == webhook.AT_ONCE_COUNT
    while hook._telling:
        await asyncio.wait(set(hook._telling))
    assert len(receiver.posts) == 20
    assert len(logged) == 5


async def test_what_does_not_wait_any_more_is_not_told(receiver: Receiver) -> None:
    hook = Webhook(receiver.url)
    hook.announce(Entry(a_request(window_seconds=-1.0), State.AWAITING, on_dashboard=True))
    await asyncio.wait(set(hook._telling))
    assert receiver.posts == []


def test_no_name_makes_a_link_or_calls_everybody() -> None:
    caller = Caller("bob", Trust.UNTRUSTED, "<https://evil.example|Approve> @channel [x](y)\n", "`1`" + "9" * 500)
    entry = Entry(a_request(caller=caller), State.AWAITING, on_dashboard=True)
    text = told_of(entry, "https://forge.example")["text"]
    assert "(https://evil.exampleApprove channel x(y)  1999" in text
    assert not set("<>[]|@`\n") & set(text)
    assert len(text) < 400
