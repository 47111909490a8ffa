"""Signing in with the server's key or an access token, and out again."""

from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response

from metaforge.access.identity import Denied
from metaforge.web.pages.forms import read_form
from metaforge.web.pages.people import People
from metaforge.web.pages.site import Site, see_other

HOME = "/approvals"


class SigningIn:
    """The pages `/sign-in` and `/sign-out`."""

    def __init__(self, people: People, site: Site, mode: str) -> None:
        self._people = people
        self._site = site
        self._mode = mode

    async def asked(self, request: Request) -> Response:
        """Show the form."""
        if self._mode == "off":
            return see_other(HOME)
        return await self._page(request, _own_page(request.query_params.get("next", "")))

    async def done(self, request: Request) -> Response:
        """Take the form: open a session, or say why not."""
        form = await read_form(request)
        self._people.check(request, form.get("csrf", ""))
        following = _own_page(form.get("next", ""))
        headers = dict(request.scope["headers"])
        signed = await self._people.browser.sign_in(
            form.get("secret", ""), form.get("name", ""), headers, request.scope.get("client")
        )
        if isinstance(signed, Denied):
            return await self._page(request, following, signed.reason, form.get("name", ""), signed)
        return _with_cookie(see_other(following), signed.cookie)

    async def out(self, request: Request) -> Response:
        """End the session."""
        form = await read_form(request)
        visitor = self._people.check(request, form.get("csrf", ""))
        return _with_cookie(see_other("/sign-in"), self._people.browser.sign_out(visitor.identity))

    async def _page(
        self, request: Request, following: str, fault: str = "", name: str = "", denied: Denied | None = None
    ) -> Response:
        values = {
            "title": "Sign in", "section": "", "next": following, "fault": fault, "name": name, "mode": self._mode,
            "events": False,
        }  # fmt: skip
        answer = await self._site.page(request, "sign_in.html", values, status=denied.status if denied else 200)
        for header, value in denied.headers if denied else ():
            answer.headers[header.decode("latin-1")] = value.decode("latin-1")
        return answer


def _with_cookie(answer: Response, cookie: tuple[bytes, bytes]) -> Response:
    answer.raw_headers.append(cookie)
    return answer


def _own_page(text: str) -> str:
    """Return where to go afterwards: a page of this server, nowhere else."""
    parts = urlsplit(text)
    fine = text.startswith("/") and not text.startswith(("//", "/\\")) and not parts.scheme and not parts.netloc
    return text if fine and text.isprintable() and "\\" not in text else HOME
