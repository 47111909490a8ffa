"""Promotion of a project to a maturity level, and review of entities: decisions of an identified person."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from metaforge.core.errors import ToolError
from metaforge.twin.evidence import support_of
from metaforge.twin.judging import Judgement, judge
from metaforge.twin.links import LinkType, doubts, requirement_entry
from metaforge.twin.metrics import Metrics
from metaforge.twin.model import Node
from metaforge.twin.pinning import Pinned, pin

if TYPE_CHECKING:
    from metaforge.twin.change import Change
    from metaforge.twin.view import View

LEVELS = ("concept", "sim_validated", "physically_validated", "released")
_NEEDED_EVIDENCE = {
    "concept": frozenset[str](),
    "sim_validated": frozenset({"calculation", "simulation", "test", "inspection", "demonstration"}),
    "physically_validated": frozenset({"test", "inspection", "demonstration"}),
    "released": frozenset({"test", "inspection", "demonstration"}),
}
REVIEW_STATES = ("reviewed", "approved")


@dataclass(frozen=True)
class ClaimResult:
    """How one required claim stands: met, or why not."""

    claim_id: str
    met: bool
    status: str
    reason: str
    margin_ratio: float | None = None

    def as_json(self) -> dict[str, Any]:
        """Return what a client is told."""
        row = {"claim_id": self.claim_id, "met": self.met, "status": self.status, "reason": self.reason}
        return row if self.margin_ratio is None else row | {"margin_ratio": self.margin_ratio}


def judge_claims(view: "View", claim_ids: Sequence[str], level: str, coverage: float) -> list[ClaimResult]:
    """Judge the claims that a promotion rests on.

    Args:
        view: the caller's view.
        claim_ids: node ids of claims.
        level: the maturity level, which says what kinds of evidence count.
        coverage: how many times a stated uncertainty must fit into the margin.

    Raises:
        ToolError: `not_a_claim`, `unknown_node`.
    """
    doubtful = doubts(view)
    return [_judge_claim(view, view.node(claim_id), level, coverage, doubtful) for claim_id in claim_ids]


def _judge_claim(view: "View", claim: Node, level: str, coverage: float, doubtful: Any) -> ClaimResult:
    if claim.kind != "claim":
        raise ToolError(
            f"{claim.node_id} is a {claim.kind} and no claim", kind="not_a_claim", where=claim.node_id,
            fix="Record it with twin.record_claim and give that node_id",
        )  # fmt: skip
    if claim.node_id in doubtful:
        return ClaimResult(claim.node_id, False, "stale", doubtful[claim.node_id].why)
    requirement, artefact = pin(view, str(claim.body["requirement"])), pin(view, str(claim.body["artefact"]))
    cited = view.links(claim.node_id, type=LinkType.CITES, direction="outgoing")
    evidence = list(view.nodes([link.target_node_id for link in cited]).values())
    status, reason = support_of(view, requirement, artefact, evidence)
    if status != "supported":
        return ClaimResult(claim.node_id, False, status, reason)
    needed = _NEEDED_EVIDENCE[level]
    if needed and not any(node.body.get("evidence_type") in needed for node in evidence):
        return ClaimResult(
            claim.node_id, False, "insufficient", f"{level} needs evidence by {', '.join(sorted(needed))}"
        )
    return _within_margin(claim, requirement, evidence, coverage, reason)


def _within_margin(
    claim: Node, requirement: Pinned, evidence: Sequence[Node], coverage: float, reason: str
) -> ClaimResult:
    entry = requirement_entry(requirement.node, requirement.requirement) if requirement.requirement else None
    margin: float | None = None
    for node in evidence if entry is not None else ():
        assert entry is not None
        values = Metrics(node.body.get("result") or {}, f"evidence {node.node_id}")
        judged = judge(entry, [values])
        if judged.margin_ratio is None:
            continue
        margin = judged.margin_ratio if margin is None else min(margin, judged.margin_ratio)
        uncertainty = _uncertainty(values, str(entry.get("metric", "")), judged)
        if uncertainty is not None and judged.actual is not None and judged.limit is not None:
            distance = abs(judged.limit - judged.actual)
            if distance <= coverage * uncertainty:
                told = (
                    f"{judged.actual:g} +- {coverage * uncertainty:g} {judged.unit} reaches the limit {judged.limit:g}"
                )
                return ClaimResult(claim.node_id, False, "uncertain", told, judged.margin_ratio)
    return ClaimResult(claim.node_id, True, "supported", reason, margin)


def _uncertainty(values: Metrics, metric: str, judged: Judgement) -> float | None:
    from metaforge.twin.expressions import Undetermined
    from metaforge.twin.quantities import read_unit, split_name

    name = split_name(metric)[0]
    try:
        found = values.find(f"{name}_uncertainty")
    except Undetermined:
        return None
    if found is None:
        return None
    unit = read_unit(judged.unit)
    # An uncertainty is a difference: the offset of a temperature scale has no part in it.
    return abs(found.quantity.value / unit.factor) if found.unit else abs(found.number)


@dataclass(frozen=True)
class Promotion:
    """A gate's answer, as it was recorded."""

    node: Node
    promoted: bool
    blocked_reason: str
    results: tuple[ClaimResult, ...]
    waived: tuple[Mapping[str, Any], ...] = ()


def record_promotion(
    change: "Change",
    *,
    level: str,
    results: Sequence[ClaimResult],
    blockers: Sequence[str],
    waived: Sequence[Mapping[str, Any]],
    approver: str,
    approver_verified: bool,
    comment: str,
    reject: bool,
) -> Promotion:
    """Write what an identified person decided; nothing is promoted over an open blocker."""
    open_claims = [f"claim {each.claim_id} is {each.status}: {each.reason}" for each in results if not each.met]
    reasons = ["the approver rejected it"] if reject else [*open_claims, *blockers]
    if not reject and level != "concept" and not results:
        reasons.append(f"{level} needs at least one claim in required_claim_ids")
    promoted = not reasons
    body = {
        "decision": "promotion", "level": level, "promoted": promoted, "blocked_reason": "; ".join(reasons),
        "decided_by": approver, "approver_verified": approver_verified, "comment": comment,
        "results": [each.as_json() for each in results], "waived": [dict(each) for each in waived],
    }  # fmt: skip
    node = change.record("approval", body, name=f"Promotion to {level}")
    for each in results:
        change.link(LinkType.DECIDES_ON, node, each.claim_id)
    return Promotion(node, promoted, "; ".join(reasons), tuple(results), tuple(waived))


def record_review(
    change: "Change", target: Node, state: str, *, approver: str, approver_verified: bool, comment: str
) -> Node:
    """Write that an identified person reviewed or approved exactly this node."""
    body = {
        "decision": "review", "state": state, "target": target.ref, "decided_by": approver,
        "approver_verified": approver_verified, "comment": comment,
    }  # fmt: skip
    node = change.record("approval", body, name=f"{target.ref} {state}")
    change.link(LinkType.DECIDES_ON, node, target)
    return node
