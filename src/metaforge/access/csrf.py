"""Forms that only our own pages can have made."""

from metaforge.access.mode import same
from metaforge.access.secret import SigningSecret

FIELD = "csrf"
"""The hidden field of a form; scripts send the header instead."""
HEADER = b"x-csrf-token"


class Csrf:
    """Tokens bound to a browser: another site's page can send its cookie along, and cannot read the token.

    Args:
        secret: what signs them.
    """

    def __init__(self, secret: SigningSecret) -> None:
        self._secret = secret

    def token(self, browser_id: str) -> str:
        """Return the token that the forms of a page carry.

        Args:
            browser_id: `Visit.browser_id` of the request that asks for the page.
        """
        return self._secret.mark("csrf", browser_id)

    def refusal(self, shown: str, browser_id: str) -> str:
        """Say why a form is not taken; empty when it is.

        Args:
            shown: the token it came with.
            browser_id: of the request that brings it.
        """
        if browser_id and same(shown, self.token(browser_id)):
            return ""
        return "This form is not from a page that this browser has open: load the page again, and answer there"
