"""A bracket's design as agents record it: a need, requirements, a part, and evidence that was made with it."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from metaforge.twin.change import Change
from metaforge.twin.evidence import Cited, record_claim, record_evidence
from metaforge.twin.model import Node, Reader
from metaforge.twin.pinning import pin, pin_all
from metaforge.twin.requirements import checked
from metaforge.twin.store import TwinStore
from metaforge.twin.view import View

STRESS = {"name": "stress", "metric": "max_von_mises_mpa", "operator": "<=", "limit": 200, "unit": "MPa"}
MASS = {"name": "mass", "metric": "mass_kg", "operator": "<=", "limit": 0.4, "unit": "kg"}
FINISH = {"name": "finish", "acceptance_criteria": "no sharp edge is left", "verification_method": "inspection"}
NO_CALLS = Cited((), frozenset())


class Design:
    """Writes to one project as an agent does, and reads it back."""

    def __init__(self, twin: TwinStore, project_id: str) -> None:
        self.twin = twin
        self.project_id = project_id

    @contextmanager
    def change(self, run_id: str = "", author: str = "agent") -> Iterator[Change]:
        with self.twin.change(author=author, run_id=run_id, project_id=self.project_id) as change:
            yield change

    @contextmanager
    def view(self, run_id: str = "") -> Iterator[View]:
        with self.twin.read(Reader(run_id, self.project_id)) as view:
            yield view

    def define(self, kind: str, name: str, body: Mapping[str, Any], run_id: str = "", reason: str = "") -> Node:
        with self.change(run_id) as change:
            return change.define(kind, name, body, change_reason=reason)

    def part(self, mass_kg: float, run_id: str = "", reason: str = "") -> Node:
        return self.define("cad_model", "Bracket", {"measured": {"mass_kg": mass_kg}}, run_id, reason)

    def requirements(self, *entries: Mapping[str, Any], answers: str = "", reason: str = "") -> Node:
        kept, _ = checked(entries or (STRESS, MASS, FINISH))
        with self.change() as change:
            node = change.define("constraint_set", "Bracket", {"constraints": kept}, change_reason=reason)
            if answers:
                change.link("implements", node, answers)
            return node

    def evidence(
        self,
        result: Mapping[str, Any],
        supports: tuple[str, ...] = (),
        against: tuple[str, ...] = ("CAD-BRACKET",),
        contradicts: tuple[str, ...] = (),
        supersedes: str = "",
        run_id: str = "",
    ) -> Node:
        with self.change(run_id) as change:
            return record_evidence(
                change,
                evidence_type="simulation",
                statement="FEA of the bracket",
                producer={"tool": "calculix.run_fea"},
                inputs={},
                result=result,
                supports=supports,
                contradicts=contradicts,
                valid_against=pin_all(change.view, against),
                supersedes=supersedes,
                cited=NO_CALLS,
            ).node

    def claim(self, requirement: str, evidence: Node) -> Node:
        with self.change() as change:
            found = [pin(change.view, each) for each in (requirement, "CAD-BRACKET", evidence.node_id)]
            return record_claim(change, found[0], found[1], found[2:], "satisfies").node
