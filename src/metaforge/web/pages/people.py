"""Who looks at a page: as the access rules know them, with the mark that their forms must carry."""

from dataclasses import dataclass

from starlette.requests import Request

from metaforge.access.browser import Browser
from metaforge.access.identity import OPEN, Header, Identity, Method
from metaforge.approvals.model import Approver
from metaforge.web.identity import approver_of
from metaforge.web.services import Services


class Forbidden(Exception):
    """A form that is not taken; the message says why and what to do."""


@dataclass(frozen=True)
class Visitor:
    """A person in front of a page.

    Attributes:
        identity: whom the request's credential names; nobody on the sign-in page.
        approver: how their decisions are signed.
        csrf: what their forms carry, so that no other site's form can stand for them.
        cookie: by which their browser is known again; None where it is known already.
        may_not: why they may look and not decide; empty where they may.
    """

    identity: Identity
    approver: Approver
    csrf: str
    cookie: Header | None = None
    may_not: str = ""

    @property
    def signed_in(self) -> str:
        """What to call them in the frame; empty on an open server."""
        return "" if self.identity.method is Method.OPEN else self.identity.name or self.identity.actor_id

    @property
    def has_session(self) -> bool:
        """Whether they can sign out."""
        return bool(self.identity.session_id)


class People:
    """Knows visitors from their requests.

    Args:
        services: access rules, and signed-in browsers where the server has them.
    """

    def __init__(self, services: Services) -> None:
        self._access = services.access
        self.browser = services.browser or Browser(services.access, services.settings)

    def visitor(self, request: Request) -> Visitor:
        """Return who sends a request."""
        identity: Identity | None = request.scope.get("state", {}).get("identity")
        headers = dict(request.scope["headers"])
        visit = self.browser.visit(headers, identity)
        known = identity or OPEN
        denied = self._access.may_decide(known)
        return Visitor(
            known, approver_of(known), self.browser.csrf.token(visit.browser_id), visit.cookie,
            denied.reason if denied is not None else "",
        )  # fmt: skip

    def check(self, request: Request, shown: str) -> Visitor:
        """Return who sent a form.

        Args:
            request: what brought it.
            shown: the token it carries.

        Raises:
            Forbidden: it is not from a page that this browser has open.
        """
        identity: Identity | None = request.scope.get("state", {}).get("identity")
        visit = self.browser.visit(dict(request.scope["headers"]), identity)
        if reason := self.browser.csrf.refusal(shown, visit.browser_id):
            raise Forbidden(reason)
        return self.visitor(request)
