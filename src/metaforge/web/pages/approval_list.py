"""Which entries of the ledger a page shows: filtered, and one page at a time however many there are."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast
from urllib.parse import urlencode

from metaforge.approvals.model import Entry, Status
from metaforge.approvals.port import Ledger

PAGE_COUNT = 50
READ_COUNT = 200
MAX_READ_COUNT = 5000
"""Entries looked at for one page: a filter that hardly anything fits must not read a ledger of years."""
STATUSES = ("pending", "decided", "all")


@dataclass(frozen=True)
class Filter:
    """What somebody asked to see."""

    status: Status = "pending"
    project_id: str = ""
    tool_id: str = ""
    client: str = ""
    text: str = ""
    before: str = ""

    @classmethod
    def of(cls, query: Mapping[str, str]) -> "Filter":
        """Read it from a query; what it does not know is left out."""
        status = query.get("status", "pending")
        texts = [query.get(name, "")[:200].strip() for name in ("project", "tool", "client", "q", "before")]
        return cls(cast(Status, status if status in STATUSES else "pending"), *texts)

    def url(self, **changed: str) -> str:
        """Return the page's address with this filter, some of it changed."""
        told = {
            "status": self.status, "project": self.project_id, "tool": self.tool_id, "client": self.client,
            "q": self.text, "before": self.before, **changed,
        }  # fmt: skip
        if told["status"] == "pending":
            del told["status"]
        query = urlencode({name: value for name, value in told.items() if value})
        return "/approvals" + (f"?{query}" if query else "")

    @property
    def narrows(self) -> bool:
        """Whether anything beside the status is asked for."""
        return bool(self.project_id or self.tool_id or self.client or self.text)

    def fits(self, entry: Entry) -> bool:
        """Whether an entry is what was asked for."""
        asked = entry.request
        if self.tool_id and asked.tool_id != self.tool_id:
            return False
        if self.client and asked.caller.client_name != self.client:
            return False
        if not self.text:
            return True
        said = (asked.title, asked.summary, asked.tool_id, asked.caller.actor_id, asked.caller.client_name,
                asked.project_id, entry.approval_id)  # fmt: skip
        return self.text.casefold() in "\n".join(said).casefold()


@dataclass(frozen=True)
class Listing:
    """One page of entries, and what the filters offer."""

    entries: Sequence[Entry]
    more: str
    """The id before which the next page begins; empty on the last."""
    tools: Sequence[str]
    clients: Sequence[str]
    projects: Sequence[str]
    cut: bool
    """Whether reading stopped at the most that is looked at."""
    matching: int | None
    """How many fit in all, where that is known."""


def list_entries(ledger: Ledger, asked: Filter) -> Listing:
    """Read one page. Blocks.

    Raises:
        LedgerUnavailable: the ledger cannot be read.
    """
    shown: list[Entry] = []
    tools, clients, projects = {asked.tool_id}, {asked.client}, {asked.project_id}
    more, read, matching = "", 0, 0
    for entry in _each(ledger, asked):
        read += 1
        tools.add(entry.request.tool_id)
        clients.add(entry.request.caller.client_name)
        projects.add(entry.request.project_id)
        if asked.fits(entry):
            matching += 1
            if len(shown) < PAGE_COUNT:
                shown.append(entry)
            elif not more:
                more = shown[-1].approval_id
        if more and (asked.status != "pending" or read >= MAX_READ_COUNT):
            break
    cut = read >= MAX_READ_COUNT
    counted = asked.status == "pending" and not asked.before and not cut
    return Listing(
        shown, more, sorted(tools - {""}), sorted(clients - {""}), sorted(projects - {""}), cut,
        matching if counted else None,
    )  # fmt: skip


def _each(ledger: Ledger, asked: Filter) -> Iterator[Entry]:
    before = asked.before
    for _ in range(0, MAX_READ_COUNT, READ_COUNT):
        found = ledger.entries(asked.status, asked.project_id or None, READ_COUNT, before)
        yield from found
        if len(found) < READ_COUNT:
            return
        before = found[-1].approval_id
