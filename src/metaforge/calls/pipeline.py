"""Compose stages around the tool, outermost first."""

from collections.abc import Sequence
from functools import partial, reduce

from metaforge.calls.call import Proceed, Stage


def compose(stages: Sequence[Stage], innermost: Proceed) -> Proceed:
    """`compose([a, b], run)` calls a, which calls b, which calls run."""

    def wrap(inner: Proceed, stage: Stage) -> Proceed:
        return partial(stage, proceed=inner)

    return reduce(wrap, reversed(stages), innermost)
