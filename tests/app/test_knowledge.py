"""`knowledge.*` through the whole pipeline: scope, refusals, holding, resources, and what is told of words alone."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from metaforge.app import App
from metaforge.core.errors import InvalidArguments, NotApproved, ResourceNotFound, ResourceUnreadable, ToolError
from metaforge.core.ids import sha256_file
from metaforge.knowledge.library import Library
from metaforge.knowledge.services import KnowledgeServices
from metaforge.settings import Settings
from metaforge.tools.context import Caller, Outcome, Trust

LOCAL = Caller("ada", Trust.LOCAL, session_id="one")
OTHER = Caller("ada", Trust.LOCAL, session_id="two")
TEXT = "# Power\n\nThe LM317T regulator feeds the board.\n"


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[App]:
    """An application whose knowledge is found by words: quick, and the same with or without the extra."""
    (tmp_path / "work").mkdir()
    made = App(
        Settings.load(
            {
                "METAFORGE_HOME": str(tmp_path / "home"), "METAFORGE_WORKSPACE": str(tmp_path / "work"),
                "METAFORGE_ADAPTERS": "knowledge", "PATH": "/nowhere",
            }
        ),
        over_stdio=True,
    )  # fmt: skip
    made.__dict__["knowledge"] = KnowledgeServices(Library(made.database, None), made.workspace)
    yield made
    await made.close()


async def call(app: App, name: str, caller: Caller = LOCAL, **arguments: Any) -> Outcome:
    return await app.call_tool(f"knowledge.{name}", arguments, call_id=f"{len(arguments)}".zfill(16), caller=caller)


async def ingest(app: App, caller: Caller = LOCAL, **also: Any) -> Outcome:
    given = {"content": TEXT, "source_path": "docs/power.md", "knowledge_type": "component", **also}
    return await call(app, "ingest", caller, **{name: value for name, value in given.items() if value is not None})


async def test_an_ingested_text_is_found_and_marked_as_quoted(app: App) -> None:
    done = await ingest(app, metadata={"mpn": "LM317T"})
    assert done.data["chunks_indexed"] == 1
    assert "found by words only" in done.warnings[0]
    found = await call(app, "search", query="LM317T")
    (hit,) = found.data["hits"]
    assert (hit["text"], hit["line"], hit["heading"]) == ("The LM317T regulator feeds the board.", 3, "Power")
    assert found.data["mode"] == "full_text"
    assert found.warnings[0].startswith("Texts are quoted from documents")
    assert "docs/power.md, line 3" in found.summary
    by_metadata = await call(app, "search", query="regulator", filters={"mpn": "LM7805"})
    assert by_metadata.data["hits"] == []


async def test_what_is_missing_is_said_with_the_way(app: App) -> None:
    (app.workspace / "power.md").write_text(TEXT)
    with pytest.raises(InvalidArguments, match=r"give files: \['power\.md'\] instead of source_path"):
        await ingest(app, content=None, source_path="power.md")
    with pytest.raises(InvalidArguments, match="source_path is missing"):
        await ingest(app, source_path=None)
    with pytest.raises(InvalidArguments, match="nothing to ingest"):
        await ingest(app, content=None, source_path=None)
    with pytest.raises(InvalidArguments, match="outside the workspace"):
        await ingest(app, content=None, source_path=None, files=["../secret.md"])
    with pytest.raises(ToolError, match="there is no knowledge_type 'poem'"):
        await call(app, "search", query="x", knowledge_type="poem")
    done = await ingest(app, content=None, source_path=None, files=["power.md"])
    assert done.data["files"][0]["source_path"] == "power.md"
    assert done.data["files"][0]["content_sha256"] == sha256_file(app.workspace / "power.md")


async def test_a_client_asks_the_project_it_has_opened(app: App) -> None:
    async def open_project(name: str, caller: Caller) -> None:
        await app.call_tool("project.create", {"name": name}, call_id="c" * 16, caller=caller)
        await app.call_tool("project.open", {"query": name}, call_id="d" * 16, caller=caller)

    await open_project("One", LOCAL)
    await open_project("Two", OTHER)
    done = await ingest(app)
    uri = done.data["files"][0]["uri"]
    assert (await call(app, "search", query="LM317T")).data["hits"]
    assert (await call(app, "search", OTHER, query="LM317T")).data["hits"] == []
    assert not (await call(app, "extract", OTHER, mpn="LM317T", properties=["weight"])).data["mpn_found"]

    async def read(address: str, caller: Caller) -> Any:
        (content,) = await app.read_resource(address, caller)
        return orjson.loads(content.content)

    assert (await read("metaforge://knowledge/sources", OTHER))["sources"] == []
    (row,) = (await read("metaforge://knowledge/sources", LOCAL))["sources"]
    assert row["uri"] == uri
    assert (await read(uri, LOCAL))["passages"][0]["text"] == "The LM317T regulator feeds the board."
    for address, caller in (
        (uri, OTHER),
        ("metaforge://knowledge/sources/k0", LOCAL),
        ("metaforge://knowledge/x", LOCAL),
    ):
        with pytest.raises(ResourceNotFound):
            await app.read_resource(address, caller)


async def test_a_source_whose_record_is_damaged_is_unreadable(app: App) -> None:
    done = await ingest(app)
    with app.database.transaction(write=True) as transaction:
        transaction.run("update knowledge_sources set metadata = '{'")
    with pytest.raises(ResourceUnreadable, match="its record is damaged"):
        await app.read_resource(done.data["files"][0]["uri"], LOCAL)


async def test_what_a_remote_caller_puts_in_waits_for_a_person_and_what_it_asks_does_not(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    app = App(
        Settings.load(
            {
                "METAFORGE_HOME": str(tmp_path / "home"), "METAFORGE_WORKSPACE": str(tmp_path / "work"),
                "METAFORGE_ADAPTERS": "knowledge", "METAFORGE_APPROVAL_HOLD_SECONDS": "0.2", "PATH": "/nowhere",
            }
        ),
        over_stdio=False,
    )  # fmt: skip
    app.__dict__["knowledge"] = KnowledgeServices(Library(app.database, None), app.workspace)
    remote = Caller("eve", Trust.UNTRUSTED, session_id="three")
    with pytest.raises(NotApproved):
        await ingest(app, remote)
    assert (await call(app, "search", remote, query="LM317T")).data["hits"] == []
    assert app.knowledge.library.sources("") == []
    await app.close()


async def test_the_tools_are_listed_with_honest_hints(app: App) -> None:
    hints = {tool.id: tool.annotations for tool in app.listed_tools() if tool.adapter_id == "knowledge"}
    assert {name: hint["readOnlyHint"] for name, hint in hints.items()} == {
        "knowledge.ingest": False, "knowledge.search": True, "knowledge.extract": True, "knowledge.populate_bom": True,
    }  # fmt: skip
    assert hints["knowledge.ingest"]["idempotentHint"]
    assert not hints["knowledge.ingest"]["destructiveHint"]
