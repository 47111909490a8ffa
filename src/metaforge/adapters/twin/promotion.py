"""Decisions of an identified person: promotion to a maturity level, review of an entity, approval of a change."""

from dataclasses import replace
from typing import Annotated, Literal

from pydantic import Field

from metaforge.adapters.twin.answers import EngineeringChangeAnswer, PromotionAnswer, ReviewAnswer, Row
from metaforge.core.counts import counted
from metaforge.core.errors import ToolError
from metaforge.tools.context import Answer, Invocation
from metaforge.tools.effect import Effect, HoldRule
from metaforge.tools.tool import tool
from metaforge.twin import promotion
from metaforge.twin.authority import require_approver
from metaforge.twin.change import Change
from metaforge.twin.evaluation import evaluate, products_of
from metaforge.twin.gates import Asked, check_gates
from metaforge.twin.model import Decision, Node
from metaforge.twin.requirements import current_sets
from metaforge.twin.services import ToolGroup

Level = Literal["concept", "sim_validated", "physically_validated", "released"]


class Promotions(ToolGroup):
    """Tools that always wait for a person. Who decides comes from the approval, never from arguments."""

    @tool(
        effect=Effect.DESTROY, capability="twin_decide", title="Attempt a promotion", hold=HoldRule.ALWAYS,
        search_hint="release, promote the project to sim_validated, physically_validated; gate",
    )  # fmt: skip
    async def attempt_promotion(
        self,
        ctx: Invocation,
        project_id: str,
        level: Level,
        required_claim_ids: list[str] | None = None,
        k: Annotated[float, Field(ge=0, le=10)] = 1.0,
        comment: str = "",
        reject: bool = False,
    ) -> Answer[PromotionAnswer]:
        """Promote a project if its claims hold and nothing blocks it; a person decides.

        Args:
            project_id: The project.
            level: Maturity to reach.
            required_claim_ids: Claims that must be supported by evidence of this level.
            k: How often a stated uncertainty must fit into a margin.
            comment: The person's reason.
            reject: Record a rejection instead.
        """
        approver = require_approver("twin.attempt_promotion", ctx.approver)

        def write(change: Change) -> promotion.Promotion:
            results = promotion.judge_claims(change.view, required_claim_ids or (), level, k)
            blockers, waived = ([], []) if level == "concept" else _blockers(change, level)
            return promotion.record_promotion(
                change, level=level, results=results, blockers=blockers, waived=waived, approver=approver,
                approver_verified=ctx.approver_verified, comment=comment, reject=reject,
            )  # fmt: skip

        made = await self.services.change(ctx, write, project_id=project_id)
        answer = PromotionAnswer(
            made.node.node_id, level, made.promoted, approver, comment, [each.as_json() for each in made.results],
            made.blocked_reason or None, [dict(each) for each in made.waived] or None,
        )  # fmt: skip
        verdict = f"promoted to {level}" if made.promoted else f"not promoted to {level}: {made.blocked_reason[:300]}"
        accepted = f" over {counted(len(made.waived), 'waived obstacle')}" if made.promoted and made.waived else ""
        return Answer(answer, f"{verdict}{accepted}, decided by {approver}.")

    @tool(
        effect=Effect.DESTROY, capability="twin_decide", title="Approve an engineering entity", hold=HoldRule.ALWAYS,
        search_hint="mark a need, objective, requirement, risk as reviewed or approved by a person",
    )  # fmt: skip
    async def approve_engineering_entity(
        self,
        ctx: Invocation,
        node_id: str,
        state: Literal["reviewed", "approved"],
        comment: str = "",
        project_id: str | None = None,
    ) -> Answer[ReviewAnswer]:
        """Mark exactly this revision as reviewed or approved; a person decides.

        Args:
            node_id: Node id, KEY or KEY@n.
            state: What the person says of it.
            comment: The person's reason.
            project_id: When several projects have the key.
        """
        approver = require_approver("twin.approve_engineering_entity", ctx.approver)

        def write(change: Change) -> tuple[Node, Node]:
            target = change.view[node_id]
            if target.status not in ("committed", "approved"):
                raise ToolError(
                    f"{target.ref} is {target.status}", kind="not_in_force", where=target.ref,
                    fix="A draft is approved with its run's gate",
                )  # fmt: skip
            made = promotion.record_review(
                change, target, state, approver=approver, approver_verified=ctx.approver_verified, comment=comment
            )
            return made, target

        made, target = await self.services.change(ctx, write, project_id=project_id)
        return Answer(ReviewAnswer(made.node_id, target.ref, state, approver), f"{target.ref} {state} by {approver}.")

    @tool(
        effect=Effect.DESTROY, capability="twin_decide", title="Approve an engineering change", hold=HoldRule.ALWAYS,
        search_hint="release a run's drafts, its change set, as the current revisions; or reject them",
    )  # fmt: skip
    async def approve_engineering_change(
        self, ctx: Invocation, ect_id: str, reject: bool = False, comment: str = ""
    ) -> Answer[EngineeringChangeAnswer]:
        """Make every draft of a change set the current revision of its item, or reject them all; a person decides.

        Args:
            ect_id: The change set: the id of the run that drafted it.
            reject: Reject it instead; the drafts are kept as rejected.
            comment: The person's reason.
        """
        approver = require_approver("twin.approve_engineering_change", ctx.approver)
        decision = Decision.REJECT if reject else Decision.APPROVE

        def write(change: Change) -> list[str]:
            run = change.view.run(ect_id)
            if run is not None and not change.view.drafts(ect_id):
                raise ToolError(
                    f"Run {ect_id} has no open drafts", kind="nothing_to_decide", where=ect_id,
                    fix="Draft in the run first; what it has committed already needs no approval",
                )  # fmt: skip
            return [node.ref for node in change.close_run(ect_id, decision, reason=comment)]

        person = replace(ctx, caller=replace(ctx.caller, actor_id=approver), run_id="", project_id="")
        refs = await self.services.change(person, write)
        answer = EngineeringChangeAnswer(ect_id, "rejected" if reject else "approved", refs, approver)
        return Answer(answer, f"{', '.join(refs[:8])} {answer.decision} by {approver}.")


def _blockers(change: Change, level: str) -> tuple[list[str], list[Row]]:
    """Return what blocks a promotion, and what would, had a person not waived it."""
    view = change.view
    accepted = Asked(view).waived_requirements()
    found = evaluate(view, products_of(view), current_sets(view))
    told = [
        f"{each.requirement_ref} is violated on {each.work_product}"
        for each in found.violations
        if each.requirement_ref not in accepted
    ]
    if found.verdict in ("incomplete", "nothing_evaluated"):
        without = [each.requirement_ref for each in found.skipped if each.severity == "error"]
        open_ones = [ref for ref in without if ref not in accepted]
        if open_ones or not without:
            told.append(f"no value for {', '.join(open_ones)}" if open_ones else "no requirement could be judged")
    waived = [{"ref": ref} | waiver.as_json() for ref, waiver in accepted.items()]
    if level == "released":
        for gate in check_gates(view):
            waived += [each.as_json() for each in gate.waived if each.ref not in accepted]
            if gate.obstacles:
                first = gate.obstacles[0]
                told.append(f"gate {gate.name}: {len(gate.obstacles)} open, first {first.ref}: {first.what}")
    return told, waived
