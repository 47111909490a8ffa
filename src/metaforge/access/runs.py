"""What the service caller needs to know of runs: the port that design flows will own, and two ways behind it."""

import asyncio
from collections.abc import Callable
from typing import Any, Protocol
from urllib.parse import quote

from metaforge.core.certificates import trusted_certificates
from metaforge.store.location import StoreUnavailable
from metaforge.twin.model import Run
from metaforge.twin.store import TwinStore

GATEWAY_SECONDS = 5.0


class RunsUnavailable(Exception):
    """It cannot be found out what a run is; the message says why."""


class Runs(Protocol):
    """Finds runs."""

    async def find(self, run_id: str) -> Run | None:
        """Return a run as it is now, `flow_approved` only where a person approved its version and it is still valid.

        Raises:
            RunsUnavailable: it cannot be found out.
        """
        ...


class StoreRuns:
    """Runs in the store of this server.

    Args:
        store: gives the store at the first use.
    """

    def __init__(self, store: Callable[[], TwinStore]) -> None:
        self._store = store

    async def find(self, run_id: str) -> Run | None:
        """Return a run as it is now; see `Runs.find`."""

        def look() -> Run | None:
            with self._store().read() as view:
                return view.run(run_id)

        try:
            return await asyncio.to_thread(look)
        except StoreUnavailable as fault:
            raise RunsUnavailable(fault.message) from None


class GatewayRuns:
    """Runs that another server keeps: `GET /v1/runs/{id}`, `GET /v1/design-flows/versions/{version}`.

    Args:
        url: of the gateway.
        key: what it asks for, where it asks for one.
    """

    def __init__(self, url: str, key: str = "") -> None:
        self._url = url.rstrip("/")
        self._headers = {"accept": "application/json"} | ({"authorization": f"Bearer {key}"} if key else {})

    async def find(self, run_id: str) -> Run | None:
        """Return a run as it is now; see `Runs.find`."""
        trust = await trusted_certificates()
        import httpx

        try:
            async with httpx.AsyncClient(timeout=GATEWAY_SECONDS, headers=self._headers, verify=trust) as http:
                told = await self._get(http, f"/v1/runs/{quote(run_id, safe='')}")
                if told is None or _text(told, "run_id", "id") != run_id:
                    return None
                version = _text(told, "flow_version", "flow_version_id")
                approved = await self._is_approved(http, version) if version else False
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as fault:
            raise RunsUnavailable(
                f"the gateway {self._url} cannot be reached: {fault or type(fault).__name__}"
            ) from None
        return Run(
            run_id, _text(told, "project_id"), _text(told, "state", "status"), version, approved,
            _text(told, "phase"), _text(told, "gate"),
        )  # fmt: skip

    async def _is_approved(self, http: Any, version: str) -> bool:
        told = await self._get(http, f"/v1/design-flows/versions/{quote(version, safe='')}")
        return told is not None and told.get("status") == "approved" and told.get("valid") is True

    async def _get(self, http: Any, path: str) -> dict[str, Any] | None:
        response = await http.get(self._url + path)
        if response.status_code == 404:
            return None
        if response.status_code != 200:
            raise RunsUnavailable(f"the gateway {self._url} answered {response.status_code} to {path}")
        try:
            told = response.json()
        except ValueError:
            raise RunsUnavailable(f"the gateway {self._url} answered no JSON to {path}") from None
        if not isinstance(told, dict):
            raise RunsUnavailable(f"the gateway {self._url} answered no JSON object to {path}")
        return told


def _text(told: dict[str, Any], *names: str) -> str:
    return next((value for name in names if isinstance(value := told.get(name), str) and value), "")
