"""A launch that is cancelled, at whatever step, leaves no process and closes every descriptor once."""

import asyncio
import os
from pathlib import Path

import psutil
import uvloop

from metaforge.engine.launch import CommandLauncher

STEPS = 12


def test_cancelled_at_any_step_of_the_servers_own_loop(tmp_path: Path) -> None:
    async def launch_and_cancel() -> list[str]:
        launcher = CommandLauncher(("cat",), tmp_path, os.environ)
        ended: list[str] = []
        for steps in range(STEPS):
            launching = asyncio.create_task(launcher.launch(lambda chunk: None, lambda: None))
            for _ in range(steps):
                await asyncio.sleep(0)
            launching.cancel()
            try:
                box = await launching
            except asyncio.CancelledError:
                ended.append("cancelled")
            else:
                await box.kill()
                ended.append("launched")
        return ended

    uvloop.run(launch_and_cancel())  # what a first loop keeps open for itself
    open_before = len(os.listdir("/proc/self/fd"))
    ended = uvloop.run(launch_and_cancel())
    assert ended[0] == "cancelled"
    assert ended.count("cancelled") > 2
    assert len(os.listdir("/proc/self/fd")) == open_before
    assert not [child for child in psutil.Process().children(recursive=True) if child.name() == "cat"]
