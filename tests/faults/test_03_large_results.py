"""Fault 3: a large result kills or wedges the reader."""

import json
from typing import Any

import pytest

CAP_MB = 24
FAULTY = '[adapters.faulty]\ntarget = "faulty:FaultyServer"\nmax_workers = 2\n'


@pytest.fixture
async def capped(start: Any, transport: str) -> Any:
    return await start(transport, FAULTY, METAFORGE_MAX_OUTPUT_MB=str(CAP_MB))


async def test_every_size_below_the_cap_arrives_byte_equal(capped: Any) -> None:
    session = await capped.session()
    for size in (65_535, 65_536, 65_537, 1_000_000, 20_000_000):
        other = session.begin("faulty.echo", {"text": "meanwhile"})
        answer = await session.call("faulty.line", {"size_bytes": size})
        assert answer["result"]["structuredContent"]["text"] == "x" * size
        assert (await other)["result"]["structuredContent"]["text"] == "meanwhile"


async def test_over_the_cap_that_request_alone_fails_names_the_limit_and_where_the_answer_is(capped: Any) -> None:
    session = await capped.session()
    await session.data("faulty.echo", text="up")
    before = capped.rss_mb()
    other = session.begin("faulty.slow", {"seconds": 1.0})
    answer = await session.call("faulty.line", {"size_bytes": 60_000_000})
    assert answer["result"]["isError"]
    text, link = answer["result"]["content"]
    assert f"larger than {CAP_MB} MB" in text["text"]
    assert link["type"] == "resource_link"
    assert link["uri"] in text["text"]
    assert link["size"] > 60_000_000
    assert "result" in await other
    assert (await session.data("faulty.echo", text="after"))["text"] == "after"
    assert capped.rss_mb() - before < 6 * CAP_MB
    kept = await session.request("resources/read", {"uri": link["uri"]})
    (content,) = kept["result"]["contents"]
    assert content["mimeType"] == "application/json"
    assert json.loads(content["text"])["result"]["data"]["text"] == "x" * 60_000_000


async def test_a_line_without_an_end_is_cut_off_and_the_adapter_survives(capped: Any) -> None:
    session = await capped.session()
    await session.data("faulty.echo", text="up")
    before = capped.rss_mb()
    other = session.begin("faulty.slow", {"seconds": 1.0})
    answer = await session.call("faulty.line", {"size_bytes": 1 << 40})
    assert answer["result"]["isError"]
    assert f"larger than {CAP_MB} MB" in answer["result"]["content"][0]["text"]
    assert "result" in await other
    assert (await session.data("faulty.echo", text="after"))["text"] == "after"
    assert capped.rss_mb() - before < 3 * CAP_MB
