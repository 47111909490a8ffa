"""Projects, items, sessions, calls and contents, as the API tells them."""

import pytest

from metaforge.tools.context import Artefact, Caller, Trust

LIMIT = {"name": "mass", "metric": "mass", "operator": "<=", "limit": 50, "unit": "g"}


@pytest.fixture
def project(served):
    """A project with a constraint set of two revisions and a prose document."""
    store = served.app.twin_services.store
    with store.change(author="ada") as change:
        made = change.create_project("Arm", "Lifts 2 kg", "active")
    with store.change(author="ada", project_id=made.project_id) as change:
        change.define("constraint_set", "Arm", {"constraints": [LIMIT]})
        change.define("constraint_set", "Arm", {"constraints": [{**LIMIT, "limit": 40}]}, change_reason="lighter")
        change.define("prd", "Arm", {"content": "The arm lifts."})
    return made.project_id


async def test_projects_are_listed_in_parts_with_their_counts(served, project) -> None:
    with served.app.twin_services.store.change(author="ada") as change:
        later = change.create_project("Leg", "", "active").project_id

    first = await served.get("/v1/projects?limit=1")
    assert (first["total"], first["next_offset"], first["items"][0]["id"]) == (2, 1, later)
    second = await served.get("/v1/projects?limit=1&offset=1")
    assert (second["next_offset"], second["items"][0]["id"], second["items"][0]["item_count"]) == (None, project, 2)


async def test_a_project_tells_where_it_stands(served, project) -> None:
    told = await served.get(f"/v1/projects/{project}")

    assert (told["name"], told["author"]) == ("Arm", "ada")
    assert told["brief"]["items"] == {"constraint_set": 1, "prd": 1}
    missing = await served.get("/v1/projects/p0", 404)
    assert missing["detail"]["error_type"] == "unknown_project"


async def test_the_requirements_document_is_rendered_as_markdown(served, project) -> None:
    answer = await served.http.get(f"/v1/twin/projects/{project}/prd")

    assert answer.headers["content-type"] == "text/markdown; charset=utf-8"
    assert "The arm lifts." in answer.text
    assert "mass <= 40 g" in answer.text
    await served.get("/v1/twin/projects/p0/prd", 404)


async def test_items_their_revisions_and_what_differs(served, project) -> None:
    base = f"/v1/projects/{project}/items"
    rows = (await served.get(base))["items"]
    assert [(row["key"], row["head_ref"]) for row in rows] == [("CS-ARM", "CS-ARM@2"), ("PRD-ARM", "PRD-ARM@1")]
    part = await served.get(f"{base}?limit=1")
    assert (len(part["items"]), part["next_offset"]) == (1, 1)
    assert [row["key"] for row in (await served.get(f"{base}?kind=prd"))["items"]] == ["PRD-ARM"]

    detail = await served.get(f"{base}/CS-ARM")
    assert [(row["ref"], row["is_head"]) for row in detail["revisions"]] == [("CS-ARM@2", True), ("CS-ARM@1", False)]
    revision = await served.get(f"{base}/CS-ARM/revisions/1")
    assert revision["content"]["constraints"][0]["limit"] == 50
    assert revision["revision"]["author"] == "ada"
    diff = await served.get(f"{base}/CS-ARM/diff?before=1&after=2")
    assert diff["fields"] == [{"path": "constraints[mass].limit", "what": "changed", "before": 50, "after": 40}]

    assert (await served.get(f"{base}/CS-LEG", 404))["detail"]["error_type"] == "unknown_item"
    assert (await served.get(f"{base}/CS-ARM/revisions/9", 404))["detail"]["error_type"] == "unknown_revision"


async def test_the_trace_matrix_and_baselines_come_in_parts(served, project) -> None:
    trace = await served.get(f"/v1/projects/{project}/trace")
    assert trace["requirement_count"] == 1
    assert trace["requirements"][0]["requirement"] == "CS-ARM@2#mass"
    assert (await served.get(f"/v1/projects/{project}/trace?offset=1"))["requirements"] == []

    with served.app.twin_services.store.change(author="ada", project_id=project) as change:
        from metaforge.twin.baselines import create_baseline

        create_baseline(change, "PDR")
    (row,) = (await served.get(f"/v1/projects/{project}/baselines"))["items"]
    assert (row["name"], row["item_count"]) == ("PDR", 2)


async def test_a_session_is_told_from_outside_and_read_back(served, project) -> None:
    body = {"agent_code": "mechanical", "task_type": "design", "title": "A lighter arm", "project_id": project}
    started = await served.post("/v1/sessions", body, 201)
    path = f"/v1/sessions/{started['session_id']}"
    for number in range(3):
        event = {"type": "thought", "message": f"thought {number}", "data": {"mass_kg": 0.5}}
        assert (await served.post(f"{path}/events", event, 201))["seq"] == number + 1

    first = await served.get(f"{path}/events?limit=2")
    assert [event["message"] for event in first["items"]] == ["thought 0", "thought 1"]
    rest = await served.get(f"{path}/events?limit=2&after={first['next_after']}")
    assert ([event["message"] for event in rest["items"]], rest["next_after"]) == (["thought 2"], None)

    ended = await served.post(f"{path}/complete", {"status": "completed", "summary": "done"})
    assert (ended["status"], ended["event_count"]) == ("completed", 3)
    late = await served.post(f"{path}/events", {"type": "thought", "message": "late"}, 409)
    assert late["detail"]["error_type"] == "session_completed"
    assert (await served.get(f"/v1/sessions?project_id={project}&status=completed"))["total"] == 1
    assert (await served.get("/v1/sessions?status=active"))["total"] == 0
    await served.get("/v1/sessions/s0", 404)


async def test_calls_of_a_session_are_told_with_their_files(served) -> None:
    caller = Caller("local", Trust.LOCAL, "claude-code", "2.1", "c-1")
    await served.app.call_tool(
        "session.start", {"agent_code": "mechanical", "task_type": "design"}, call_id="00000000000000aa", caller=caller
    )
    await served.app.call_tool("project.list", {}, call_id="00000000000000ab", caller=caller)
    (session,) = (await served.get("/v1/sessions"))["items"]

    calls = (await served.get(f"/v1/sessions/{session['session_id']}/calls"))["items"]

    assert "00000000000000ab" in [call["call_id"] for call in calls]
    detail = await served.get("/v1/calls/00000000000000ab")
    assert (detail["tool_id"], detail["status"], detail["client_name"]) == ("project.list", "ok", "claude-code")
    listed = await served.get("/v1/calls?tool_id=project.list&since=2020-01-01T00:00:00Z")
    assert [call["call_id"] for call in listed["items"]] == ["00000000000000ab"]
    assert (await served.get("/v1/calls?since=2999-01-01T00:00:00%2B02:00"))["items"] == []
    await served.get("/v1/calls/00000000000000ff", 404)
    await served.get("/v1/calls?since=yesterday", 422)


async def test_a_content_is_shown_only_where_nothing_in_it_can_run(served) -> None:
    page, picture = b"<script>alert(1)</script>", b"\x89PNG\r\n"
    kept = {}
    for content, path, media_type in ((page, "a.html", "text/html"), (picture, "a.png", "image/png")):
        sha256 = kept[path] = served.app.blobs.put_bytes(content)
        served.app.resources.remember([Artefact(path, f"/{path}", sha256, len(content), media_type)])

    answer = await served.http.get(f"/v1/artefacts/{kept['a.html']}")
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["content-disposition"].startswith("attachment")
    assert "sandbox" in answer.headers["content-security-policy"]
    answer = await served.http.get(f"/v1/artefacts/{kept['a.png']}")
    assert (answer.headers["content-type"], answer.content) == ("image/png", picture)
    assert "immutable" in answer.headers["cache-control"]
    await served.get(f"/v1/artefacts/{'0' * 64}", 404)
