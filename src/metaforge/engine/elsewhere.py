"""What an adapter that listens elsewhere can do: asked over HTTP in the background, and kept for the next start."""

import hashlib
import threading
import time
import urllib.request
from collections.abc import Callable, Sequence
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path
from typing import Any

import orjson

from metaforge.core.errors import ToolUnavailable
from metaforge.engine.breaker import Breaker
from metaforge.tools.manifest import AdapterManifest

_ASK_SECONDS = 3.0
_MOST_BYTES = 16 << 20
_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 5.0, 60.0

Ask = Callable[[str, str, str], dict[str, Any]]
"""Asks an adapter, by id, address and key, for its manifest."""


class Introduction:
    """Learns from an adapter what tools it has: from what it said last, else by asking until it answers.

    Nothing waits for it: it asks in a thread of its own, and asks again, after a pause that grows, when somebody looks
    whether it has answered.

    Args:
        adapter_id: what its tools' ids begin with.
        addresses: where it listens; the first that answers speaks for all.
        cache: folder for what it said.
        key: what it wants to be shown; empty for none.
        ask: asks one address for a manifest, blocking; raises ToolUnavailable.
    """

    def __init__(
        self,
        adapter_id: str,
        addresses: Sequence[str],
        cache: Path,
        key: str = "",
        *,
        ask: "Ask | None" = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._adapter_id = adapter_id
        self._addresses = tuple(addresses)
        self._key = key
        self._ask_one = ask or ask_manifest
        named = " ".join(self._addresses)
        self._kept = cache / f"remote-{adapter_id}-{hashlib.sha256(named.encode()).hexdigest()[:16]}.json"
        self._breaker = Breaker(
            threshold=1, pause_seconds=_PAUSE_SECONDS, longest_pause_seconds=_LONGEST_PAUSE_SECONDS, clock=clock
        )
        self._manifest = _read(self._kept)
        self.problem = f"{adapter_id} at {named} has not said yet what tools it has"
        self._asking: threading.Thread | None = None
        self._ask()

    @property
    def retry_after_seconds(self) -> float:
        """When it is asked again."""
        return round(self._breaker.seconds_left, 1) or 1.0

    def manifest(self) -> AdapterManifest | None:
        """Return what is known of it; where nothing is, see that it is being asked."""
        if self._manifest is None and not self._is_asking() and self._breaker.admit():
            self._ask()
        return self._manifest

    def wait(self, seconds: float) -> AdapterManifest | None:
        """Return what is known of it, once it has answered or the time is up."""
        if self._manifest is None and self._asking is not None:
            self._asking.join(max(0.0, seconds))
        return self._manifest

    def _is_asking(self) -> bool:
        return self._asking is not None and self._asking.is_alive()

    def _ask(self) -> None:
        self._asking = threading.Thread(target=self._learn, daemon=True, name=f"ask {self._adapter_id}")
        self._asking.start()

    def _learn(self) -> None:
        problems = []
        for address in self._addresses:
            try:
                raw = self._ask_one(self._adapter_id, address, self._key)
                manifest = AdapterManifest.from_json(raw)
            except (ToolUnavailable, KeyError, TypeError, ValueError) as fault:
                problems.append(fault.message if isinstance(fault, ToolUnavailable) else f"{address}: {fault}")
                continue
            _keep(self._kept, raw)
            self._breaker.succeed()
            self._manifest = manifest
            return
        self.problem = "; ".join(problems)
        self._breaker.fail(self.problem)


def ask_manifest(adapter_id: str, url: str, key: str = "") -> dict[str, Any]:
    """Ask a remote adapter for its tools. Blocking, three seconds at the most for each of two questions.

    Raises:
        ToolUnavailable: it does not answer, or is another adapter.
    """
    base = url.rstrip("/").removesuffix("/rpc").removesuffix("/mcp")
    try:
        return introduced(adapter_id, base, _put(base, "tool/list", key), _put(base, "health/check", key))
    except (OSError, HTTPException, ValueError, KeyError, TypeError, AttributeError) as fault:
        raise ToolUnavailable(
            f"{adapter_id} at {base} does not say what tools it has: {fault}", reason=str(fault), install=""
        ) from None


def introduced(adapter_id: str, place: str, listed: dict[str, Any], health: dict[str, Any]) -> dict[str, Any]:
    """Return the manifest that an adapter's answers to `tool/list` and `health/check` make.

    Raises:
        ToolUnavailable: it is another adapter.
        KeyError, TypeError, AttributeError: they are no such answers.
    """
    tools, version = listed["tools"], str(health.get("version") or "")
    strangers = {str(entry.get("adapter_id")) for entry in tools if isinstance(entry, dict)} - {adapter_id}
    if strangers:
        raise ToolUnavailable(
            f"the adapter at {place} calls itself {', '.join(sorted(strangers))}, not {adapter_id}: name its table so",
            reason="another adapter listens there",
            install="",
        )
    return {"adapter_id": adapter_id, "version": version, "tools": tools}


def _put(base: str, method: str, key: str) -> dict[str, Any]:
    body = orjson.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": {}})
    headers = {"content-type": "application/json", "accept": "application/json"}
    if key:
        headers["authorization"] = f"Bearer {key}"
    request = urllib.request.Request(f"{base}/rpc", body, headers)
    # Adapters are reached as the calls reach them: past any proxy, and nowhere that an answer sends the key to.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirect)
    with opener.open(request, timeout=_ASK_SECONDS) as response:
        answer = orjson.loads(response.read(_MOST_BYTES))
    if "error" in answer:
        raise ValueError(str(answer["error"].get("message")))
    result: dict[str, Any] = answer["result"]
    return result


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


def _read(path: Path) -> AdapterManifest | None:
    try:
        return AdapterManifest.from_json(orjson.loads(path.read_bytes()))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _keep(path: Path, raw: dict[str, Any]) -> None:
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_suffix(".new")
        fresh.write_bytes(orjson.dumps(raw))
        fresh.replace(path)
