"""Parameters that several routes take, each as narrow as what it names."""

from typing import Annotated, Any

from fastapi import Depends, Path, Query, Request
from pydantic import BaseModel, ConfigDict, Field, GetJsonSchemaHandler
from pydantic_core import CoreSchema
from typing_extensions import TypeAliasType

from metaforge.web.services import Services

MAX_LIMIT = 200
NAME = r"^[A-Za-z0-9][A-Za-z0-9_.:-]{0,99}$"
"""What ids of projects, sessions, calls and nodes are made of."""


async def _services(request: Request) -> Services:
    services: Services = request.app.state.services
    return services


Served = Annotated[Services, Depends(_services)]

ProjectId = Annotated[str, Path(description="A project's id.", pattern=NAME)]
SessionId = Annotated[str, Path(description="A work session's id.", pattern=NAME)]
CallId = Annotated[str, Path(description="A call's id.", pattern=NAME)]
ItemKey = Annotated[
    str, Path(description="An item's key, such as CAD-BRACKET.", pattern=r"^[A-Z0-9][A-Z0-9_.-]{0,79}$")
]
Revision = Annotated[int, Path(description="A revision's number.", ge=1, le=999_999_999)]
Sha256 = Annotated[str, Path(description="The SHA-256 of the content.", pattern=r"^[0-9a-f]{64}$")]
ApprovalId = Annotated[str, Path(description="An approval's id.", pattern=r"^run_[0-9a-f]{16}$")]

Plain = Annotated[str, Field(pattern=r"^[^\x00]*$")]
"""Text that every database can keep."""


class _Names:
    """Says of an object's names what they must be, where JSON Schema would otherwise let others pass unchecked."""

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        told = handler(schema)
        for pattern, each in told.pop("patternProperties", {}).items():
            told |= {"propertyNames": {"pattern": pattern}, "additionalProperties": each}
        return told


Json = TypeAliasType(
    "Json",
    "Plain | bool | Annotated[int, Field(ge=-(2**53) + 1, le=2**53 - 1)] | Annotated[float, Field(allow_inf_nan=False)]"
    " | list[Json] | JsonObject | None",
)
"""What everybody who reads JSON reads alike: whole numbers up to 2^53, no U+0000."""
JsonObject = Annotated[dict[Plain, Json], _Names()]


class Filter(BaseModel):
    """Query parameters: a name that is not known is refused, so that no filter is silently left out."""

    model_config = ConfigDict(extra="forbid")


class Page(Filter):
    """A part of a list."""

    limit: int = Query(50, ge=1, le=MAX_LIMIT, description="At most so many.")
    offset: int = Query(0, ge=0, le=1_000_000, description="How many to skip.")


def next_offset(page: Page, count: int, total: int) -> int | None:
    """Return where the next part begins, or None after the last."""
    after = page.offset + count
    return after if after < total else None
