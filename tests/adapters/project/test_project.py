"""Projects are made, opened for one client, changed, and hidden without loss."""

from typing import Any


async def test_a_created_project_is_open_for_its_client_alone(bench: Any) -> None:
    made = await bench.do("project.create", name="Widget", description="A mount")
    assert {"id", "name", "description", "status", "agent_count", "created_at", "last_updated", "work_products"} <= set(
        made
    )
    await bench.commit()
    got = await bench.do("project.get", id=made["id"])
    assert [row["head_ref"] for row in got["work_products"]] == ["CAD-BRACKET@1"]
    other = bench.another("session-2")
    bench.write_step("out/x.step")
    homeless = await other.do("twin.commit_geometry", name="Bracket", file_path="out/x.step")
    assert homeless["project_linked"] is False


async def test_a_project_is_opened_by_id_name_or_part_of_its_name(bench: Any) -> None:
    made = await bench.do("project.create", name="Wall widget")
    await bench.do("project.create", name="Floor lamp")
    for query in (made["id"], "wall WIDGET", "widget"):
        opened = await bench.do("project.open", query=query)
        assert (opened["project"]["id"], opened["scope_bound"]) == (made["id"], True)
    await bench.commit()
    brief = (await bench.do("project.open", query="widget"))["brief"]
    assert brief["items"] == {"cad_model": 1}
    assert (brief["suspect_count"], brief["open_draft_count"]) == (0, 0)


async def test_what_is_unknown_or_ambiguous_names_the_projects_there_are(bench: Any) -> None:
    first = await bench.do("project.create", name="Widget A")
    second = await bench.do("project.create", name="Widget B")
    unknown = await bench.refused("project.open", query="lamp")
    assert unknown.kind == "unknown_project"
    assert "Widget A" in unknown.fix
    ambiguous = await bench.refused("project.open", query="widget")
    assert ambiguous.kind == "ambiguous_project"
    assert first["id"] in ambiguous.fix
    assert second["id"] in ambiguous.fix
    neither = await bench.refused("project.get")
    assert set(neither.data["fields"]) == {"id", "name"}


async def test_a_client_without_a_session_is_told_to_give_the_project(bench: Any) -> None:
    await bench.do("project.create", name="Widget")
    nobody = bench.another("")
    opened = await nobody.do("project.open", query="widget")
    assert opened["scope_bound"] is False
    assert "project_id with every call" in opened["warnings"][0]


async def test_a_second_project_of_the_same_name_warns(bench: Any) -> None:
    await bench.do("project.create", name="Widget")
    again = await bench.do("project.create", name="widget")
    assert "same name" in again["warnings"][0]


async def test_the_list_is_paged_with_the_latest_change_first(bench: Any) -> None:
    ids = [(await bench.do("project.create", name=f"P{number}"))["id"] for number in range(5)]
    await bench.do("project.update", id=ids[0], status="paused")
    first = await bench.do("project.list", limit=2)
    assert (first["total"], first["has_more"], first["next_offset"]) == (5, True, 2)
    assert first["projects"][0]["id"] == ids[0]
    rest = await bench.do("project.list", limit=2, offset=4)
    assert (len(rest["projects"]), rest["has_more"]) == (1, False)
    assert "next_offset" not in rest


async def test_an_update_changes_what_is_given_and_nothing_else(bench: Any) -> None:
    made = await bench.do("project.create", name="Widget", description="A mount")
    changed = await bench.do("project.update", id=made["id"], name="Bracket")
    assert (changed["name"], changed["description"], changed["status"]) == ("Bracket", "A mount", "active")
    assert "at least one" in str((await bench.refused("project.update", id=made["id"])).data)
    assert (await bench.refused("project.update", id="nope", name="x")).kind == "unknown_project"


async def test_a_deleted_project_is_hidden_and_closed_for_everybody(bench: Any) -> None:
    made = await bench.do("project.create", name="Widget")
    assert await bench.do("project.delete", id=made["id"]) | {"warnings": []} == {
        "id": made["id"], "deleted": True, "warnings": [],
    }  # fmt: skip
    assert (await bench.do("project.list"))["total"] == 0
    assert (await bench.refused("project.get", id=made["id"])).kind == "unknown_project"
    homeless = await bench.do("twin.record_decision", title="x", rationale="y")
    assert homeless["project_linked"] is False


async def test_an_unknown_project_id_is_refused_wherever_it_is_given(bench: Any) -> None:
    refusal = await bench.refused("twin.record_decision", title="x", rationale="y", project_id="nope")
    assert refusal.kind == "unknown_project"
