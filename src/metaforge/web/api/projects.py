"""Projects: what there is, the requirements document, the trace matrix, baselines."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, Field

from metaforge.twin import overview
from metaforge.twin.baselines import baselines
from metaforge.twin.matrix import matrix
from metaforge.twin.model import Project
from metaforge.twin.prd import render
from metaforge.twin.unknown import unknown_project
from metaforge.twin.view import View
from metaforge.web.api.parameters import Filter, Page, ProjectId, Served, next_offset

router = APIRouter(tags=["projects"])


class ProjectRow(BaseModel):
    """A project in a list."""

    id: str
    name: str
    description: str
    status: str
    item_count: int
    created_at: str
    last_updated: str


class Projects(BaseModel):
    """A part of the list of projects, the latest change first."""

    items: list[ProjectRow]
    total: int
    next_offset: int | None = Field(None, description="Where the next part begins; null after the last.")


class WorkProduct(BaseModel):
    """A part, an assembly or a bill of materials, at its head."""

    item_key: str
    item_type: str
    name: str
    head_ref: str
    node_id: str


class ProjectDetail(BaseModel):
    """A project and where it stands."""

    id: str
    name: str
    description: str
    status: str
    author: str
    created_at: str
    updated_at: str
    agent_count: int
    work_products: list[WorkProduct]
    brief: dict[str, Any] = Field(description="Items by kind, suspect records, open drafts, recent decisions.")


class Trace(BaseModel):
    """Every current requirement against what verifies it. Counts are of the whole project."""

    project_id: str
    seq: int = Field(description="The position in the changelog that this is the state of.")
    requirement_count: int
    status_counts: dict[str, int]
    requirements: list[dict[str, Any]]
    uncovered: list[dict[str, Any]]
    unverified: list[str]
    next_offset: int | None = None


class BaselineRow(BaseModel):
    """A frozen state under a name."""

    baseline_id: str
    project_id: str
    name: str
    note: str
    item_count: int
    seq: int
    digest: str
    author: str
    created_at: str


class Baselines(BaseModel):
    """A project's baselines, the oldest first."""

    items: list[BaselineRow]
    total: int
    next_offset: int | None = None


def found_project(view: View, project_id: str) -> Project:
    """Return a project.

    Raises:
        ToolError: `unknown_project`.
    """
    project = view.project(project_id)
    if project is None:
        raise unknown_project(view, project_id)
    return project


@router.get("/projects")
async def list_projects(served: Served, page: Annotated[Page, Query()]) -> Projects:
    """List projects, the latest change first."""
    rows, total = await served.read(lambda view: overview.list_projects(view, page.limit, page.offset))
    return Projects(items=[ProjectRow(**row) for row in rows], total=total,
                    next_offset=next_offset(page, len(rows), total))  # fmt: skip


@router.get("/projects/{project_id}")
async def read_project(served: Served, project_id: ProjectId, nothing: Annotated[Filter, Query()]) -> ProjectDetail:
    """Read a project and where it stands."""

    def look(view: View) -> ProjectDetail:
        project = found_project(view, project_id)
        return ProjectDetail(
            id=project.project_id, name=project.name, description=project.description, status=project.status,
            author=project.author, created_at=project.created_at, updated_at=project.updated_at,
            agent_count=overview.agent_count(view, project_id),
            work_products=[WorkProduct(**row) for row in overview.work_products(view, project_id)],
            brief=overview.brief(view, project),
        )  # fmt: skip

    return await served.read(look, project_id=project_id)


@router.get(
    "/twin/projects/{project_id}/prd",
    response_class=Response,
    responses={200: {"content": {"text/markdown": {"schema": {"type": "string"}}}, "description": "Markdown"}},
)
async def read_prd(served: Served, project_id: ProjectId, nothing: Annotated[Filter, Query()]) -> Response:
    """Render a project's requirements document: its prose, and what is current of needs and requirements."""
    text = await served.read(lambda view: render(view, found_project(view, project_id)), project_id=project_id)
    return Response(text, media_type="text/markdown")


@router.get("/projects/{project_id}/trace")
async def read_trace(served: Served, project_id: ProjectId, page: Annotated[Page, Query()]) -> Trace:
    """Read the trace matrix: a part of the requirements, and as many of the gaps."""

    def look(view: View) -> Trace:
        found_project(view, project_id)
        whole = matrix(view).as_json()
        part = slice(page.offset, page.offset + page.limit)
        rows = whole["requirements"][part]
        return Trace(
            **{**whole, "requirements": rows, "uncovered": whole["uncovered"][part],
               "unverified": whole["unverified"][part]},
            next_offset=next_offset(page, page.limit, max(len(whole["requirements"]), len(whole["uncovered"]))),
        )  # fmt: skip

    return await served.read(look, project_id=project_id)


@router.get("/projects/{project_id}/baselines")
async def list_baselines(served: Served, project_id: ProjectId, page: Annotated[Page, Query()]) -> Baselines:
    """List a project's baselines, the oldest first."""

    def look(view: View) -> Baselines:
        found_project(view, project_id)
        found = baselines(view)
        rows = [BaselineRow(**each.as_json()) for each in found[page.offset : page.offset + page.limit]]
        return Baselines(items=rows, total=len(found), next_offset=next_offset(page, len(rows), len(found)))

    return await served.read(look, project_id=project_id)
