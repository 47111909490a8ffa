"""“Does this filter have its corner at 1 kHz?”: what a model reads and does, over the official Python client."""

from typing import Any

import jsonschema_rs
import pytest
from conversations import ERAS, conversation, words
from house import House
from mcp_types import ImageContent, ResourceLink

pytestmark = pytest.mark.program("ngspice", "matplotlib")
TOOL = "spice.run_simulation"
BOARD = """.title KiCad schematic
R1 /in /mid 1M
R2 /mid /out 10k
C1 /mid 0 15.9155n
C2 /out 0 1p
V1 /in 0 DC 0 AC 1
.end
"""
"""As drawn: R1 was meant to be a megaohm, which the drawing says in letters that SPICE reads otherwise."""
MENDED = BOARD.replace("1M\n", "10k\n")


@pytest.fixture
def simulator(tmp_path: Any) -> House:
    """A server with the circuit simulator."""
    return House(tmp_path, adapters="spice")


@pytest.mark.parametrize("era", list(ERAS))
@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_does_this_filter_have_its_corner_at_1_khz(simulator: House, era: str, transport: str) -> None:
    board = simulator.workspace / "filter.cir"
    board.write_text(BOARD)
    async with conversation(simulator, era, transport) as client:
        (tool,) = [tool for tool in (await client.list_tools()).tools if tool.name == TOOL]
        schema = jsonschema_rs.Draft202012Validator(tool.output_schema)

        async def ask(**arguments: Any) -> Any:
            return await client.call_tool(TOOL, {"netlist_path": "filter.cir", **arguments})

        # A model that does not know the parameters is told them.
        unsure = await ask(analysis_type="ac")
        assert unsure.is_error
        assert '"fstart"' in words(unsure)
        # The board as drawn: the answer begins with what is wrong.
        sweep = {"fstart": 10, "fstop": "1meg", "points": 50}
        first = await ask(analysis_type="ac", params=sweep, probes=["/out"], at=[1000])
        assert not first.is_error, words(first)
        schema.validate(first.structured_content)
        assert any("1M = 1 milliohm; write 1MEG" in warning for warning in first.structured_content["warnings"])
        assert words(first).startswith("1 warning, read them first")
        # The person says it is 10 k; the same question again, with a picture.
        board.write_text(MENDED)
        second = await ask(analysis_type="ac", params=sweep, probes=["/out"], at=[1000], picture=True)
        assert not second.is_error, words(second)
        answer = second.structured_content
        schema.validate(answer)
        assert answer["measurements"]["v(/out)"]["kind"] == "low-pass"
        assert answer["measurements"]["v(/out)"]["corner_hz"] == pytest.approx(1000, rel=0.005)
        assert answer["values_at"][0]["mag_db"] == pytest.approx(-3.01, abs=0.01)
        assert "warnings" not in answer
        assert "corner (half power, -3.01 dB) at 1 kHz" in words(second) or "at 999" in words(second)
        assert len(words(second)) < 480, "the first text is to stay below 120 tokens"
        # The model sees the curve, and everything is a file that can be fetched.
        assert any(isinstance(block, ImageContent) for block in second.content)
        links = [block for block in second.content if isinstance(block, ResourceLink)]
        assert {str(link.name).rpartition(".")[2] for link in links} >= {"raw", "cir", "png"}
        for link in links:
            contents = (await client.read_resource(str(link.uri))).contents
            assert contents
        # The step response of the same filter, and how long it takes to settle.
        board.write_text(MENDED.replace("AC 1", "PULSE(0 1 0 1n 1n 1 2)"))
        step = await ask(analysis_type="transient", params={"stop": "2m", "step": "1u"}, probes=["/out"])
        measured = step.structured_content["measurements"]["v(/out)"]
        assert measured["settling_time_seconds"] == pytest.approx(159.155e-6 * 3.912, rel=0.01)
        # A netlist from elsewhere that wants more than a simulation is refused in words.
        board.write_text(MENDED.replace(".end", ".control\nshell touch PWNED\n.endc\n.end"))
        hostile = await ask(analysis_type="op")
        assert hostile.is_error
        assert "control_block" in words(hostile)
        assert not list(simulator.workspace.rglob("PWNED"))
