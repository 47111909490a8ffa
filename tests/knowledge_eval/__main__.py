"""Measure knowledge search on the questions beside this file: `make eval`, or `python tests/knowledge_eval`.

Both halves are scored, and told apart. Weights and thresholds are chosen on the tuning half alone; of the held-out half
nothing but its figures is printed, ever. The exit status is 1 when a bound is missed.
"""

import argparse
import os
import sys

os.environ.setdefault("OMP_NUM_THREADS", "2")

from asking import ask, filled_library, refusing_nothing
from questions import read_questions, split
from scores import Asked, report, score, table


def main() -> int:
    parser = argparse.ArgumentParser(prog="python tests/knowledge_eval", description=__doc__)
    parser.add_argument("--misses", action="store_true", help="list what went wrong in the tuning half")
    parser.add_argument("--words-alone", action="store_true", help="as without the embedder")
    parser.add_argument("--database-url", default="", help="measure on Postgres, in a database that may be written to")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    tuning, held_out = split(read_questions())
    with filled_library(database_url=options.database_url, has_embedder=not options.words_alone) as (
        library,
        passage_count,
        prose_count,
    ):
        answers = {"tuning": ask(library, tuning), "held out": ask(library, held_out)}
        with refusing_nothing():
            ordered = {"tuning": ask(library, tuning), "held out": ask(library, held_out)}
        problem = library.problem
    halves = {half: score(answers[half], ordered[half]) for half in answers}
    missed = [f"{half}, {miss}" for half, scores in halves.items() for each in scores for miss in each.misses()]
    if options.json:
        print(report(halves, passage_count, missed))
        return 1 if missed else 0
    asked = len(tuning) + len(held_out)
    print(f"{asked} questions on {passage_count} passages, {prose_count} of them prose. {problem}\n")
    print("\n\n".join(table(half, scores) for half, scores in halves.items()))
    if options.misses:
        print("\n" + "\n".join(line for each in answers["tuning"] for line in _told(each)))
    print("\n" + ("\n".join(f"MISSED {each}" for each in missed) or "every bound is kept"))
    return 1 if missed else 0


def _told(asked: Asked) -> list[str]:
    """Say what was wrong with an answer: the first three passages that came, where the right one did not."""
    wrong = bool(asked.hits) if not asked.question.answers else asked.rank is None or asked.rank > 3
    if not wrong:
        return []
    hits = [f"      {hit.similarity:.3f} {hit.source} > {hit.heading.rpartition(' > ')[2]}" for hit in asked.hits[:3]]
    return [f"{asked.question.id} {asked.question.query} (rank {asked.rank})", *(hits or ["      nothing"])]


if __name__ == "__main__":
    sys.exit(main())
