"""The ledger of a gateway, reached over its HTTP API: for servers that keep no store of their own with it."""

from collections.abc import Iterator, Mapping
from dataclasses import fields
from threading import Lock
from typing import TYPE_CHECKING, Any, NoReturn

from metaforge.approvals.faults import LedgerUnavailable, NotClaimable, NotDecidable, UnknownApproval
from metaforge.approvals.holders import Holder
from metaforge.approvals.model import (
    Approver,
    Decision,
    Entry,
    Kind,
    Request,
    Route,
    State,
    Status,
    Verdict,
    Verification,
)
from metaforge.approvals.port import EndState
from metaforge.approvals.wire import entry_from
from metaforge.core.errors import InvalidArguments, MetaForgeError
from metaforge.tools.context import Caller, Trust
from metaforge.tools.effect import Effect

if TYPE_CHECKING:
    import httpx

PATH = "/v1/chat/tool_approvals"
HOLDER_HEADER = "X-MetaForge-Holder"
TIMEOUT_SECONDS = 5.0


class GatewayLedger:
    """Entries that a gateway keeps. The gateway's clock counts, and it ends what nobody waits for."""

    def __init__(self, url: str, key: str, holder: Holder) -> None:
        """Remember the gateway; nothing is connected.

        Args:
            url: METAFORGE_GATEWAY_URL, without a path.
            key: what this server shows to the gateway; empty for an open one.
            holder: this process; its id is how the gateway knows who may claim and end an entry.
        """
        self._url = url
        self._key = key
        self._holder = holder
        self._lock = Lock()
        self._client: httpx.Client | None = None

    def open(self, request: Request, *, holder: str = "") -> Entry:
        """Record a request at the gateway before anyone is asked; see `port.Ledger`."""
        caller = request.caller
        body = {
            "approval_id": request.approval_id, "call_id": request.call_id, "tool": request.tool_id,
            "arguments": dict(request.arguments), "reason": request.reason_held, "caller": caller.actor_id,
            "trust": caller.trust.value, "verified": caller.verified,
            "client": {"name": caller.client_name, "version": caller.client_version},
            "session_id": caller.session_id, "project": request.project_id, "run_id": request.run_id,
            "route": request.route.value, "timeout_seconds": request.window_seconds, "kind": request.kind.value,
            "effect": request.effect.value, "adapter_version": request.adapter_version, "title": request.title,
            "summary": request.summary, "change": dict(request.change),
        }  # fmt: skip
        made = self._entry(self._send("POST", "", body, holder=holder))
        if made.request.digest != request.digest:
            raise LedgerUnavailable(
                f"The gateway {self._url} recorded another call than the one that waits ({request.approval_id}), so "
                "nobody is asked. Install the same version of MetaForge at both ends"
            )
        return made

    def get(self, approval_id: str) -> Entry:
        """Return an entry; whole where this process holds it, without secrets otherwise."""
        return self._entry(self._send("GET", f"/{approval_id}"))

    def entries(
        self, status: Status = "pending", project_id: str | None = None, limit: int = 100, before: str = ""
    ) -> list[Entry]:
        """Return entries without secrets, newest first; see `port.Ledger`."""
        query = {"status": status, "project_id": project_id, "limit": min(max(limit, 1), 100), "before": before}
        found = self._send("GET", "", query={name: value for name, value in query.items() if value})
        return [_shown(item) for item in found["items"]]

    def heads(self, status: Status = "pending", project_id: str | None = None, limit: int = 100) -> dict[str, int]:
        """Return ids; a gateway tells no number of events."""
        return {each.approval_id: each.seq for each in self.entries(status, project_id, limit)}

    def show_on_dashboard(self, approval_id: str) -> Entry:
        """Let an inline entry be decided elsewhere too; see `port.Ledger`."""
        return self._entry(self._send("POST", f"/{approval_id}/show", {}))

    def decide(
        self,
        approval_id: str,
        decision: Verdict,
        approver: Approver,
        reason: str = "",
        arguments: Mapping[str, Any] | None = None,
        inline: bool = False,
    ) -> Entry:
        """Record a person's answer; who decides is whoever the gateway takes this server for, unless it is inline."""
        if inline:
            outcome = "approved" if decision == "approve" else "rejected"
            body = {"outcome": outcome, "reason": reason, "approved_by": approver.name,
                    "approver_verified": approver.verified}  # fmt: skip
            return self._entry(self._send("POST", f"/{approval_id}/resolve", body))
        body = {"decision": decision, "reason": reason}
        if arguments is not None and decision == "approve":
            body["arguments"] = dict(arguments)
        headers = {"X-MetaForge-Surface": approver.surface, "X-MetaForge-On-Behalf-Of": approver.on_behalf_of,
                   "X-MetaForge-Agent": approver.agent}  # fmt: skip
        told = {name: value for name, value in headers.items() if value}
        return self._entry(self._send("POST", f"/{approval_id}", body, headers=told))

    def claim(self, approval_id: str, digest: str, *, holder: str = "") -> Entry:
        """Take an approved entry to run its call, once; see `port.Ledger`."""
        try:
            return self._entry(self._send("POST", f"/{approval_id}/claim", {"digest": digest}, holder=holder))
        except NotDecidable as fault:
            raise NotClaimable(fault.message, **fault.data) from None

    def end(self, approval_id: str, state: EndState, reason: str = "") -> Entry:
        """End an entry unless something came first; see `port.Ledger`."""
        return self._entry(self._send("POST", f"/{approval_id}/resolve", {"outcome": state.value, "reason": reason}))

    def expire(self, now: str = "") -> int:
        """Do nothing: the gateway ends what nobody waits for."""
        return 0

    def verify(self, head: str = "") -> Verification:
        """Refuse: the chain is checked where it is kept."""
        self._elsewhere("verify")

    def export(self) -> Iterator[str]:
        """Refuse: the chain is exported where it is kept."""
        self._elsewhere("export")

    def close(self) -> None:
        """Close the connections."""
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            client.close()

    # -- inside --------------------------------------------------------------------------------------------------

    def _elsewhere(self, what: str) -> NoReturn:
        raise LedgerUnavailable(
            f"The ledger is kept by the gateway {self._url}: run `metaforge ledger {what}` on its machine, or unset "
            "METAFORGE_GATEWAY_URL for the ledger of this one"
        )

    def _send(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        holder: str = "",
    ) -> dict[str, Any]:
        import httpx

        named = {HOLDER_HEADER: holder or self._holder.id, **(headers or {})}
        try:
            answer = self._connected().request(method, PATH + path, json=body, params=query, headers=named)
            told: Any = answer.json()
        except (httpx.HTTPError, ValueError) as fault:
            raise LedgerUnavailable(
                f"The approval ledger of the gateway {self._url} cannot be reached ({type(fault).__name__}: {fault}), "
                "so nobody is asked and no held write runs. Start it (metaforge serve) or set METAFORGE_GATEWAY_URL"
            ) from None
        if answer.is_success and isinstance(told, dict):
            return told
        raise self._refusal(answer.status_code, told if isinstance(told, dict) else {})

    def _connected(self) -> "httpx.Client":
        with self._lock:
            if self._client is None:
                import httpx

                headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
                # A connection that was refused can be tried again without doing anything twice.
                transport = httpx.HTTPTransport(retries=1)
                self._client = httpx.Client(
                    base_url=self._url, headers=headers, timeout=TIMEOUT_SECONDS, transport=transport
                )
            return self._client

    def _refusal(self, status: int, told: dict[str, Any]) -> MetaForgeError:
        detail = told.get("detail")
        detail = detail if isinstance(detail, dict) else {}
        reason, code = str(detail.get("reason") or f"HTTP {status}"), str(detail.get("error_type") or "")
        data = {"approval_id": detail.get("approval_id", ""), "code": code, "state": detail.get("state", "")}
        if status == 404 and code == "unknown_approval":
            return UnknownApproval(reason, approval_id=data["approval_id"])
        if status == 409 or (status == 403 and code in ("human_authority_required", "own_call", "not_holder")):
            return NotDecidable(reason, status=status, **data)
        if status == 422:
            return InvalidArguments(reason, fields=detail.get("fields") or {})
        advice = " Set METAFORGE_GATEWAY_KEY to a key that it takes" if status in (401, 403) else ""
        return LedgerUnavailable(
            f"The gateway {self._url} did not record the approval, so no held write runs: {reason}.{advice}",
            http_status=status,
        )

    def _entry(self, told: dict[str, Any]) -> Entry:
        try:
            whole = told.get("entry")
            return entry_from(whole) if whole else _shown(told)
        except (KeyError, TypeError, ValueError) as fault:
            raise LedgerUnavailable(
                f"What the gateway {self._url} answered is no approval ({fault!r}). "
                "Install the same version of MetaForge at both ends"
            ) from None


def _shown(item: Mapping[str, Any]) -> Entry:
    """Return an entry as everybody may see it."""
    client = item["client"]
    request = Request(
        approval_id=item["id"], call_id=item["call_id"], tool_id=item["tool"], kind=Kind(item["kind"]),
        effect=Effect(item["effect"]), arguments=item["arguments"], digest=item["digest"], adapter_version="",
        project_id=item["project"], run_id=item["run_id"],
        caller=Caller(item["caller"], Trust(item["trust"]), client["name"], client["version"], item["session_id"]),
        title=item["title"], summary=item["summary"], reason_held=item["reason"], route=Route(item["route"]),
        created_at=item["created_at"], expires_at=item["expires_at"], window_seconds=item["timeout_seconds"],
    )  # fmt: skip
    decision = item["decision"]
    return Entry(
        request,
        State(item["status"]),
        item["on_dashboard"],
        _decision(decision, item) if decision else None,
        item["ended_reason"],
        item["updated_at"],
    )


def _decision(told: Mapping[str, Any], item: Mapping[str, Any]) -> Decision:
    known = {field.name for field in fields(Approver)}
    approver = Approver(
        told["approver"], told["approver_verified"], **{name: told[name] for name in known & told.keys()}
    )
    arguments = item["arguments"] if item["edited"] else None
    return Decision(told["decision"], approver, told["reason"], told["decided_at"], arguments, item["digest"])
