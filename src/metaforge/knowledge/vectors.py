"""The vectors of a project's passages, in memory, as one matrix that follows the store by its change number."""

import threading
from collections import OrderedDict
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from metaforge.knowledge import rows
from metaforge.knowledge.model import Source
from metaforge.store.transaction import Transaction

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SEGMENT_ROWS = 4096
"""Rows are added in pieces of this size: growing one large array would need twice its memory."""
_KEPT_BYTES = 192 << 20
"""Of the matrices of all projects together; the one that is asked is always kept."""
_ROWS_AT_ONCE = 1000


@dataclass
class Shelf:
    """What is kept of one project: its sources, and one row for each passage that has a vector."""

    project_id: str
    dim: int
    seq: int = 0
    reload_seq: int = 0
    last_id: int = 0
    count: int = 0
    sources: dict[str, Source] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)
    """Of each source, in `owners`."""
    ids: "list[NDArray[Any]]" = field(default_factory=list)
    owners: "list[NDArray[Any]]" = field(default_factory=list)
    segments: "list[NDArray[Any]]" = field(default_factory=list)
    counts: dict[tuple[str, ...], int] = field(default_factory=dict)
    """How many passages have a word, as far as it was asked."""

    @property
    def size_bytes(self) -> int:
        return sum(each.nbytes for each in self.segments)

    def nearest(self, vector: "NDArray[Any]", allowed: Collection[str], limit: int) -> dict[int, float]:
        """Return the passages that lie nearest to a vector: id to cosine.

        Args:
            allowed: ids of the sources that may answer.
        """
        import numpy as np

        if not self.count:
            return {}
        mask = np.zeros(len(self.numbers), bool)
        mask[[self.numbers[each] for each in allowed if each in self.numbers]] = True
        found: list[tuple[float, int]] = []
        for number, cosines in enumerate(self._cosines(vector)):
            cosines = np.where(mask[self.owners[number][: len(cosines)]], cosines, -2.0)
            best = np.argpartition(cosines, -limit)[-limit:] if len(cosines) > limit else np.arange(len(cosines))
            found += [(float(cosines[row]), int(self.ids[number][row])) for row in best if cosines[row] > -2.0]
        found.sort(key=lambda each: (-each[0], each[1]))
        return {passage_id: cosine for cosine, passage_id in found[:limit]}

    def cosines_of(self, vector: "NDArray[Any]", passage_ids: Collection[int]) -> dict[int, float]:
        """Return the cosines of passages, as far as they have a vector."""
        import numpy as np

        found: dict[int, float] = {}
        wanted = np.asarray(sorted(passage_ids), np.int64)
        for number, filled in enumerate(self._filled()):
            ids = self.ids[number][:filled]
            places = np.searchsorted(ids, wanted)
            for passage_id, place in zip(wanted, places, strict=True):
                if place < filled and ids[place] == passage_id:
                    found[int(passage_id)] = float(self.segments[number][place] @ vector)
        return found

    def _cosines(self, vector: "NDArray[Any]") -> "Any":
        for segment, filled in zip(self.segments, self._filled(), strict=True):
            yield segment[:filled] @ vector

    def _filled(self) -> list[int]:
        left = self.count
        return [min(_SEGMENT_ROWS, left - start) for start in range(0, left, _SEGMENT_ROWS)]

    def follow(self, transaction: Transaction, model_id: str) -> None:
        """Bring it to the state that a transaction sees."""
        seq, reload_seq = rows.state(transaction, self.project_id)
        if seq == self.seq:
            return
        if reload_seq > self.seq:
            self.last_id = self.count = 0
            self.numbers, self.ids, self.owners, self.segments = {}, [], [], []
        self.counts = {}
        self.sources = {each.source_id: each for each in rows.sources(transaction, self.project_id)}
        if self.dim:
            self._append_new(transaction, model_id)
        self.seq, self.reload_seq = seq, reload_seq

    def _append_new(self, transaction: Transaction, model_id: str) -> None:
        while True:
            new = transaction.rows(
                "select vectors.passage_id, passages.source_id, vectors.vector from knowledge_vectors as vectors "
                "join knowledge_passages as passages on passages.passage_id = vectors.passage_id "
                "where vectors.project_id = ? and vectors.model_id = ? and vectors.passage_id > ? "
                "order by vectors.passage_id limit ?",
                self.project_id, model_id, self.last_id, _ROWS_AT_ONCE,
            )  # fmt: skip
            for passage_id, source_id, content in new:
                self._append(passage_id, source_id, content)
            if len(new) == _ROWS_AT_ONCE and not transaction.postgres:
                transaction.run("pragma shrink_memory")  # these pages are not read again
            if len(new) < _ROWS_AT_ONCE:
                return

    def _append(self, passage_id: int, source_id: str, content: bytes) -> None:
        import numpy as np

        row = self.count % _SEGMENT_ROWS
        if not row:
            self.segments.append(np.zeros((_SEGMENT_ROWS, self.dim), np.float32))
            self.ids.append(np.zeros(_SEGMENT_ROWS, np.int64))
            self.owners.append(np.zeros(_SEGMENT_ROWS, np.int32))
        vector = np.frombuffer(content, "<f4")
        if len(vector) == self.dim:
            self.segments[-1][row] = vector
        self.ids[-1][row] = passage_id
        self.owners[-1][row] = self.numbers.setdefault(source_id, len(self.numbers))
        self.last_id = passage_id
        self.count += 1


class Shelves:
    """The shelves of the projects that were asked lately. One thread at a time.

    Args:
        model_id: whose vectors; empty where there is no embedder.
        dim: of its vectors; 0 keeps none.
    """

    def __init__(self, model_id: str, dim: int) -> None:
        self.lock = threading.RLock()
        self._model_id = model_id
        self._dim = dim
        self._shelves: OrderedDict[str, Shelf] = OrderedDict()

    def of(self, transaction: Transaction, project_id: str) -> Shelf:
        """Return a project's shelf as the transaction sees it; hold the lock while it is used."""
        shelf = self._shelves.get(project_id)
        if shelf is None:
            shelf = self._shelves[project_id] = Shelf(project_id, self._dim)
        self._shelves.move_to_end(project_id)
        shelf.follow(transaction, self._model_id)
        while len(self._shelves) > 1 and sum(each.size_bytes for each in self._shelves.values()) > _KEPT_BYTES:
            self._shelves.popitem(last=False)
        return shelf
