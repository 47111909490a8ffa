"""Record evidence and claims."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from metaforge.adapters.twin.answers import ClaimAnswer, EvidenceAnswer, homeless, written
from metaforge.tools.context import Answer, Invocation
from metaforge.tools.effect import Effect
from metaforge.tools.tool import tool
from metaforge.twin import evidence
from metaforge.twin.change import Change
from metaforge.twin.pinning import Pinned, pin, pin_all, work_product
from metaforge.twin.requirements import check_named
from metaforge.twin.services import ToolGroup


class Producer(BaseModel):
    model_config = ConfigDict(extra="forbid")

    tool: Annotated[str, Field(min_length=1)]
    version: str = ""


class ValidAgainst(BaseModel):
    model_config = ConfigDict(extra="forbid")

    ref: Annotated[str, Field(min_length=1)] = Field(description="KEY, KEY@n, KEY#requirement or node id.")
    entity_kind: Literal["constraint", "engineering_entity", "work_product"] = "work_product"
    revision: Annotated[int, Field(ge=1)] | None = None


class EvidenceTools(ToolGroup):
    """Tools that tie results to what they are about."""

    @tool(
        effect=Effect.WRITE, capability="twin_write", title="Record evidence",
        search_hint="simulation result, calculation, test, measurement as proof of a requirement",
    )  # fmt: skip
    async def record_evidence(
        self,
        ctx: Invocation,
        evidence_type: Literal[
            "calculation", "simulation", "test", "inspection", "demonstration", "datasheet", "external_reference"
        ],
        result: dict[str, Any],
        call_ids: list[str] | None = None,
        producer: Producer | None = None,
        inputs: dict[str, Any] | None = None,
        statement: str = "",
        supports: list[str] | None = None,
        contradicts: list[str] | None = None,
        valid_against: list[ValidAgainst] | None = None,
        supersedes: str | None = None,
        project_id: str | None = None,
        session_id: str | None = None,
    ) -> Answer[EvidenceAnswer]:
        """Record evidence: which calls made it, what it shows, and the exact revisions it is valid against.

        Args:
            evidence_type: How it was obtained.
            result: Figures with units in their names, such as max_von_mises_mpa.
            call_ids: Calls that made it: their records give inputs and versions.
            producer: Where no call is cited.
            inputs: Such as loads and supports.
            statement: What it shows.
            supports: KEY#requirement, claim or entity it speaks for.
            contradicts: Those it speaks against.
            valid_against: Revisions it was made with; a bare KEY means the current one.
            supersedes: Node id of evidence it replaces.
            project_id: Another project than the opened one.
            session_id: Work session it was made in.
        """
        services = self.services
        cited = await services.cite(call_ids or [])

        def write(change: Change) -> evidence.Recorded:
            pinned: list[Pinned] = []
            for each in valid_against or ():
                target = pin(change.view, each.ref, each.revision)
                evidence.check_entity_kind(target, each.entity_kind)
                pinned.append(target)
            return evidence.record_evidence(
                change,
                evidence_type=evidence_type,
                statement=statement,
                producer=producer.model_dump() if producer else None,
                inputs=inputs or {},
                result=result,
                supports=supports or (),
                contradicts=contradicts or (),
                valid_against=pinned,
                supersedes=supersedes or "",
                cited=cited,
                session_id=session_id or "",
            )

        made = await services.change(ctx, write, project_id=project_id)
        against = [each.ref for each in made.valid_against]
        answer = EvidenceAnswer(
            **written(made.node), result_hash=made.result_hash, execution_timestamp=made.executed_at,
            supports=[each.ref for each in made.supports], contradicts=[each.ref for each in made.contradicts],
            valid_against=against, valid_against_count=len(against), superseded=supersedes or None,
            files_waiting=cited.files_waiting() or None,
        )  # fmt: skip
        valid = f", valid against {', '.join(against)}" if against else ", valid against nothing in particular"
        return Answer(
            answer, f"Evidence {made.node.node_id} recorded{valid}.",
            warnings=(*made.warnings, *homeless(answer.project_linked)),
            next_step="twin.record_claim with this node id in evidence_refs",
        )  # fmt: skip

    @tool(
        effect=Effect.WRITE, capability="twin_write", title="Record a claim",
        search_hint="this part satisfies this requirement, by this evidence",
    )  # fmt: skip
    async def record_claim(
        self,
        ctx: Invocation,
        requirement_ref: str,
        artefact_ref: str,
        evidence_refs: list[str] | None = None,
        claim_type: str = "satisfies",
        project_id: str | None = None,
    ) -> Answer[ClaimAnswer]:
        """Claim that exactly this revision of a part meets a requirement, by evidence valid against it.

        Args:
            requirement_ref: KEY#name of a requirement, a KEY or node id.
            artefact_ref: Part or assembly: KEY, KEY@n.
            evidence_refs: Node ids of evidence.
            claim_type: What is claimed.
            project_id: Another project than the opened one.
        """

        def write(change: Change) -> evidence.Claim:
            requirement = pin(change.view, requirement_ref)
            check_named(requirement.node, requirement.requirement, "requirement_ref")
            artefact = Pinned(work_product(change.view, artefact_ref))
            return evidence.record_claim(
                change, requirement, artefact, pin_all(change.view, evidence_refs or ()), claim_type
            )

        made = await self.services.change(ctx, write, project_id=project_id)
        answer = ClaimAnswer(
            made.node.node_id, made.artefact.ref, made.requirement.ref, claim_type,
            [each.ref for each in made.evidence], made.status, made.reason,
        )  # fmt: skip
        warnings = () if made.status == "supported" else (f"The claim is unsupported: {made.reason}",)
        return Answer(
            answer, f"{made.artefact.ref} {claim_type} {made.requirement.ref}: {made.status}.", warnings=warnings
        )
