"""Remove a server's containers when it is gone, however it went: `python -I -S container_reaper.py ENGINE LABEL LOCK`.

Runs beside the server as a process of its own that waits for the end of its stdin, which only the server holds open.
Killing a client of podman or docker ends no container, so nobody else would. Standard library only, nothing of this
package: it lives as long as the server does.
"""

import contextlib
import os
import signal
import subprocess
import sys
import time

_ASK_SECONDS = 20.0
_ROUNDS = 12
_PAUSE_SECONDS = 0.5
_QUIET_ROUNDS = 4
"""So many times in a row nothing must be left: a container may be about to be made when its server dies."""


def reap(engine: str, label: str) -> bool:
    """Remove every container with a label, until none comes any more. Returns whether that came to pass."""
    quiet = 0
    for _ in range(_ROUNDS):
        told = _ask(engine, "ps", "--all", "--quiet", "--filter", f"label={label}")
        if found := (told or "").split():
            quiet = 0
            # docker has no such time: its force kills at once.
            at_once = ["--time", "0"] if "podman" in engine.rpartition("/")[2] else []
            _ask(engine, "rm", "--force", *at_once, *found)
        elif told is not None:
            quiet += 1
            if quiet >= _QUIET_ROUNDS:
                return True
        time.sleep(_PAUSE_SECONDS)
    return False


def _ask(*command: str) -> str | None:
    """Run a command; return what it said, or None when it failed."""
    try:
        asked = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=_ASK_SECONDS, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return None
    return None if asked.returncode else asked.stdout


def main(engine: str, label: str, lock: str) -> None:
    # A terminal's Ctrl-C goes to the server, which then lets go of our stdin.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    while sys.stdin.buffer.read(4096):
        pass
    if reap(engine, label):
        with contextlib.suppress(OSError):
            os.unlink(lock)  # else the next server looks after it


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3])
