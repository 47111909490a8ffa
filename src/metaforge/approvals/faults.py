"""What the ledger refuses, each with the HTTP status it has on the API."""

from typing import Any, ClassVar

from metaforge.core.errors import MetaForgeError, NotApproved


class LedgerUnavailable(NotApproved):
    """The ledger cannot record, or what it recorded was changed: no held write runs. `data.code` says so."""

    status: ClassVar[int] = 503

    def __init__(self, message: str, **data: Any) -> None:
        super().__init__(message, **{"code": "approval_ledger_unavailable", "retryable": False, **data})


class LedgerBroken(LedgerUnavailable):
    """The chain does not hold: something was changed outside the ledger. `data`: broken_at."""


class UnknownApproval(MetaForgeError):
    """No entry of that id. `data`: approval_id."""

    status: ClassVar[int] = 404


class NotDecidable(MetaForgeError):
    """The entry cannot take this decision now. `data`: approval_id, code, state.

    Codes: `already_decided`, `ended`, `window_closed`, `answer_in_client` (all 409), `human_authority_required` and
    `own_call` (403).
    """

    def __init__(self, message: str, *, status: int = 409, **data: Any) -> None:
        super().__init__(message, **data)
        self.status = status


class NotClaimable(MetaForgeError):
    """The entry does not allow this call to run. `data`: approval_id, code, state.

    Codes: `not_approved`, `already_claimed`, `other_call` (the digest is not the approved one).
    """

    status: ClassVar[int] = 409
