"""The ledger and the waker that the settings ask for."""

from dataclasses import dataclass
from pathlib import Path

from metaforge.approvals.holders import Holder
from metaforge.approvals.ledger import SqlLedger
from metaforge.approvals.port import Ledger, Waker
from metaforge.approvals.waking import StoreWaker
from metaforge.settings import Settings
from metaforge.store.database import Database


@dataclass(frozen=True)
class Approvals:
    """What a server, a page or a command needs to hold calls and to decide them."""

    ledger: Ledger
    waker: Waker
    holder: Holder

    async def close(self) -> None:
        """Stop watching and hold nothing any more."""
        await self.waker.close()
        self.ledger.close()
        self.holder.close()


def open_approvals(settings: Settings, database: Database, home: Path) -> Approvals:
    """Return this process's way to the approvals; nothing is opened or connected before it is used.

    Args:
        settings: METAFORGE_GATEWAY_URL sends them to a gateway's ledger.
        database: the store, for those of this machine or team.
        home: METAFORGE_HOME.
    """
    holder = Holder(home)
    if settings.gateway_url:
        from metaforge.approvals.gateway_ledger import GatewayLedger
        from metaforge.approvals.gateway_waker import GatewayWaker

        key = settings.gateway_key or settings.api_key
        remote = GatewayLedger(settings.gateway_url, key, holder)
        return Approvals(remote, GatewayWaker(settings.gateway_url, key, remote), holder)
    waker = StoreWaker(database, home)
    ledger = SqlLedger(database, holder, nudge=waker.nudge, agents_may_decide=settings.allow_agent_human_authority)
    return Approvals(ledger, waker, holder)
