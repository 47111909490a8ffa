"""Fault 7: what is no message on standard output, in both directions."""

import json
from typing import Any

import pytest

NOISY = '[adapters.noisy]\ntarget = "faulty:NoisyServer"\n'
MISSING = '[adapters.missing]\ntarget = "no_such_module:NoServer"\n'


async def test_junk_before_and_between_answers_costs_no_call_and_is_told_once(start: Any, transport: str) -> None:
    server = await start(transport, NOISY)
    session = await server.session()
    for number in range(5):
        assert (await session.data("noisy.junk", text=str(number)))["text"] == str(number)
    health = await session.data("health.check")
    (row,) = [each for each in health["adapters"] if each["adapter_id"] == "noisy"]
    assert "Welcome to the CAD kernel 7.9" in row["detail"]["stdout_junk"]
    told = [line for line in server.place.log.read_text().splitlines() if "adapter_stdout_junk" in line]
    assert len(told) == 1
    assert "Welcome to the CAD kernel 7.9" in told[0]


@pytest.mark.parametrize("level", ["debug", "info", "warning", "error"])
async def test_our_own_standard_output_is_messages_alone_one_a_line(start: Any, level: str) -> None:
    server = await start("stdio", NOISY + MISSING, METAFORGE_LOG_LEVEL=level)
    session = await server.session()
    await session.request("tools/list", {})
    await session.data("noisy.junk", text="a")
    await session.data("health.check")
    await session.call("missing.run")
    await session.call("noisy.exit", {"status": 1})
    await server.close()
    assert len(server.lines) >= 6
    for line in server.lines:
        message = json.loads(line)
        assert message["jsonrpc"] == "2.0"
        assert line.endswith(b"\n")
