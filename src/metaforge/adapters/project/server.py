"""`project.*`: projects, and which one a client works on."""

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from metaforge import __version__
from metaforge.core.counts import counted
from metaforge.core.errors import InvalidArguments
from metaforge.tools.context import Answer, Invocation
from metaforge.tools.effect import Effect
from metaforge.tools.server import McpToolServer
from metaforge.tools.tool import tool
from metaforge.twin import overview
from metaforge.twin.model import Project
from metaforge.twin.services import ToolGroup, TwinServices
from metaforge.twin.view import View

Row = dict[str, Any]
Name = Annotated[str, Field(min_length=1, max_length=10_000)]


@dataclass(frozen=True)
class ProjectAnswer:
    id: str
    name: str
    description: str
    status: str
    agent_count: int
    created_at: str
    last_updated: str
    work_products: list[Row]


@dataclass(frozen=True)
class ProjectsAnswer:
    projects: list[Row]
    total: int
    offset: int
    limit: int
    has_more: bool
    next_offset: int | None = None


@dataclass(frozen=True)
class OpenedAnswer:
    project: ProjectAnswer
    scope_bound: bool
    brief: Row


@dataclass(frozen=True)
class DeletedAnswer:
    id: str
    deleted: bool


class ProjectTools(ToolGroup):
    """Tools on projects. Opening one makes it the project of this client's next calls."""

    @tool(
        effect=Effect.WRITE, capability="project", title="Create a project",
        search_hint="start a new design project",
    )  # fmt: skip
    async def create(
        self, ctx: Invocation, name: Name, description: str = "", status: str = "active"
    ) -> Answer[ProjectAnswer]:
        """Create a project and open it for this client.

        Args:
            name: What people call it.
            description: What it is about.
            status: Such as active, paused, done.
        """
        services = self.services

        def write(change: Any) -> tuple[ProjectAnswer, int]:
            same = [each for each in change.view.projects() if each.name.casefold() == name.strip().casefold()]
            made = change.create_project(name, description, status)
            return _answer(made, change.view), len(same)

        answer, same_count = await services.change(_outside(ctx), write)
        bound = services.scopes.bind_project(ctx.caller, answer.id)
        warnings = (
            (f"{counted(same_count, 'other project has', 'other projects have')} the same name; ids tell them apart",)
            if same_count
            else ()
        )
        return Answer(
            answer, f"Project {answer.id} {answer.name[:80]!r} created{' and opened' if bound else ''}.",
            warnings=warnings,
        )  # fmt: skip

    @tool(
        effect=Effect.READ, capability="project", title="List projects",
        search_hint="which projects are there",
    )  # fmt: skip
    async def list(
        self, ctx: Invocation, limit: Annotated[int, Field(ge=1, le=500)] = 50, offset: Annotated[int, Field(ge=0)] = 0
    ) -> Answer[ProjectsAnswer]:
        """List projects, the latest change first.

        Args:
            limit: At most this many.
            offset: How many to skip.
        """
        rows, total = await self.services.read(ctx, lambda view: overview.list_projects(view, limit, offset))
        more = offset + len(rows) < total
        return Answer(
            ProjectsAnswer(rows, total, offset, limit, more, offset + len(rows) if more else None),
            counted(total, "project") + (f", {len(rows)} listed from {offset}." if more or offset else "."),
            next_step="project.open with a name or id" if rows else "project.create",
        )

    @tool(
        effect=Effect.READ, capability="project", title="Get a project",
        search_hint="project by id or name, its work products",
    )  # fmt: skip
    async def get(self, ctx: Invocation, id: str | None = None, name: str | None = None) -> Answer[ProjectAnswer]:
        """Read a project and its work products.

        Args:
            id: Project id.
            name: Instead: its name.
        """
        if bool(id) == bool(name):
            raise InvalidArguments(
                "project.get takes id or name", fields={"id": "or name: one of them", "name": "or id: one of them"}
            )
        answer = await self.services.read(ctx, lambda view: _answer(_find(view, id or "", name or ""), view))
        return Answer(
            answer, f"Project {answer.id} {answer.name[:80]!r}: {counted(len(answer.work_products), 'work product')}."
        )

    @tool(
        effect=Effect.READ, capability="project", title="Open a project", idempotent=True,
        search_hint="work on this project from now on, where does it stand",
    )  # fmt: skip
    async def open(self, ctx: Invocation, query: Name) -> Answer[OpenedAnswer]:
        """Make a project the one of this client's next calls, and read where it stands.

        Args:
            query: Its id, its name, or part of its name.
        """
        services = self.services

        def look(view: View) -> tuple[ProjectAnswer, Row]:
            found = overview.find_project(view, query)
            return _answer(found, view), overview.brief(view, found)

        answer, brief = await services.read(ctx, look)
        bound = services.scopes.bind_project(ctx.caller, answer.id)
        warnings = () if bound else ("This connection has no session to bind: give project_id with every call",)
        return Answer(
            OpenedAnswer(answer, bound, brief),
            f"{answer.name[:80]!r} opened: {overview.brief_words(brief)}." if bound else overview.brief_words(brief),
            warnings=warnings,
        )

    @tool(
        effect=Effect.DESTROY, capability="project", title="Update a project", idempotent=True,
        search_hint="rename a project, change its description or status",
    )  # fmt: skip
    async def update(
        self,
        ctx: Invocation,
        id: str,
        name: Name | None = None,
        description: str | None = None,
        status: str | None = None,
    ) -> Answer[ProjectAnswer]:
        """Change a project's name, description or status.

        Args:
            id: Project id.
            name: New name.
            description: New description.
            status: New status.
        """
        if name is None and description is None and status is None:
            raise InvalidArguments(
                "project.update has nothing to change", fields={"name": "or description, or status: at least one"}
            )

        def write(change: Any) -> ProjectAnswer:
            made = change.update_project(id, name=name, description=description, status=status)
            return _answer(made, change.view)

        answer = await self.services.change(_outside(ctx), write)
        return Answer(answer, f"Project {answer.id} is now {answer.name[:80]!r}, {answer.status}.")

    @tool(
        effect=Effect.DESTROY, capability="project", title="Delete a project",
        search_hint="remove a project",
    )  # fmt: skip
    async def delete(self, ctx: Invocation, id: str) -> Answer[DeletedAnswer]:
        """Hide a project from every list; its record stays in the store.

        Args:
            id: Project id.
        """
        services = self.services
        await services.change(_outside(ctx), lambda change: change.delete_project(id))
        services.scopes.forget_project(id)
        return Answer(DeletedAnswer(id, True), f"Project {id} deleted.")


class ProjectServer(McpToolServer):
    """Runs inside the server."""

    in_process = True

    def __init__(self, services: TwinServices | None = None) -> None:
        super().__init__("project", __version__, groups=[ProjectTools(services)])


def _outside(ctx: Invocation) -> Invocation:
    """A project is made and changed apart from whichever is open."""
    from dataclasses import replace

    return replace(ctx, project_id="", run_id="")


def _find(view: View, project_id: str, name: str) -> Project:
    if not project_id:
        return overview.project_named(view, name)
    found = view.project(project_id)
    if found is None:
        raise overview.no_such_project(view, project_id)
    return found


def _answer(project: Project, view: View) -> ProjectAnswer:
    return ProjectAnswer(
        project.project_id, project.name, project.description, project.status,
        overview.agent_count(view, project.project_id), project.created_at, project.updated_at,
        overview.work_products(view, project.project_id),
    )  # fmt: skip
