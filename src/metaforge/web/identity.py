"""Who a request comes from: as the access rules know them, and what its headers say beside that; never its body."""

from typing import Annotated, Literal

from fastapi import Depends, Header, Request
from starlette.exceptions import HTTPException

from metaforge.access.identity import Identity, Method
from metaforge.approvals.model import Approver
from metaforge.web.services import Services

Word = Annotated[str, Header(max_length=200, pattern=r"^[\x20-\x7e]*$")]
Surface = Literal["dashboard", "cli", "agent"]


def identity_of(request: Request) -> Identity:
    """Return whom the shield let in."""
    identity: Identity = request.scope["state"]["identity"]
    return identity


async def _asking(
    request: Request,
    x_metaforge_surface: Annotated[
        Surface, Header(description="Where the request comes from; an agent may not decide what is a person's alone.")
    ] = "dashboard",
    x_metaforge_on_behalf_of: Annotated[Word, Header(description="For whom it is sent.")] = "",
    x_metaforge_agent: Annotated[Word, Header(description="Which agent sends it.")] = "",
) -> Approver:
    return approver_of(identity_of(request), x_metaforge_surface, x_metaforge_on_behalf_of, x_metaforge_agent)


Asking = Annotated[Approver, Depends(_asking)]
"""Who a request comes from, as they would decide."""


async def _deciding(request: Request, approver: Asking) -> Approver:
    check_may_decide(request)
    return approver


Deciding = Annotated[Approver, Depends(_deciding)]
"""Who decides with a request, checked."""


def check_may_decide(request: Request) -> None:
    """Refuse a credential that must not decide approvals; forms of pages ask this too.

    Raises:
        HTTPException: 403, with what is missing.
    """
    services: Services = request.app.state.services
    denied = services.access.may_decide(identity_of(request))
    if denied is not None:
        headers = {name.decode(): value.decode("latin-1") for name, value in denied.headers}
        raise HTTPException(denied.status, denied.reason, headers)


def approver_of(
    identity: Identity, surface: Surface = "dashboard", on_behalf_of: str = "", agent: str = ""
) -> Approver:
    """Return who decides.

    Args:
        identity: whom the request's credential names; an open server and an API key name nobody.
        surface: where the request comes from.
        on_behalf_of: for whom, as the request says.
        agent: which agent sends it, as the request says.
    """
    name = f"local:{surface}" if identity.method is Method.OPEN else identity.name or identity.actor_id
    return Approver(name, identity.verified, surface, on_behalf_of, agent)
