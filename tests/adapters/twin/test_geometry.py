"""Geometry is committed from where it really is, measured, and never confused with another revision's."""

import base64
from dataclasses import replace
from typing import Any

import pytest

from metaforge.core.errors import ToolError
from metaforge.core.ids import sha256_bytes
from metaforge.twin.geometry import Measured

pytestmark = pytest.mark.usefixtures("project_id")


async def test_a_file_becomes_the_first_revision_with_what_was_measured_of_it(bench: Any) -> None:
    content = bench.write_step("out/a.step")
    made = await bench.do(
        "twin.commit_geometry", name="Bracket", file_path="out/a.step", properties={"material": "steel-316"}
    )
    assert (made["item_ref"], made["item_key"], made["revision"]) == ("CAD-BRACKET@1", "CAD-BRACKET", 1)
    assert made["content_hash"] == sha256_bytes(content)
    assert made["measured"]["volume_mm3"] == 15000
    assert made["project_linked"] is True
    assert bench.scale.seen == [(content, "step", {"material": "steel-316"})], "the very bytes that are kept"
    resource = await bench.app.read_resource(made["content_uri"])
    assert resource[0].content == content


async def test_the_same_name_is_the_next_revision_and_says_what_it_leaves_behind(bench: Any) -> None:
    await bench.commit()
    decision = await bench.do("twin.record_decision", title="Steel", rationale="cheap", depends_on=["CAD-BRACKET"])
    assert decision["depends_on"] == ["CAD-BRACKET@1"]
    second = await bench.commit(text="thin", change_reason="thinner")
    assert second["item_ref"] == "CAD-BRACKET@2"
    assert [row["node_id"] for row in second["suspect"]] == [decision["node_id"]]
    assert any("suspect" in warning for warning in second["warnings"])


async def test_a_stale_revision_is_refused_with_nothing_written(bench: Any) -> None:
    await bench.commit()
    await bench.commit(text="thin")
    refusal = await bench.refused(
        "twin.commit_geometry", name="Bracket", file_path="out/thin.step", item_key="CAD-BRACKET@1"
    )
    assert refusal.kind == "stale_revision"
    assert "CAD-BRACKET@2" in refusal.text()


@pytest.mark.parametrize(
    ("arguments", "missing"),
    [
        ({}, ["session_id", "obj_id", "step_base64"]),
        ({"session_id": "s1"}, ["obj_id", "step_base64"]),
        ({"obj_id": "Body"}, ["session_id", "step_base64"]),
        ({"session_id": "s1", "obj_id": "Body"}, ["step_base64"]),
    ],
)
async def test_without_geometry_exactly_what_is_absent_is_listed(
    bench: Any, arguments: dict[str, str], missing: list[str]
) -> None:
    refusal = await bench.refused("twin.commit_geometry", name="Bracket", **arguments)
    assert refusal.message == f"Missing: {', '.join(missing)}"
    assert refusal.kind == "missing_geometry"
    assert "file_path" in refusal.fix


async def test_an_object_without_a_session_is_told_so(bench: Any) -> None:
    refusal = await bench.refused("twin.commit_geometry", name="Bracket", obj_id="Body")
    assert "obj_id needs the session_id" in refusal.fix


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        ({"step_base64": "not base64!"}, "bad_base64"),
        ({"step_base64": base64.b64encode(b"<html>").decode()}, "not_step"),
    ],
)
async def test_what_is_no_step_file_is_refused(bench: Any, arguments: dict[str, str], kind: str) -> None:
    refusal = await bench.refused("twin.commit_geometry", name="Bracket", **arguments)
    assert refusal.kind == kind


async def test_a_path_outside_the_workspace_is_refused(bench: Any) -> None:
    refusal = await bench.refused("twin.commit_geometry", name="Bracket", file_path="/etc/passwd")
    assert "outside the workspace" in refusal.message


async def test_geometry_that_the_kernel_cannot_read_is_not_committed(bench: Any) -> None:
    bench.write_step("out/a.step")
    bench.scale.answer = ToolError("The geometry was not committed: no shape", kind="unreadable_geometry")
    refusal = await bench.refused("twin.commit_geometry", name="Bracket", file_path="out/a.step")
    assert refusal.kind == "unreadable_geometry"


async def test_without_a_kernel_it_is_committed_and_says_what_is_missing(bench: Any) -> None:
    bench.scale.answer = Measured(problem="cadquery is not installed")
    made = await bench.commit()
    assert "volume_mm3" in made["measured_properties_missing"]
    assert any("cadquery is not installed" in warning for warning in made["warnings"])


async def test_numbers_that_were_only_said_do_not_count_against_measured_ones(bench: Any) -> None:
    made = await bench.commit(properties={"mass_kg": 0.5, "volume_mm3": 15000.1})
    assert any("mass_kg was given as 0.5 and measured as 0.12" in warning for warning in made["warnings"])
    assert not any("volume" in warning for warning in made["warnings"])


async def test_the_same_bytes_again_say_so(bench: Any) -> None:
    await bench.commit()
    again = await bench.commit()
    assert (again["item_ref"], again["unchanged_since"]) == ("CAD-BRACKET@2", "CAD-BRACKET@1")


async def test_several_parts_are_an_assembly_of_the_same_item(bench: Any) -> None:
    await bench.commit()
    parts = [{"name": "a", "solids_count": 1}, {"name": "b", "solids_count": 1}]
    bench.scale.answer = replace(
        bench.scale.answer, properties={**bench.scale.answer.properties, "parts": parts, "parts_count": 2}
    )
    second = await bench.commit(text="two")
    assert second["item_ref"] == "CAD-BRACKET@2"
    node = await bench.do("twin.get_node", item_key="CAD-BRACKET")
    assert node["node"]["node_type"] == "assembly"
    assert node["node"]["properties"]["assembly"]["parts"] == parts


async def test_an_unknown_reference_fails_with_nothing_written(bench: Any) -> None:
    bench.write_step("out/a.step")
    refusal = await bench.refused(
        "twin.commit_geometry", name="Bracket", file_path="out/a.step", depends_on=["CS-NOTHING"]
    )
    assert refusal.kind == "unknown_item"


async def test_a_committed_file_is_staged_byte_for_byte_and_never_over_another(bench: Any) -> None:
    content = bench.write_step("out/bracket.step")
    await bench.commit()
    outcome = await bench.outcome("twin.stage_work_product_file", node_id="CAD-BRACKET@1")
    path = bench.app.workspace / outcome.data["file_path"]
    assert path.read_bytes() == content
    assert "freecad.import_step" in outcome.next_step
    assert "freecad.describe_step_file" in outcome.next_step
    assert outcome.data["file_path"] in outcome.next_step
    assert outcome.files[0].sha256 == sha256_bytes(content)
    again = await bench.do("twin.stage_work_product_file", node_id="CAD-BRACKET")
    assert again["file_path"] == outcome.data["file_path"]
    path.write_bytes(b"edited")
    refusal = await bench.refused("twin.stage_work_product_file", node_id="CAD-BRACKET")
    assert refusal.kind == "file_exists"
    assert path.read_bytes() == b"edited"


async def test_only_work_products_have_a_file(bench: Any) -> None:
    decision = await bench.do("twin.record_decision", title="Steel", rationale="cheap")
    refusal = await bench.refused("twin.stage_work_product_file", node_id=decision["node_id"])
    assert refusal.kind == "not_a_work_product"


async def test_a_damaged_file_is_named_by_its_digest(bench: Any) -> None:
    made = await bench.commit()
    path = bench.app.blobs.path_of(made["content_hash"])
    path.chmod(0o600)
    path.write_bytes(b"rotten")
    refusal = await bench.refused("twin.stage_work_product_file", node_id="CAD-BRACKET")
    assert refusal.kind == "content_corrupt"
    assert made["content_hash"] in refusal.text()


async def test_inside_a_run_a_commit_is_a_draft_that_only_the_run_reads(bench: Any, project_id: str) -> None:
    await bench.commit()
    bench.start_run("run-1", project_id)
    draft = await bench.commit(text="thin")
    assert (draft["item_ref"], draft["revision_status"]) == ("CAD-BRACKET@2", "draft")
    assert "run-1" in draft["draft_note"]
    other = bench.another("session-2")
    assert (await bench.do("twin.get_node", item_key="CAD-BRACKET"))["node"]["revision"] == 2
    assert (await other.do("twin.get_node", item_key="CAD-BRACKET", project_id=project_id))["node"]["revision"] == 1
    bench.close_run("run-1", "approve")
    assert (await other.do("twin.get_node", item_key="CAD-BRACKET", project_id=project_id))["node"]["revision"] == 2


async def test_the_author_is_the_caller(bench: Any) -> None:
    await bench.commit()
    history = await bench.do("twin.item_history", item_key="CAD-BRACKET")
    assert history["revisions"][0]["author"] == "anna"
