"""The OpenAPI document, and the running gateway held against it."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from metaforge.app import App
from metaforge.approvals.model import Kind, Route
from metaforge.settings import Settings

EXAMPLES = os.environ.get("METAFORGE_FUZZ_EXAMPLES", "2")
"""How many requests are made up for each operation and phase; 40 take two minutes. Others each time, if asked for."""
SEED = [] if "METAFORGE_FUZZ_EXAMPLES" in os.environ else ["--seed", "20"]
LIMIT_SECONDS = 60 + 30 * int(EXAMPLES)


async def make_things(home: Path, make_call: Any) -> dict[str, list[str]]:
    """Put a project, an item, a session, a call and approvals into a store, and return what they are called."""
    app = App(Settings(home=home, adapters=("none",)), over_stdio=False)
    with app.twin_services.store.change(author="ada") as change:
        project = change.create_project("Arm", "Lifts 2 kg", "active")
    with app.twin_services.store.change(author="ada", project_id=project.project_id) as change:
        entry = {"name": "mass", "metric": "mass", "operator": "<=", "limit": 50, "unit": "g"}
        made = change.define("constraint_set", "Arm", {"constraints": [entry]})
        change.define("constraint_set", "Arm", {"constraints": [{**entry, "limit": 40}]}, item_key=made.item_key)
        session = change.start_session("mechanical", "design", title="A lighter arm")
    sha256 = app.blobs.put_bytes(b"solid")
    held = [
        app.approvals.ledger.open(make_call(kind=Kind.HUMAN_AUTHORITY if number % 3 else Kind.TOOL_CALL,
                                            route=Route.ELICITATION if number % 5 else Route.DASHBOARD))
        for number in range(10)
    ]  # fmt: skip
    await app.close()
    ids = [each.approval_id for each in held]
    return {
        "project_id": [project.project_id], "key": [made.item_key], "revision": ["1", "2"],
        "session_id": [session.session_id], "sha256": [sha256], "approval_id": ids,
        "item_id": [f"tool:{each}" for each in ids],
    }  # fmt: skip


@pytest.mark.slow
def test_schemathesis_finds_no_fault(start_server, tmp_path, make_call) -> None:
    known = asyncio.run(make_things(tmp_path / "home", make_call))
    server = start_server()
    hooks = Path(__file__).with_name("fuzz_hooks.py")
    command = [
        sys.executable, "-m", "schemathesis.cli", "run", f"{server.url}/v1/openapi.json",
        "--exclude-path", "/v1/approvals/events",  # a stream without an end: it has tests of its own
        "--max-examples", EXAMPLES, *SEED, "--warnings", "off", "--no-color",
    ]  # fmt: skip
    environment = os.environ | {
        "SCHEMATHESIS_HOOKS": "fuzz_hooks", "PYTHONPATH": str(hooks.parent), "METAFORGE_FUZZ_KNOWN": json.dumps(known),
    }  # fmt: skip
    ended = subprocess.run(
        command, capture_output=True, text=True, timeout=LIMIT_SECONDS, cwd=tmp_path, env=environment
    )

    assert ended.returncode == 0, ended.stdout[-8000:] + ended.stderr[-2000:]
    assert "No issues found" in ended.stdout
    decided = httpx.get(f"{server.url}/v1/approvals?status=decided&limit=200").json()["items"]
    assert {item["id"] for item in decided} & set(known["item_id"]), "nothing that was made before was reached"


async def test_the_document_names_every_operation_once_with_its_faults(served) -> None:
    document = await served.get("/v1/openapi.json")

    operations = [
        (path, method, about) for path, methods in document["paths"].items() for method, about in methods.items()
    ]
    names = [about["operationId"] for _, _, about in operations]
    assert len(set(names)) == len(names)
    for path, method, about in operations:
        assert path.startswith("/v1/")
        assert about["summary"], (path, method)
        for status in ("401", "403", "404", "409", "422", "503"):
            schema = about["responses"][status]["content"]["application/json"]["schema"]
            assert schema == {"$ref": "#/components/schemas/Fault"}, (path, method, status)
    for path in (
        "/v1/approvals", "/v1/approvals/{item_id}/decision", "/v1/approvals/events", "/v1/chat/tool_approvals",
        "/v1/chat/tool_approvals/{approval_id}/resolve", "/v1/twin/projects/{project_id}/prd", "/v1/projects",
        "/v1/projects/{project_id}/items", "/v1/sessions", "/v1/sessions/{session_id}/events", "/v1/calls",
    ):  # fmt: skip
        assert path in document["paths"]
    assert not any(name in path for name in ("runs", "gates", "flows") for path in document["paths"])
