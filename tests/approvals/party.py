"""A process that takes part in a test: it waits for one line, does one thing with the ledger, and prints what came.

python party.py URL HOME WHAT APPROVAL_ID [MORE]
"""

import asyncio
import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from metaforge.approvals.faults import NotDecidable
from metaforge.approvals.holders import Holder
from metaforge.approvals.ledger import SqlLedger
from metaforge.approvals.model import Approver
from metaforge.approvals.waking import StoreWaker
from metaforge.core.errors import MetaForgeError
from metaforge.store.database import Database


def main() -> None:
    url, home, what, approval_id, *more = sys.argv[1:]
    database = Database(url, Path(home))
    database.prepare()
    waker = StoreWaker(database, Path(home))
    ledger = SqlLedger(database, Holder(Path(home)), nudge=waker.nudge)
    print("ready", flush=True)
    sys.stdin.readline()
    try:
        print(json.dumps(_do(ledger, waker, what, approval_id, more)), flush=True)
    except MetaForgeError as fault:
        print(json.dumps([type(fault).__name__, fault.data.get("code", "")]), flush=True)
    if what == "hold":
        sys.stdin.readline()


def _do(ledger: SqlLedger, waker: StoreWaker, what: str, approval_id: str, more: list[str]) -> object:
    if what == "decide":  # `more` are verdicts, each given by a thread of its own
        with ThreadPoolExecutor(len(more)) as pool:
            return list(pool.map(lambda verdict: _decide(ledger, approval_id, verdict), more))
    if what == "claim":
        ledger.claim(approval_id, more[0])
        return ["done", what]
    if what == "hold":  # `more` is the request of a call that this process waits for
        from metaforge.approvals.wire import request_from

        return ledger.open(request_from(json.loads(more[0]))).holder
    if what == "wait":
        asyncio.run(waker.wait(approval_id, time.monotonic() + 30))
        return ledger.get(approval_id).state.value
    raise SystemExit(f"unknown: {what}")


def _decide(ledger: SqlLedger, approval_id: str, verdict: str) -> str:
    try:
        ledger.decide(approval_id, verdict, Approver("person", True, "dashboard"))  # type: ignore[arg-type]
    except NotDecidable as refused:
        return str(refused.data["code"])
    return verdict


if __name__ == "__main__":
    main()
