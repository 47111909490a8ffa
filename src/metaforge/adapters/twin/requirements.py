"""The one home of requirement values, and what violates them."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from metaforge.adapters.twin.answers import (
    ConstraintSetAnswer,
    ViolationsAnswer,
    homeless,
    left_behind,
    suspect_warning,
    written,
)
from metaforge.core.counts import counted
from metaforge.core.errors import ToolError
from metaforge.tools.context import Answer, Invocation
from metaforge.tools.effect import Effect
from metaforge.tools.tool import tool
from metaforge.twin.change import Change
from metaforge.twin.evaluation import Evaluation, evaluate, products_of
from metaforge.twin.links import LinkType
from metaforge.twin.model import Node
from metaforge.twin.pinning import pin, pin_all
from metaforge.twin.requirements import checked, current_sets
from metaforge.twin.services import ToolGroup
from metaforge.twin.unit_kinds import latest_sources, wrong_kinds

Name = Annotated[str, Field(min_length=1)]


class Constraint(BaseModel):
    """A requirement: metric, operator, limit and unit; or an expression; or a text judged by people."""

    model_config = ConfigDict(extra="forbid")

    name: Name = Field(description="Unique in the set; KEY#name refers to it.")
    metric: str | None = Field(None, description="Such as mass, max_von_mises, size_x.")
    operator: Literal["<=", "<", ">=", ">", "==", "!=", "≤", "≥", "="] | None = None
    limit: float | None = None
    unit: str | None = Field(None, description="Such as g, MPa, mm, degC.")
    expression: str | None = Field(
        None,
        description="Instead: mass <= 15 g and 1.5 * max_von_mises <= 250 MPa; and, or, not, + - * / ^, min, max.",
    )
    target_node_type: str | None = Field(None, description="Kind it applies to; default parts and assemblies.")
    applies_to: list[str] | None = Field(None, description="Only these items, by KEY.")
    acceptance_criteria: str | None = None
    verification_method: str | None = Field(None, description="Such as analysis, test, inspection.")
    expected_evidence: str | None = None
    severity: Literal["error", "warning", "info"] = "error"
    message: str | None = Field(None, description="Shown when violated.")
    domain: str | None = None
    parent_refs: list[str] | None = Field(None, description="Needs or objectives it answers.")


class Requirements(ToolGroup):
    """Tools on constraint sets."""

    @tool(
        effect=Effect.WRITE, capability="twin_write", title="Record a constraint set",
        search_hint="requirements with limits and units: max mass, stress limit, size, cost",
    )  # fmt: skip
    async def record_constraint_set(
        self,
        ctx: Invocation,
        title: Name,
        constraints: Annotated[list[Constraint], Field(min_length=1, max_length=500)],
        item_key: str | None = None,
        supersedes: str | None = None,
        change_reason: str | None = None,
        project_id: str | None = None,
        session_id: str | None = None,
    ) -> Answer[ConstraintSetAnswer]:
        """Record requirements as the next revision of a constraint set: the whole set, each time.

        Args:
            title: Name of the set; the same title is the same item.
            constraints: Every requirement of the set.
            item_key: Item to revise: KEY, or KEY@n to assert its head.
            supersedes: Node id of an earlier revision.
            change_reason: Why it differs from the revision before.
            project_id: Another project than the opened one.
            session_id: Work session it was made in.
        """
        entries, incomplete = checked([each.model_dump(exclude_none=True) for each in constraints])

        services = self.services
        never_met = await services.read(
            ctx, lambda view: wrong_kinds(entries, latest_sources(view, entries)), project_id=project_id
        )

        def write(change: Change) -> tuple[Node, ConstraintSetAnswer]:
            parents = {entry["name"]: pin_all(change.view, entry.get("parent_refs") or ()) for entry in entries}
            for entry in entries:
                if entry.get("applies_to"):
                    entry["applies_to"] = [pin(change.view, each).node.item_key for each in entry["applies_to"]]
                if entry.get("parent_refs"):
                    entry["parent_refs"] = [each.ref for each in parents[entry["name"]]]
            body = {"title": title, "constraints": entries} | ({"session_id": session_id} if session_id else {})
            node = change.define(
                "constraint_set", title, body,
                item_key=item_key or "", supersedes=supersedes or "", change_reason=change_reason or "",
            )  # fmt: skip
            for name, targets in parents.items():
                for target in targets:
                    change.link(
                        LinkType.IMPLEMENTS, node, target.node, {"requirement": name, **_target(target.requirement)}
                    )
            suspect = left_behind(change, node)
            return node, ConstraintSetAnswer(
                **written(node),
                constraint_ids=[f"{node.ref}#{entry['name']}" for entry in entries],
                constraint_parents={name: [each.ref for each in found] for name, found in parents.items() if found},
                incomplete=incomplete,
                suspect=suspect or None,
            )

        node, answer = await services.change(ctx, write, project_id=project_id)
        warnings = [*never_met, *suspect_warning(node, answer.suspect or []), *homeless(answer.project_linked)]
        unjudged = [row["name"] for row in incomplete if any("metric" in missing for missing in row["missing"])]
        if unjudged:
            bare = counted(len(unjudged), "requirement has", "requirements have")
            warnings.append(f"{bare} no metric or expression and cannot be judged: {', '.join(unjudged)}")
        return Answer(
            answer, f"{node.ref}: {counted(len(entries), 'requirement')} recorded.", warnings=tuple(warnings),
            next_step="twin.constraint_violations" if len(unjudged) < len(entries) else "",
        )  # fmt: skip

    @tool(
        effect=Effect.READ, capability="twin_read", title="List constraint violations",
        search_hint="does the design meet its requirements, what is violated",
    )  # fmt: skip
    async def constraint_violations(
        self, ctx: Invocation, branch: str = "main", project_id: str | None = None
    ) -> Answer[ViolationsAnswer]:
        """Judge the project's current parts, components and evidence by its current constraint sets.

        Args:
            branch: Only main.
            project_id: Another project than the opened one.
        """
        if branch != "main":
            raise ToolError(f"There is no branch {branch!r}", kind="unknown_branch", fix="Use main")
        if not (project_id or ctx.project_id):
            raise ToolError(
                "No project was named or opened", kind="no_project", fix="Give project_id, or project.open one first"
            )
        found = await self.services.read(
            ctx, lambda view: evaluate(view, products_of(view), current_sets(view)), project_id=project_id
        )
        return Answer(violations_of(found), found.summary(), warnings=found.caveats())


def violations_of(found: Evaluation) -> ViolationsAnswer:
    """Return an evaluation as tools answer it."""
    return ViolationsAnswer(
        found.passed, found.verdict, found.evaluated_count, found.skipped_count,
        [each.as_json() for each in found.violations], [each.as_json() for each in found.warnings],
        [each.as_json() for each in found.skipped],
    )  # fmt: skip


def _target(requirement: str) -> dict[str, str]:
    return {"target_requirement": requirement} if requirement else {}
