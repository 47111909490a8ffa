"""What comes over a worker's stdout: long lines, junk, and lines without an end."""

import asyncio
import json

import pytest

from metaforge.core.errors import OverLimit, ToolCrashed
from metaforge.engine.lines import MessageReader


@pytest.mark.parametrize("line_bytes", [65_535, 65_536, 65_537, 1_000_000, 20_000_000])
async def test_a_line_of_any_length_arrives_whole(script_house, line_bytes):
    house = script_house(
        "n = request['params']['arguments']['size_mb']\n"
        "bare = len(answer(request, {'text': ''})) + 1\n"
        "send(answer(request, {'text': 'x' * (n - bare)}) + b'\\n')"
    )
    try:
        outcome = await house.call("reserve", size_mb=line_bytes)
        text = outcome.data["text"]
        assert set(text) == {"x"}
        assert line_bytes - 200 < len(text) < line_bytes
    finally:
        await house.source.close()


async def test_an_answer_over_the_limit_fails_alone(script_house):
    house = script_house(
        "name = request['params']['tool_id']\n"
        "big = 'x' * 3_000_000 if name.endswith('loop') else 'small'\n"
        "send(answer(request, {'text': big}) + b'\\n')",
        METAFORGE_MAX_OUTPUT_MB=2,
        max_workers=2,
    )
    try:
        big, small = await asyncio.gather(house.call("loop"), house.call("echo", text="a"), return_exceptions=True)
        assert isinstance(big, OverLimit)
        assert "2 MB" in big.message
        uri = big.link["uri"]
        assert uri in big.message
        kept = json.loads(house.blobs.read(uri.rpartition("/")[2]))
        assert kept["result"]["data"] == {"text": "x" * 3_000_000}
        assert small.data["text"] == "small"
        assert (await house.call("echo", text="a")).data["text"] == "small"
    finally:
        await house.source.close()


async def test_a_line_without_an_end_is_cut_off_at_the_limit(script_house):
    house = script_house(
        "while request['params']['tool_id'].endswith('loop'):\n"
        "    send(b'x' * 65536)\n"
        "send(answer(request, {'text': 'fine'}) + b'\\n')",
        METAFORGE_MAX_OUTPUT_MB=2,
    )
    try:
        with pytest.raises(OverLimit, match="2 MB"):
            await house.call("loop")
        assert (await house.call("echo", text="a")).data["text"] == "fine"
    finally:
        await house.source.close()


async def test_junk_between_answers_is_survived_told_once_and_kept_for_health(script_house, caplog):
    house = script_house(
        "send(b'\\xef\\xbb\\xbf== CAD kernel 7.9 ==\\n\\n')\n"
        "send(b'\\x1b[31mwarning\\x1b[0m\\n')\n"
        'send(b\'{"jsonrpc": "2.0", "id\')\n'
        "send(answer(request, {'text': 'fine'}).replace(b'{\"jsonrpc\": ', b'{\"jsonrpc\":', 1) + b'\\n')\n"
        "send(b'{}\\n[1]\\n')"
    )
    try:
        with caplog.at_level("WARNING", logger="metaforge"):
            for _ in range(3):
                assert (await house.call("echo", text="a")).data["text"] == "fine"
        assert [record.getMessage() for record in caplog.records] == ["adapter_stdout_junk"]
        health = await house.source.health(3.0)
        assert "CAD kernel 7.9" in health.detail["stdout_junk"]
    finally:
        await house.source.close()


async def test_a_connection_that_closes_without_an_answer_is_no_hang(script_house):
    house = script_house("os.close(1)\nout.close() if False else None\ntime.sleep(3600)")
    try:
        with pytest.raises(ToolCrashed, match="closed its connection") as caught:
            await house.call("echo", text="a")
        assert caught.value.kind == "connection_lost"
    finally:
        await house.source.close()


async def test_an_answer_to_nobodys_request_is_dropped(script_house):
    stray = b'{"jsonrpc": "2.0", "id": 999, "result": {}}\n'
    house = script_house(f"send({stray!r})\nsend(answer(request, {{'text': 'mine'}}) + b'\\n')")
    try:
        assert (await house.call("echo", text="a")).data["text"] == "mine"
    finally:
        await house.source.close()


def test_a_reader_holds_no_more_than_its_limit():
    messages, overflows = [], []
    reader = MessageReader(1000, messages.append, lambda text: None, overflows.append)
    for _ in range(1000):
        reader.feed(b"x" * 100)
        assert sum(map(len, reader._parts)) <= 1000
    assert overflows == [None]
    reader.feed(b'tail\n{"jsonrpc": "2.0", "id": 1, "result": {}}\n')
    assert messages == [{"jsonrpc": "2.0", "id": 1, "result": {}}]


def test_an_answer_over_the_limit_is_kept_whole_unless_it_has_no_end(tmp_path):
    overflows = []
    path = tmp_path / "answer.json"
    reader = MessageReader(1000, lambda message: None, lambda text: None, overflows.append, lambda: path)
    line = b'{"jsonrpc": "2.0", "id": 1, "result": "' + b"x" * 5000 + b'"}'
    for start in range(0, len(line), 77):
        reader.feed(line[start : start + 77])
    assert overflows == []
    reader.feed(b"\n")
    assert overflows == [path]
    assert path.read_bytes() == line
    reader.feed(b'{"jsonrpc": "2.0", ')
    for _ in range(1000):
        reader.feed(b"x" * 100)
    assert overflows == [path, None]
    assert path.stat().st_size <= 8000


def test_an_answer_that_cannot_be_kept_is_dropped_with_its_error(tmp_path):
    overflows = []
    nowhere = tmp_path / "gone" / "answer.json"
    reader = MessageReader(1000, lambda message: None, lambda text: None, overflows.append, lambda: nowhere)
    reader.feed(b'{"jsonrpc": "2.0", "id": 1, "result": "' + b"x" * 5000 + b'"}\n')
    assert overflows == [None]
