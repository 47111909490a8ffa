"""A CAD box and its STEP file with bare CadQuery, first and then warm: `box.py FOLDER COUNT`. Prints milliseconds."""

import json
import sys
import time
from pathlib import Path


def main() -> None:
    started = time.perf_counter()
    import cadquery as cq

    folder, count = Path(sys.argv[1]), int(sys.argv[2])
    milliseconds: list[float] = []
    for number in range(count):
        part = cq.Workplane("XY").box(50 + number, 30, 10)
        cq.exporters.export(part, str(folder / f"bare-{number}.step"))
        now = time.perf_counter()
        milliseconds.append((now - started) * 1000)
        started = now
    print(json.dumps(milliseconds))


if __name__ == "__main__":
    main()
