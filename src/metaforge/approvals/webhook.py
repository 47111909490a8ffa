"""Telling a chat or a service elsewhere that a call waits for a person."""

import asyncio
import hashlib
import hmac
import re
from collections import deque
from typing import Any

import orjson

from metaforge.approvals.model import Entry
from metaforge.core.certificates import trusted_certificates
from metaforge.core.clock import utc_now
from metaforge.telemetry import logs
from metaforge.telemetry.redaction import redact_text

TIMEOUT_SECONDS = 5.0
TRIES = 3
SIGNATURE_HEADER = "X-MetaForge-Signature"
AT_ONCE_COUNT = 4
MAX_WAITING_COUNT = 256
"""Of more that are still to be told, the latest are not: an agent that asks without end must not fill the memory."""
_PAUSE_SECONDS = 1.0
_MARKUP = re.compile(r"[<>\[\]|@`]")
"""What makes a chat take text for a link, or call everybody."""
_SHOWN_CHARS = 100


class Webhook:
    """Posts one JSON object for each call that waits. It holds nothing up, and a failure is logged, never raised."""

    def __init__(self, url: str, secret: str = "", dashboard_url: str = "") -> None:
        """Remember where to tell; nothing is connected.

        Args:
            url: METAFORGE_APPROVAL_WEBHOOK_URL; empty tells nobody.
            secret: METAFORGE_APPROVAL_WEBHOOK_SECRET, which signs each body.
            dashboard_url: where people decide, for the link.
        """
        self._url = url
        self._secret = secret
        self._dashboard_url = dashboard_url
        self._to_tell: deque[Entry] = deque()
        self._telling: set[asyncio.Task[None]] = set()

    def announce(self, entry: Entry) -> None:
        """Tell of an entry in the background, a few at a time; from the event loop."""
        if not self._url:
            return
        if len(self._to_tell) >= MAX_WAITING_COUNT:
            logs.event("approval_webhook_failed", "warning", approval_id=entry.approval_id, problem="too many to tell")
            return
        self._to_tell.append(entry)
        if len(self._telling) < AT_ONCE_COUNT:
            task = asyncio.get_running_loop().create_task(self._tell_all())
            self._telling.add(task)
            task.add_done_callback(self._telling.discard)

    async def _tell_all(self) -> None:
        while self._to_tell:
            entry = self._to_tell.popleft()
            if utc_now() < entry.request.expires_at:
                await self.tell(entry)

    async def tell(self, entry: Entry) -> bool:
        """Tell of an entry now; return whether it was taken."""
        trust = await trusted_certificates()
        import httpx

        body = orjson.dumps(told_of(entry, self._dashboard_url))
        headers = {"Content-Type": "application/json"}
        if self._secret:
            headers[SIGNATURE_HEADER] = signature(self._secret, body)
        problem = ""
        async with httpx.AsyncClient(timeout=TIMEOUT_SECONDS, verify=trust) as client:
            for attempt in range(TRIES):
                try:
                    answer = await client.post(self._url, content=body, headers=headers)
                except (httpx.HTTPError, httpx.InvalidURL) as fault:
                    problem = type(fault).__name__
                else:
                    if answer.is_success:
                        return True
                    problem = f"HTTP {answer.status_code}"
                    if answer.is_client_error:
                        break  # it will not take it the second time either
                if attempt + 1 < TRIES:
                    await asyncio.sleep(_PAUSE_SECONDS * 2**attempt)
        # Addresses of webhooks are secrets themselves, so the log does not name it.
        logs.event("approval_webhook_failed", "warning", approval_id=entry.approval_id, problem=problem)
        return False

    async def close(self) -> None:
        """Give up what is still being told."""
        self._to_tell.clear()
        for task in self._telling:
            task.cancel()
        if self._telling:
            await asyncio.wait(self._telling)


def told_of(entry: Entry, dashboard_url: str) -> dict[str, Any]:
    """Return what is told of an entry: who asks for what and until when, without its arguments."""
    request = entry.request
    client = " ".join(filter(None, (request.caller.client_name, request.caller.client_version)))
    link = f"{dashboard_url}/approvals/{request.approval_id}" if dashboard_url else ""
    where = link or f"metaforge approvals show {request.approval_id}"
    title = redact_text(request.title or request.tool_id)
    asker = f"{_plain(request.caller.actor_id)}{f' ({_plain(client)})' if client else ''}"
    return {
        "text": f"{_plain(title)}: {request.tool_id} by {asker} waits for approval until {request.expires_at}. {where}",
        "event": "approval_waiting",
        "approval_id": request.approval_id,
        "tool_id": request.tool_id,
        "title": title,
        "summary": redact_text(request.summary),
        "project_id": request.project_id,
        "caller": request.caller.actor_id,
        "client": client,
        "route": request.route.value,
        "created_at": request.created_at,
        "expires_at": request.expires_at,
        "window_seconds": request.window_seconds,
        "url": link,
    }


def _plain(text: str) -> str:
    """Return what somebody calls himself as text that a chat shows and does nothing with."""
    shown = "".join(mark if mark.isprintable() else " " for mark in _MARKUP.sub("", text))
    return shown if len(shown) <= _SHOWN_CHARS else shown[:_SHOWN_CHARS] + "..."


def signature(secret: str, body: bytes) -> str:
    """Return how a body is signed: `sha256=` and the HMAC-SHA256 in hex."""
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
