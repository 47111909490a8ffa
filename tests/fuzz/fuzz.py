"""Fuzz one parser, guided by which branches its code takes: `python fuzz.py TARGET SECONDS FOLDER [SEED]`.

What crashes it, or takes longer than ten seconds, is left in the folder, and the exit status is not 0.
"""

import sys
from pathlib import Path

import atheris

HERE = Path(__file__).parent
HANG_SECONDS = 10
MEMORY_MB = 2048
LONGEST_BYTES = 4096


def main(name: str, seconds: str, folder: Path, seed: str = "0") -> None:
    sys.path[:0] = [str(HERE), str(HERE.parent / "mcp")]
    from fuzz_targets import TARGETS

    with atheris.instrument_imports(include=["metaforge"], enable_loader_override=False):
        target = TARGETS[name]()
    corpus = folder / "corpus"
    corpus.mkdir(exist_ok=True)
    for number, content in enumerate(target.seeds):
        (corpus / f"seed-{number}").write_bytes(content)
    # Where its first seed is refused, a fuzzer would stand at the door.
    target.run(target.seeds[0])

    def once(data: bytes) -> None:
        try:
            target.run(data)
        except target.answers:
            return

    options = [
        f"-max_total_time={seconds}", f"-seed={seed}", f"-timeout={HANG_SECONDS}", f"-rss_limit_mb={MEMORY_MB}",
        f"-max_len={LONGEST_BYTES}", f"-artifact_prefix={folder}/", "-print_final_stats=1", "-verbosity=1",
    ]  # fmt: skip
    atheris.Setup([sys.argv[0], *options, str(corpus)], once)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), *sys.argv[4:])
