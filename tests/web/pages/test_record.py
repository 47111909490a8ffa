"""Projects, items, sessions, calls and health, as pages."""

import pytest


async def test_projects_are_listed_with_their_items(site, project_id):
    page = await site.read("/projects")
    assert "Camera <mount>" in page
    assert "Below a drone" in page
    assert "<mount>" not in await site.get("/projects")


async def test_a_project_shows_items_doubts_baselines_and_changes(site, project_id):
    page = await site.read(f"/projects/{project_id}")
    for told in ("CS-MOUNT", "NEED-HOLD-THE-CAMERA", "constraint set", "first", "Latest changes", "Baseline"):
        assert told in page
    only = await site.read(f"/projects/{project_id}?kind=stakeholder_need")
    assert "NEED-HOLD-THE-CAMERA" in only.split("Latest changes")[0]
    assert "CS-MOUNT" not in only.split("Latest changes")[0]
    assert "Nothing fits" in await site.read(f"/projects/{project_id}?q=zzz")


async def test_an_item_shows_its_current_revision_its_links_and_all_revisions(site, project_id):
    page = await site.read(f"/projects/{project_id}/items/CS-MOUNT")
    for told in ("CS-MOUNT@2", "mass <= 40 g", "implements", "NEED-HOLD-THE-CAMERA", "Batteries grew", "Revision 1"):
        assert told in page
    old = await site.read(f"/projects/{project_id}/items/CS-MOUNT@1")
    assert "This is revision 1. Revision 2 is current." in old
    assert "mass <= 50 g" in old


async def test_a_record_has_a_page_too(site, project_id):
    page = await site.get(f"/projects/{project_id}")
    node_id = page.split(">design_decision<")[0].rsplit("/items/", 1)[1].split('"')[0]
    page = await site.read(f"/projects/{project_id}/items/{node_id}")
    assert "Light enough" in page
    assert "too heavy" in page


async def test_two_revisions_are_compared_field_by_field(site, project_id):
    page = await site.get(f"/projects/{project_id}/items/CS-MOUNT/diff")
    assert "constraints[mass].limit" in page
    assert '<del class="plain">50</del>' in page
    assert '<ins class="plain">40</ins>' in page
    named = await site.read(f"/projects/{project_id}/items/CS-MOUNT/diff?from=1&to=2")
    assert named == await site.read(f"/projects/{project_id}/items/CS-MOUNT/diff")


async def test_the_trace_matrix_says_what_is_not_shown_to_hold(site, project_id):
    page = await site.read(f"/projects/{project_id}/trace")
    assert "1 of 1 are not shown to hold." in page
    assert "mass <= 40 g" in page
    assert "no data" in page


async def test_a_baseline_is_compared_with_the_present(site, project_id):
    page = await site.read(f"/projects/{project_id}/compare?from=first")
    for told in ("first to now", "revised", "Batteries grew", "CS-MOUNT@1 → CS-MOUNT@2", "Aluminium"):
        assert told in page


async def test_sessions_show_events_and_lead_to_their_calls(site, project_id):
    session_id = (await site.call("session.start", agent_code="mechanical", task_type="design", title="Make it",
                                  project_id=project_id))["session_id"]  # fmt: skip
    await site.call("session.log_event", session_id=session_id, type="decision", message="Use <b>aluminium</b>")
    assert "Make it" in await site.read("/sessions")
    assert "No sessions yet" in await site.read("/sessions?status=failed")
    page = await site.get(f"/sessions/{session_id}")
    assert "Use &lt;b&gt;aluminium&lt;/b&gt;" in page
    call_id = page.split('href="/calls/')[1].split('"')[0]
    call = await site.read(f"/calls/{call_id}")
    assert "session.log_event" in call
    assert "engineer" in call


async def test_calls_are_listed_and_filtered(site, project_id):
    await site.call("project.list")
    with pytest.raises(Exception, match="nowhere"):
        await site.call("project.open", query="nowhere")
    page = await site.read("/calls")
    assert "project.list" in page
    assert "project.open" in page
    assert "project.list" not in (await site.read("/calls?tool=project.open")).split("Outcome")[-1]
    assert "nowhere" in await site.read("/calls?status=failed") or "nowhere" in await site.read("/calls?status=refused")


async def test_health_names_what_is_there(site):
    page = await site.read("/system")
    assert "project" in page
    assert "Access open" in page


@pytest.mark.parametrize(
    "path",
    ["/projects/p000", "/projects/p000/trace", "/projects/p000/items/X", "/sessions/s000", "/calls/c000",
     "/projects/p000/compare"],
)  # fmt: skip
async def test_what_is_not_there_is_told_as_a_page(site, path):
    page = await site.get(path, 404)
    assert "<!doctype html>" in page
    assert "Not found" in page


async def test_an_unknown_revision_names_those_there_are(site, project_id):
    page = await site.read(f"/projects/{project_id}/items/CS-MOUNT@9", 404)
    assert "CS-MOUNT" in page
    assert "<!doctype html>" in await site.get(f"/projects/{project_id}/items/CS-MOUNT/diff?from=77", 404)


async def test_long_lists_come_in_parts(site):
    for number in range(101):
        await site.call("project.create", name=f"Project {number}")
    first, second = await site.read("/projects"), await site.read("/projects?start=100")
    assert "1\u2013100 of 101" in first
    assert "101\u2013101 of 101" in second
    assert "Project 0 " in second
    assert "1\u2013100 of 101" in await site.read("/projects?start=nonsense")
