"""What the worker refuses, in words the caller can act on."""

import re

_MANGLED = re.compile(r"^\d+\w+ (?=\w)")


class Refusal(Exception):
    """Nothing was changed; the message says why.

    Args:
        message: what happened, to what, with a number.
        kind: a short stable name.
        fix: what to do next.
        where: the object concerned.
        mode: `design`, `input`, `environment` or `limit`.
    """

    def __init__(self, message: str, kind: str, fix: str = "", where: str = "", mode: str = "input") -> None:
        super().__init__(message)
        self.message, self.kind, self.fix, self.where, self.mode = message, kind, fix, where, mode


def words_of(fault: BaseException) -> str:
    """Return what an exception says, in one line.

    FreeCAD gives some of them a table instead of a text, and 1.0 begins others with a class name as compilers write it.
    """
    told = fault.args[0] if fault.args else ""
    text = told.get("sErrMsg") or told.get("swhat", "") if isinstance(told, dict) else str(fault)
    return _MANGLED.sub("", " ".join(str(text).split()))[:400] or type(fault).__name__
