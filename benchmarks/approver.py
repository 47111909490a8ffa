"""One process that decides what others wait for; `benchmarks.approvals` starts it.

`python -m benchmarks.approver URL HOME [silent]` approves the id on each line of its input and prints when it began
to, as a reading of the machine's monotonic clock. `silent`: its nudges are lost.
"""

import sys
import time
from pathlib import Path

from metaforge.approvals.holders import Holder
from metaforge.approvals.ledger import SqlLedger
from metaforge.approvals.model import Approver
from metaforge.approvals.waking import StoreWaker
from metaforge.store.database import Database


def main() -> None:
    url, home, *silent = sys.argv[1:]
    database = Database(url, Path(home))
    waker = StoreWaker(database, Path(home))
    ledger = SqlLedger(database, Holder(Path(home)), nudge=(lambda: None) if silent else waker.nudge)
    ledger.entries()
    print("ready", flush=True)
    for line in sys.stdin:
        began = time.monotonic()
        ledger.decide(line.strip(), "approve", Approver("bench", False, "cli"))
        print(began, flush=True)


if __name__ == "__main__":
    main()
