"""One process that writes revisions into a design record; `benchmarks.twin_writes` starts several.

`python -m benchmarks.twin_writer FOLDER SEED COUNT PROJECT` prints "ready", waits for a line, and prints how many
writes it had to repeat.
"""

import random
import sys
from pathlib import Path

from benchmarks.floors.revision_writer import FILL, ITEM_COUNT
from metaforge.core.errors import ToolError
from metaforge.store.blobs import BlobStore
from metaforge.store.database import Database
from metaforge.twin.model import Reader
from metaforge.twin.store import TwinStore


def open_twin(folder: Path) -> TwinStore:
    return TwinStore(Database("", folder), BlobStore(folder / "blobs"))


def prepare(folder: Path) -> str:
    """Make a project with some parts and return its id."""
    twin = open_twin(folder)
    with twin.change(author="owner") as change:
        project_id = change.create_project("Benchmark").project_id
    with twin.change(author="owner", project_id=project_id) as change:
        for number in range(ITEM_COUNT):
            change.define("cad_model", f"Part {number}", {})
    return project_id


def write(twin: TwinStore, project_id: str, number: int, author: str) -> bool:
    """Read a head, then write the revision after it if it is still the head."""
    with twin.read(Reader(project_id=project_id)) as view:
        head = view.item(f"CAD-PART-{number}").head_ref or ""
    try:
        with twin.change(author=author, project_id=project_id) as change:
            change.define("cad_model", f"Part {number}", {"fill": FILL}, item_key=head)
    except ToolError as fault:
        if fault.kind != "stale_revision":
            raise
        return False
    return True


def main() -> None:
    folder, seed, count, project_id = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    chance, repeated = random.Random(seed), 0
    twin = open_twin(folder)
    with twin.read() as view:
        view.seq()
    print("ready", flush=True)
    sys.stdin.readline()
    for _ in range(count):
        number = chance.randrange(ITEM_COUNT)
        while not write(twin, project_id, number, str(seed)):
            repeated += 1
    print(repeated)


if __name__ == "__main__":
    main()
