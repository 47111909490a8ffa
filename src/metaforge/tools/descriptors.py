"""stdin and stdout belong to the protocol: they are taken away from everything that is imported later."""

import os
from typing import BinaryIO


def take_stdin() -> BinaryIO:
    """Return the real stdin as a private stream, and point descriptor 0 at nothing."""
    private = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return os.fdopen(private, "rb")


def take_stdout() -> BinaryIO:
    """Return the real stdout as a private stream, and point descriptor 1 at stderr."""
    private = os.dup(1)
    os.dup2(2, 1)
    return os.fdopen(private, "wb", buffering=0)
