"""What the worker refuses, in words the caller can act on."""


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
