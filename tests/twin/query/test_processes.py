"""The processes behind a query: confined, ended when late, and started again."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from metaforge.core.errors import ToolError, ToolTimedOut
from metaforge.twin.query.child import Child, ChildEnded, NotRunning
from metaforge.twin.query.gate import Gate

GRAPH = "metaforge.twin.query.graph_process"
ASK: dict[str, Any] = {
    "do": "query", "params": {}, "rows_count": 10, "seconds": 5.0, "max_bytes": 10_000, "labels": [], "properties": [],
}  # fmt: skip


async def test_no_file_can_be_read_even_by_a_text_that_no_gate_saw(tmp_path: Path) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("the secret\n")
    child = Child(GRAPH, memory_mb=512)
    try:
        with pytest.raises((ToolError, ChildEnded)) as refusal:
            await child.ask(ASK | {"cypher": f"LOAD CSV FROM 'file://{secret}' AS line RETURN line"}, seconds=30.0)
        assert "the secret" not in str(refusal.value)
    finally:
        await child.end()


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
async def test_a_process_may_open_nothing_and_its_memory_is_bounded() -> None:
    child = Child(GRAPH, memory_mb=512)
    try:
        await child.ask(ASK | {"cypher": "RETURN 1 AS one"}, seconds=30.0)
        limits = await asyncio.to_thread(Path(f"/proc/{child.pid}/limits").read_text)
        by_name = {line[:26].strip(): line[26:].split() for line in limits.splitlines()}
        assert by_name["Max open files"][:2] == ["0", "0"]
        assert by_name["Max file size"][:2] == ["0", "0"]
        assert int(by_name["Max address space"][1]) < 4 << 30
    finally:
        await child.end()


async def test_a_graph_that_no_gate_guards_refuses_writes_itself() -> None:
    child = Child(GRAPH, memory_mb=512)
    try:
        with pytest.raises(ToolError) as refusal:
            await child.ask(ASK | {"cypher": "CREATE (n:x) RETURN n"}, seconds=30.0)
        assert refusal.value.kind == "query_failed"
        told = await child.ask(ASK | {"cypher": "MATCH (n) RETURN count(n) AS n"}, seconds=30.0)
        assert told["rows"] == [{"n": 0}]
    finally:
        await child.end()


async def test_a_process_that_does_not_answer_in_time_is_ended_and_started_again() -> None:
    child = Child("metaforge.twin.query.parser_process", memory_mb=512)
    try:
        await child.ask({"do": "examine", "text": "RETURN 1"}, seconds=30.0)
        first = child.pid
        with pytest.raises(ToolTimedOut):
            await child.ask({"do": "examine", "text": "RETURN " + "+".join(["1"] * 1900)}, seconds=0.001)
        assert not child.alive
        told = await child.ask({"do": "examine", "text": "MATCH (n:part) RETURN n"}, seconds=30.0)
        assert told["labels"] == ["part"]
        assert child.pid != first
    finally:
        await child.end()


async def test_a_request_that_must_not_start_a_process_says_that_there_is_none() -> None:
    with pytest.raises(NotRunning):
        await Child(GRAPH, memory_mb=512).ask(ASK | {"cypher": "RETURN 1"}, seconds=5.0, start=False)


async def test_an_idle_process_is_ended() -> None:
    child = Child("metaforge.twin.query.parser_process", memory_mb=512, idle_seconds=0.0)
    await child.ask({"do": "examine", "text": "RETURN 1"}, seconds=30.0)
    process = child._process
    assert process is not None
    async with asyncio.timeout(30):
        await process.wait()
    await child.end()
    assert not child.alive


async def test_a_text_that_takes_too_long_to_read_is_refused_and_remembered_as_such() -> None:
    gate = Gate(parse_seconds=0.001)
    try:
        for _ in range(2):
            with pytest.raises(ToolError) as refusal:
                await gate.judge("RETURN " + "+".join(["1"] * 1900))
            assert refusal.value.kind == "query_too_complex"
    finally:
        await gate.close()


async def test_a_text_is_read_once() -> None:
    gate = Gate()
    try:
        first = await gate.judge("MATCH (n:part) RETURN n")
        await gate.close()
        assert await gate.judge("MATCH (n:part) RETURN n") is first
        assert not gate._parser.alive
    finally:
        await gate.close()
