"""The table of sessions: bounded, and nothing idle stays."""

import pytest

from metaforge.mcp.clients import Sessions, StatelessClients
from metaforge.mcp.exchange import Exchange
from metaforge.mcp.streams import EventStream
from metaforge.protocol.handshake import Hello
from metaforge.protocol.revisions import Dialect
from metaforge.tools.context import Trust


@pytest.fixture
def sessions():
    return Sessions(idle_seconds=10, limit_count=3)


def opened(sessions, now=0.0):
    client = sessions.open(Hello(name="c"), actor_id="a", trust=Trust.UNTRUSTED, now=now)
    assert client is not None
    return client


def busy(client):
    exchange = Exchange(client, Dialect.HANDSHAKE, 1, "tools/call", {}, EventStream())
    client.calls[1] = exchange
    return exchange


async def test_an_idle_session_expires_and_a_used_one_does_not(sessions):
    idle, used = opened(sessions), opened(sessions)
    sessions.get(used.session.id, now=8)

    assert sessions.expire(now=11) == [idle]
    assert sessions.get(idle.session.id, now=11) is None
    assert sessions.get(used.session.id, now=11) is used


async def test_a_session_with_a_call_or_a_stream_is_not_idle(sessions):
    calling, streaming = opened(sessions), opened(sessions)
    busy(calling)
    streaming.stream = EventStream()

    assert sessions.expire(now=100) == []
    calling.calls.clear()
    streaming.stream.close()
    assert sessions.expire(now=109) == []
    assert len(sessions.expire(now=111)) == 2


async def test_the_longest_idle_session_makes_room(sessions):
    first, second, third = (opened(sessions, now) for now in (0.0, 1.0, 2.0))
    sessions.get(first.session.id, now=3)

    opened(sessions, now=4.0)

    assert sessions.get(second.session.id, now=4) is None
    assert sessions.get(first.session.id, now=4) is first
    assert sessions.get(third.session.id, now=4) is third


async def test_when_every_session_is_at_work_there_is_no_room(sessions):
    for _ in range(3):
        busy(opened(sessions))
    assert sessions.open(Hello(), actor_id="a", trust=Trust.UNTRUSTED, now=0) is None


async def test_ending_a_session_withdraws_its_calls(sessions):
    client = opened(sessions)
    exchange = busy(client)

    assert sessions.end(client.session.id) is client
    assert exchange.cancelled
    assert sessions.end(client.session.id) is None
    assert len(sessions) == 0


def test_session_ids_cannot_be_guessed(sessions):
    ids = {opened(sessions).session.id for _ in range(3)}
    assert len(ids) == 3
    assert all(len(session_id) == 32 for session_id in ids)


def test_stateless_clients_of_one_pipe_share_its_session_and_those_of_a_port_have_none():
    piped = StatelessClients(actor_id="a", trust=Trust.LOCAL, session_id="stdio")
    assert {piped.get(Hello(name, "1")).caller.session_id for name in ("n", "m")} == {"stdio"}
    assert StatelessClients(actor_id="a", trust=Trust.REMOTE).get(Hello("n", "1")).caller.session_id == ""


def test_a_stateless_client_is_made_once_for_each_that_says_the_same():
    clients = StatelessClients(actor_id="a", trust=Trust.LOCAL)
    first = clients.get(Hello("n", "1", capabilities={"elicitation": {}}))

    assert clients.get(Hello("n", "1", capabilities={"elicitation": {}})) is first
    assert clients.get(Hello("n", "1")) is not first
    for number in range(1000):
        clients.get(Hello(str(number), "1"))
    assert len(clients._known) <= 256
