"""`constraint.validate`: judge named work products by their project's requirements."""

import time
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from metaforge import __version__
from metaforge.core.clock import elapsed_ms
from metaforge.tools.context import Answer, Invocation
from metaforge.tools.effect import Effect
from metaforge.tools.server import McpToolServer
from metaforge.tools.tool import tool
from metaforge.twin.evaluation import JUDGED_KINDS, Evaluation, evaluate
from metaforge.twin.pinning import work_product
from metaforge.twin.requirements import sets_of
from metaforge.twin.services import ToolGroup, TwinServices
from metaforge.twin.view import View

Row = dict[str, Any]


@dataclass(frozen=True)
class ValidationAnswer:
    passed: bool
    verdict: str
    violations: list[Row]
    warnings_found: list[Row]
    not_evaluated: list[Row]
    evaluated_count: int
    skipped_count: int
    duration_ms: float


class ConstraintTools(ToolGroup):
    """Tools that judge."""

    @tool(
        effect=Effect.READ, capability="constraint", title="Validate work products",
        search_hint="check parts against requirements, limits, constraint set",
    )  # fmt: skip
    async def validate(
        self,
        ctx: Invocation,
        work_product_ids: Annotated[list[str], Field(max_length=200)],
        project_id: str | None = None,
    ) -> Answer[ValidationAnswer]:
        """Judge parts, assemblies or components by the current constraint sets; judging nothing is no pass.

        Args:
            work_product_ids: Node ids, KEY or KEY@n.
            project_id: When several projects have a key.
        """
        started = time.perf_counter()

        def look(view: View) -> Evaluation:
            products = {node.node_id: node for node in (_product(view, each) for each in work_product_ids)}
            projects = {node.project_id for node in products.values() if node.project_id}
            sets = [node for each in sorted(projects) for node in sets_of(view, each)]
            return evaluate(view, list(products.values()), sets)

        found = await self.services.read(ctx, look, project_id=project_id)
        answer = ValidationAnswer(
            found.passed, found.verdict, [each.as_json() for each in found.violations],
            [each.as_json() for each in found.warnings], [each.as_json() for each in found.skipped],
            found.evaluated_count, found.skipped_count, elapsed_ms(started),
        )  # fmt: skip
        return Answer(answer, found.summary(), warnings=found.caveats())


def _product(view: View, ref: str) -> Any:
    node = view[ref.strip()]
    return node if node.kind in JUDGED_KINDS else work_product(view, ref)


class ConstraintServer(McpToolServer):
    """Runs inside the server."""

    in_process = True

    def __init__(self, services: TwinServices | None = None) -> None:
        super().__init__("constraint", __version__, groups=[ConstraintTools(services)])
