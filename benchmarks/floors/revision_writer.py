"""The floor for revision writes: the same optimistic writes through the standard library's SQLite alone.

`python revision_writer.py FOLDER SEED COUNT` prints "ready", waits for a line, and prints how many writes it had to
repeat. `prepare` makes the database.
"""

import os
import random
import sqlite3
import sys
from pathlib import Path

ITEM_COUNT = 50
FILL = "x" * 400
SCHEMA = """
create table items (item_id integer primary key, key text not null unique, head integer not null);
create table revisions (node_id text primary key, item_id integer not null, revision integer not null,
                        body text not null, author text not null, unique (item_id, revision));
create table changelog (seq integer primary key autoincrement, key text not null, revision integer not null,
                        author text not null);
"""


def connect(folder: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(folder / "floor.db", timeout=30, isolation_level=None)
    connection.execute("pragma synchronous = full")
    return connection


def prepare(folder: Path) -> None:
    connection = connect(folder)
    connection.execute("pragma journal_mode = wal")
    connection.executescript(SCHEMA)
    connection.executemany(
        "insert into items (key, head) values (?, 0)", [(f"CAD-PART-{n}",) for n in range(ITEM_COUNT)]
    )
    connection.close()


def write(connection: sqlite3.Connection, key: str, seed: int) -> bool:
    """Read a head, then write the revision after it if it is still the head."""
    item_id, head = connection.execute("select item_id, head from items where key = ?", (key,)).fetchone()
    connection.execute("begin immediate")
    moved = connection.execute("update items set head = ? where item_id = ? and head = ?", (head + 1, item_id, head))
    if moved.rowcount == 0:
        connection.execute("rollback")
        return False
    connection.execute(
        "insert into revisions values (?, ?, ?, ?, ?)", (os.urandom(8).hex(), item_id, head + 1, FILL, str(seed))
    )
    connection.execute("insert into changelog (key, revision, author) values (?, ?, ?)", (key, head + 1, str(seed)))
    connection.execute("commit")
    return True


def main() -> None:
    folder, seed, count = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    chance, repeated = random.Random(seed), 0
    connection = connect(folder)
    print("ready", flush=True)
    sys.stdin.readline()
    for _ in range(count):
        key = f"CAD-PART-{chance.randrange(ITEM_COUNT)}"
        while not write(connection, key, seed):
            repeated += 1
    print(repeated)


if __name__ == "__main__":
    main()
