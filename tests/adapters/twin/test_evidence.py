"""Evidence cites calls, is pinned to exact revisions, and cannot support what it violates."""

from typing import Any

import pytest

from metaforge.core.ids import sha256_bytes
from metaforge.record.call_record import CallRecord
from metaforge.tools.context import Artefact

pytestmark = pytest.mark.usefixtures("project_id")

STRENGTH = {"name": "strength", "metric": "max_von_mises", "operator": "<=", "limit": 200, "unit": "MPa"}


@pytest.fixture
async def design(bench: Any) -> dict[str, Any]:
    await bench.do("twin.record_constraint_set", title="B", constraints=[STRENGTH])
    made: dict[str, Any] = await bench.commit()
    return made


def solved(bench: Any, call_id: str, *inputs: str, made: str = "", status: str = "ok") -> None:
    """Write down a call that read and made files, as the pipeline does."""

    def file(sha256: str) -> Artefact:
        return Artefact("f", "/w/f", sha256, 1, "")

    bench.app.recorder.append(
        CallRecord(
            call_id, "calculix.run_fea", "2026-01-01T00:00:00.000Z", 5.0, status, adapter_version="2.20",
            inputs=tuple(map(file, inputs)), artefacts=(file(made),) if made else (), programs={"ccx": "2.20"},
            error_message="" if status == "ok" else "no convergence",
        )
    )  # fmt: skip


async def evidence(bench: Any, **more: Any) -> dict[str, Any]:
    arguments = {
        "evidence_type": "simulation", "result": {"max_von_mises_mpa": 120.0},
        "valid_against": [{"ref": "CAD-BRACKET"}], "supports": ["CS-B#strength"],
    }  # fmt: skip
    made: dict[str, Any] = await bench.do("twin.record_evidence", **(arguments | more))
    return made


async def test_files_of_cited_calls_that_are_gone_are_told(bench: Any, design: dict[str, Any]) -> None:
    there = bench.app.blobs.put_bytes(b"mesh")
    solved(bench, "c1", design["content_hash"], made=there)
    whole = await evidence(bench, call_ids=["c1"])
    assert (whole["warnings"], whole.get("files_waiting")) == ([], None)

    gone = sha256_bytes(b"never kept")
    solved(bench, "c2", design["content_hash"], made=gone)
    made = await evidence(bench, call_ids=["c2"])
    (row,) = made["files_waiting"]
    assert (row["path"], row["sha256"]) == ("f", gone)
    assert "is not below" in row["reason"]
    assert made["warnings"][0].startswith("1 file of the cited calls cannot be relied on to be there later, f first")


@pytest.mark.parametrize(
    "result",
    [{}, {"figures": {}}, {"max_von_mises_mpa": None}, {"note": "  "}, {"a": [], "b": [{"c": "TBD"}]}, {"x": "n/a"}],
)
async def test_a_result_that_says_nothing_is_refused_with_what_to_give(
    bench: Any, design: dict[str, Any], result: dict[str, Any]
) -> None:
    solved(bench, "c1", design["content_hash"])
    refusal = await bench.refused(
        "twin.record_evidence", evidence_type="simulation", result=result, call_ids=["c1"],
        valid_against=[{"ref": "CAD-BRACKET"}],
    )  # fmt: skip
    assert (refusal.kind, refusal.where) == ("empty_result", "result")
    assert "the figures that calculix.run_fea returned" in refusal.fix
    assert '{"max_von_mises_mpa": 120}' in refusal.fix
    found = await bench.do("twin.find_by_property", node_type="evidence", property="evidence_type", value="simulation")
    assert found["count"] == 0


@pytest.mark.parametrize("result", [{"leaks": False}, {"cracks_count": 0}, {"finding": "no burr"}, {"a": [None, 1.5]}])
async def test_zero_false_and_words_are_results(bench: Any, design: dict[str, Any], result: dict[str, Any]) -> None:
    made = await evidence(bench, result=result, supports=[], producer={"tool": "caliper"}, evidence_type="inspection")
    kept = (await bench.do("twin.get_node", node_id=made["node_id"]))["node"]["properties"]
    assert kept["result"] == result


async def test_the_record_of_the_cited_call_tells_producer_inputs_and_versions(
    bench: Any, design: dict[str, Any]
) -> None:
    solved(bench, "c1", design["content_hash"])
    made = await evidence(bench, call_ids=["c1"])
    assert made["warnings"] == []
    assert (made["valid_against"], made["valid_against_count"]) == (["CAD-BRACKET@1"], 1)
    assert made["supports"] == ["CS-B@1#strength"]
    kept = (await bench.do("twin.get_node", node_id=made["node_id"]))["node"]["properties"]
    assert kept["producer"] == {"tool": "calculix.run_fea", "version": "2.20"}
    assert kept["calls"][0]["inputs"][0]["sha256"] == design["content_hash"]
    assert kept["execution_timestamp"] == "2026-01-01T00:00:00.000Z"
    (record,) = await bench.app.read_resource("metaforge://calls/c1")
    assert b"calculix.run_fea" in record.content


async def test_a_mesh_made_of_the_part_is_the_part(bench: Any, design: dict[str, Any]) -> None:
    mesh = sha256_bytes(b"mesh")
    solved(bench, "c1", design["content_hash"], made=mesh)
    solved(bench, "c2", mesh)
    assert (await evidence(bench, call_ids=["c2"]))["warnings"] == []


async def test_a_call_that_read_something_else_is_doubted(bench: Any, design: dict[str, Any]) -> None:
    solved(bench, "c1", sha256_bytes(b"another part"))
    made = await evidence(bench, call_ids=["c1"])
    assert "did not read the file of CAD-BRACKET@1" in made["warnings"][0]
    uncited = await evidence(bench, producer={"tool": "hand"})
    assert "No call is cited" in uncited["warnings"][0]


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        ({"call_ids": ["nope"]}, "unknown_call"),
        ({"call_ids": ["failed"]}, "call_not_usable"),
        ({"call_ids": ["c1"], "producer": {"tool": "other.tool"}}, "producer_mismatch"),
        ({}, "missing_producer"),
        ({"call_ids": ["c1"], "supports": ["CS-B#nothing"]}, "unknown_requirement"),
        ({"call_ids": ["c1"], "valid_against": [{"ref": "CAD-BRACKET", "revision": 9}]}, "unknown_revision"),
        ({"call_ids": ["c1"], "valid_against": [{"ref": "CAD-BRACKET@1", "revision": 2}]}, "bad_item_ref"),
        ({"call_ids": ["c1"], "valid_against": [{"ref": "CS-B", "entity_kind": "work_product"}]}, "other_kind"),
        ({"call_ids": ["c1"], "result": {"max_von_mises_mpa": 201}}, "evidence_contradicts"),
        ({"call_ids": ["c1"], "supersedes": "n0"}, "unknown_node"),
    ],
)
async def test_what_does_not_fit_is_refused_with_nothing_written(
    bench: Any, design: dict[str, Any], arguments: dict[str, Any], kind: str
) -> None:
    solved(bench, "c1", design["content_hash"])
    solved(bench, "failed", status="failed")
    base = {"evidence_type": "simulation", "result": {"max_von_mises_mpa": 1}, "supports": ["CS-B#strength"]}
    refusal = await bench.refused("twin.record_evidence", **(base | arguments))
    assert refusal.kind == kind
    assert refusal.fix


async def test_a_claim_is_supported_by_valid_evidence_of_this_revision_alone(
    bench: Any, design: dict[str, Any]
) -> None:
    solved(bench, "c1", design["content_hash"])
    proof = (await evidence(bench, call_ids=["c1"]))["node_id"]
    claim = {"requirement_ref": "CS-B#strength", "evidence_refs": [proof]}
    supported = await bench.do("twin.record_claim", artefact_ref="CAD-BRACKET", **claim)
    assert (supported["status"], supported["artefact_id"]) == ("supported", "CAD-BRACKET@1")
    await bench.commit(text="thin")
    stale = await bench.do("twin.record_claim", artefact_ref="CAD-BRACKET", **claim)
    assert stale["status"] == "unsupported"
    assert "not valid against CAD-BRACKET@2" in stale["reason"]
    bare = await bench.do("twin.record_claim", requirement_ref="CS-B#strength", artefact_ref="CAD-BRACKET")
    assert bare["reason"] == "no evidence is cited"


async def test_replaced_evidence_supports_nothing(bench: Any, design: dict[str, Any]) -> None:
    solved(bench, "c1", design["content_hash"])
    old = (await evidence(bench, call_ids=["c1"]))["node_id"]
    await evidence(bench, call_ids=["c1"], supersedes=old)
    made = await bench.do(
        "twin.record_claim", requirement_ref="CS-B#strength", artefact_ref="CAD-BRACKET", evidence_refs=[old]
    )
    assert made["status"] == "unsupported"
    assert "was replaced" in made["reason"]


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        ({"requirement_ref": "CS-B"}, "unknown_requirement"),
        ({"artefact_ref": "CS-B"}, "not_a_work_product"),
        ({"evidence_refs": ["CAD-BRACKET"]}, "not_evidence"),
    ],
)
async def test_a_claim_names_one_requirement_one_part_and_evidence(
    bench: Any, design: dict[str, Any], arguments: dict[str, Any], kind: str
) -> None:
    base = {"requirement_ref": "CS-B#strength", "artefact_ref": "CAD-BRACKET"}
    refusal = await bench.refused("twin.record_claim", **(base | arguments))
    assert refusal.kind == kind


async def test_evidence_without_the_value_supports_no_claim_on_a_limit_but_one_on_a_text(
    bench: Any, design: dict[str, Any]
) -> None:
    await bench.do(
        "twin.record_constraint_set", title="Looks", constraints=[{"name": "finish", "acceptance_criteria": "No burr"}]
    )
    look = {"evidence_type": "inspection", "result": {"inspected_count": 3}, "producer": {"tool": "eyes"}}
    seen = await bench.do("twin.record_evidence", **look, valid_against=[{"ref": "CAD-BRACKET"}])
    claim = {"artefact_ref": "CAD-BRACKET", "evidence_refs": [seen["node_id"]]}
    limit = await bench.do("twin.record_claim", requirement_ref="CS-B#strength", **claim)
    assert limit["status"] == "unsupported"
    assert "no value of max_von_mises" in limit["reason"]
    text = await bench.do("twin.record_claim", requirement_ref="CS-LOOKS#finish", **claim)
    assert text["status"] == "supported"
