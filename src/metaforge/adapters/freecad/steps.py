"""What every tool of a session shares: how it is marked, and how a step is asked, judged, told and drawn."""

from functools import partial
from typing import Annotated, Any

from pydantic import Field

from metaforge.adapters.freecad.show import draw
from metaforge.adapters.freecad.told import changed, judge, words
from metaforge.adapters.freecad.workbench import Session, Workbench
from metaforge.engineering.solid_guard import Change, SolidFacts
from metaforge.tools.context import Answer, ToolContext
from metaforge.tools.effect import Effect
from metaforge.tools.manifest import Need
from metaforge.tools.tool import tool

FREECAD = Need("program", "freecadcmd", apt="--no-install-recommends freecad", minimum="0.20")

Positive = Annotated[float, Field(gt=0)]
Point = Annotated[list[float], Field(min_length=3, max_length=3)]
FlatPoint = Annotated[list[float], Field(min_length=2, max_length=2)]

step = partial(
    tool, effect=Effect.PRODUCE, capability="cad_modelling", session="use", unitless_names=True, needs=(FREECAD,),
    timeout_seconds=180, max_memory_mb=3072,
)  # fmt: skip
"""A tool that changes a session's document."""
look = partial(
    tool, effect=Effect.READ, capability="cad_analysis", session="use", needs=(FREECAD,), timeout_seconds=120,
    max_memory_mb=3072,
)  # fmt: skip
"""A tool that only reads it."""


class Group:
    """Tools over the sessions of one workbench."""

    def __init__(self, workbench: Workbench) -> None:
        self.workbench = workbench

    def edit(self, ctx: ToolContext, session_id: str, name: str, /, **given: Any) -> tuple[Session, dict[str, Any]]:
        """Ask for an edit and return what it told, not yet judged."""
        session = self.workbench.find(session_id)
        return session, session.ask(name, ctx.timeout_seconds, **given)

    def answer(
        self,
        ctx: ToolContext,
        session: Session,
        reply: dict[str, Any],
        operation: str,
        *,
        change: Change,
        picture: bool,
        next_step: str,
        against: SolidFacts | None = None,
        solids_count: int | None = 1,
        more: dict[str, Any] | None = None,
    ) -> Answer[dict[str, Any]]:
        """Judge an edit and tell what it changed."""
        warnings = judge(session, reply, operation, change, against=against, solids_count=solids_count)
        return self.told(ctx, session, reply, operation, picture, next_step, warnings, more)

    def told(
        self,
        ctx: ToolContext,
        session: Session,
        reply: dict[str, Any],
        operation: str,
        picture: bool,
        next_step: str,
        warnings: list[str] | None = None,
        more: dict[str, Any] | None = None,
    ) -> Answer[dict[str, Any]]:
        """Tell what an edit made."""
        data = changed(reply) | {name: value for name, value in (more or {}).items() if value is not None}
        files, pictures = draw(ctx, session, reply["obj_id"], data) if picture else ((), ())
        return Answer(
            data, f"{operation}: {words(data)}.", tuple(warnings or ()), next_step, files, pictures,
            {"FreeCAD": session.process.version},
        )  # fmt: skip
