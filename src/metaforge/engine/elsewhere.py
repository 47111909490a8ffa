"""What an adapter that listens elsewhere can do: asked once over HTTP, kept, and asked anew in the background."""

import hashlib
import threading
import urllib.request
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path
from typing import Any

import orjson

from metaforge.core.errors import ToolUnavailable
from metaforge.tools.manifest import AdapterManifest

_ASK_SECONDS = 3.0
_MOST_BYTES = 16 << 20


def remote_manifest(adapter_id: str, url: str, cache: Path) -> AdapterManifest:
    """Return the manifest of a remote adapter. The first look waits for it; later ones start with what it said last.

    Args:
        adapter_id: what its tools' ids begin with.
        url: where it listens.
        cache: folder for what it said.

    Raises:
        ToolUnavailable: it does not answer, or is another adapter.
    """
    kept = cache / f"remote-{adapter_id}-{hashlib.sha256(url.encode()).hexdigest()[:16]}.json"
    try:
        known = AdapterManifest.from_json(orjson.loads(kept.read_bytes()))
    except (OSError, ValueError, KeyError, TypeError):
        raw = ask_manifest(adapter_id, url)
        _keep(kept, raw)
        return AdapterManifest.from_json(raw)
    threading.Thread(target=_renew, args=(adapter_id, url, kept), daemon=True, name=f"ask {adapter_id}").start()
    return known


def ask_manifest(adapter_id: str, url: str) -> dict[str, Any]:
    """Ask a remote adapter for its tools. Blocking, three seconds at the most.

    Raises:
        ToolUnavailable: it does not answer, or is another adapter.
    """
    base = url.rstrip("/").removesuffix("/rpc").removesuffix("/mcp")
    try:
        listed = _ask(base, "tool/list")["tools"]
        version = str(_ask(base, "health/check").get("version") or "")
        strangers = {str(entry.get("adapter_id")) for entry in listed} - {adapter_id}
    except (OSError, HTTPException, ValueError, KeyError, TypeError, AttributeError) as fault:
        raise ToolUnavailable(
            f"{adapter_id} at {base} does not say what tools it has: {fault}", reason=str(fault), install=""
        ) from None
    if strangers:
        raise ToolUnavailable(
            f"the adapter at {base} calls itself {', '.join(sorted(strangers))}, not {adapter_id}: name its table so",
            reason="another adapter listens there",
            install="",
        )
    return {"adapter_id": adapter_id, "version": version, "tools": listed}


def _ask(base: str, method: str) -> dict[str, Any]:
    body = orjson.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": {}})
    headers = {"content-type": "application/json", "accept": "application/json"}
    request = urllib.request.Request(f"{base}/rpc", body, headers)
    # Adapters are reached as the calls reach them: past any proxy.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=_ASK_SECONDS) as response:
        answer = orjson.loads(response.read(_MOST_BYTES))
    if "error" in answer:
        raise ValueError(str(answer["error"].get("message")))
    result: dict[str, Any] = answer["result"]
    return result


def _renew(adapter_id: str, url: str, kept: Path) -> None:
    with suppress(ToolUnavailable):
        _keep(kept, ask_manifest(adapter_id, url))


def _keep(path: Path, raw: dict[str, Any]) -> None:
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_suffix(".new")
        fresh.write_bytes(orjson.dumps(raw))
        fresh.replace(path)
