"""What a result says, and where."""

import base64

import pytest

from metaforge.mcp.results import call_result, legacy_result, resource_contents
from metaforge.mcp.service import ResourceContent
from metaforge.tools.context import Artefact, ImageContent, Outcome, ProgramVersion

FILE = Artefact("out/a.step", "/w/out/a.step", "ab" * 32, 12, "model/step", "geometry")
NEW, OLD = "2025-11-25", "2025-03-26"


def test_the_first_block_stands_alone_with_warnings_and_the_next_step():
    outcome = Outcome({"volume_mm3": 5.0}, "5 mm3", ("thin", "sharp"), "calculix.run_fea")

    assert call_result(outcome, "c1", NEW)["content"] == [
        {"type": "text", "text": "5 mm3\nWarning: thin\nWarning: sharp\nNext: calculix.run_fea"}
    ]


def test_what_a_model_must_see_is_in_the_structure():
    outcome = Outcome({"volume_mm3": 5.0}, "5 mm3", ("thin",), "next.tool", (FILE,))
    structure = call_result(outcome, "c1", NEW)["structuredContent"]

    assert (structure["volume_mm3"], structure["call_id"], structure["next_step"]) == (5.0, "c1", "next.tool")
    assert structure["warnings"] == ("thin",)
    assert structure["files"] == [
        {
            "path": "out/a.step", "absolute_path": "/w/out/a.step", "uri": f"metaforge://artefacts/{'ab' * 32}",
            "media_type": "model/step", "size_bytes": 12, "role": "geometry",
        }
    ]  # fmt: skip


def test_nothing_is_added_that_there_is_not():
    assert call_result(Outcome({"a": 1}, "x"), "c1", NEW)["structuredContent"] == {"a": 1, "call_id": "c1"}


def test_a_tools_own_field_is_not_replaced_by_an_added_one():
    outcome = Outcome({"warnings": "mine", "files": 3}, "x", ("w",), files=(FILE,))
    structure = call_result(outcome, "c1", NEW)["structuredContent"]
    assert (structure["warnings"], structure["files"]) == ("mine", 3)


def test_an_approval_is_told_in_text_in_the_structure_and_beside_it():
    approval = {"held": True, "heldSeconds": 1.5, "approvalId": "run_1", "note": "This write was held."}
    result = call_result(Outcome({}, "x", meta={"approval": approval}), "c1", NEW)

    assert [block["text"] for block in result["content"]] == ["x", "This write was held."]
    assert result["_meta"] == {"approval": approval, "callId": "c1"}
    structured = {"held": True, "held_seconds": 1.5, "approval_id": "run_1", "note": "This write was held."}
    assert result["structuredContent"]["approval"] == structured


def test_files_are_links_and_pictures_are_images():
    outcome = Outcome({}, "x", files=(FILE,), images=(ImageContent(b"png", "c"),))
    _, image, link = call_result(outcome, "c1", NEW)["content"]

    assert base64.b64decode(image["data"]) == b"png"
    assert (link["type"], link["name"], link["size"]) == ("resource_link", "out/a.step", 12)
    assert (link["uri"], link["mimeType"]) == (FILE.uri, "model/step")


def test_a_client_older_than_links_reads_of_files_in_text():
    block = call_result(Outcome({}, "x", files=(FILE,)), "c1", OLD)["content"][1]
    assert block["type"] == "text"
    assert "out/a.step" in block["text"]


def test_a_tool_whose_result_is_content_has_no_structure():
    block = {"type": "audio", "data": "", "mimeType": "audio/wav"}
    result = call_result(Outcome({}, "", content=(block,)), "c1", NEW)

    assert result == {"content": [block], "_meta": {"callId": "c1"}}


def test_the_legacy_result_has_the_documented_fields():
    outcome = Outcome({"solver_time_seconds": 12.5}, "x", files=(FILE,), programs=(ProgramVersion("ccx", "2.20"),))
    result = legacy_result(outcome, "calculix.run_fea", "c1", 12832.0)

    assert result["tool_id"] == "calculix.run_fea"
    assert (result["status"], result["duration_ms"]) == ("success", 12832.0)
    assert result["output_files"] == ["/w/out/a.step"]
    assert result["programs"] == {"ccx": "2.20"}


@pytest.mark.parametrize(
    ("media_type", "content", "key"),
    [
        ("text/plain", b"x", "text"), ("application/json", b"{}", "text"), ("image/svg+xml", b"<svg/>", "text"),
        ("image/png", b"x", "blob"), ("model/step", b"ISO", "blob"), ("text/plain", b"\xff", "blob"),
    ],
)  # fmt: skip
def test_a_resource_is_text_where_it_is_text(media_type, content, key):
    assert key in resource_contents(ResourceContent("a:b", media_type, content))
