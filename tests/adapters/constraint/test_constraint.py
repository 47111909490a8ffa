"""constraint.validate takes any way of naming a part, and judges exactly the revision that was named."""

from dataclasses import replace
from typing import Any

import pytest

pytestmark = pytest.mark.usefixtures("project_id")

MASS = {"name": "max mass", "metric": "mass", "operator": "<=", "limit": 150, "unit": "g"}


async def test_each_revision_is_judged_by_its_own_values(bench: Any) -> None:
    await bench.do("twin.record_constraint_set", title="B", constraints=[MASS])
    first = await bench.commit()
    bench.scale.answer = replace(bench.scale.answer, properties={**bench.scale.answer.properties, "mass_kg": 0.2})
    await bench.commit(text="heavy")
    for ref, passed in ((first["node_id"], True), ("CAD-BRACKET@1", True), ("CAD-BRACKET", False)):
        found = await bench.do("constraint.validate", work_product_ids=[ref])
        assert found["passed"] is passed
        assert found["evaluated_count"] == 1
        assert found["duration_ms"] > 0


async def test_what_is_no_work_product_is_refused_with_those_there_are(bench: Any) -> None:
    await bench.commit()
    decision = await bench.do("twin.record_decision", title="x", rationale="y")
    refusal = await bench.refused("constraint.validate", work_product_ids=[decision["node_id"]])
    assert refusal.kind == "not_a_work_product"
    assert "CAD-BRACKET" in refusal.fix
    assert (await bench.refused("constraint.validate", work_product_ids=["CAD-NO"])).kind == "unknown_item"
