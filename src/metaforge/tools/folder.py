"""A folder that should be empty: looked at after every call, so the look has to be cheap."""

import os
import time
from pathlib import Path

_SETTLED_NS = 50_000_000
"""A folder's time is as coarse as the kernel's tick: a change within the same tick would leave it as it was."""


class EmptyFolder:
    """Tells whether anything was made in a folder.

    Reading a folder costs several times as much as asking for its time of change. Once it was seen empty well after
    its last change, the same time means that it is empty still.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._text = str(path)
        self._empty_at_ns = -1

    def is_empty(self) -> bool:
        """Return whether nothing is in the folder.

        Raises:
            FileNotFoundError: it is gone.
        """
        changed_ns = os.stat(self._text).st_mtime_ns
        if changed_ns == self._empty_at_ns:
            return True
        with os.scandir(self._text) as entries:
            empty = next(entries, None) is None
        if empty and time.time_ns() - changed_ns > _SETTLED_NS:
            self._empty_at_ns = changed_ns
        return empty
