"""Run a caller's script on the document, and turn what it leaves in `result` into plain data."""

import contextlib
import io
import json
import signal
import traceback
from collections.abc import Iterator
from typing import Any

from .edits import Edit
from .measuring import placement_of
from .refusals import Refusal, words_of

RESULT_CHARACTERS = 20_000
OUTPUT_CHARACTERS = 4_000
DEPTH = 12


class _Overtime(BaseException):
    """The script ran into its deadline. No Exception, so that a script's own `except` does not swallow it."""


def execute_code(edit: Edit, given: dict[str, Any]) -> None:
    import FreeCAD
    import Part

    document = edit.document
    names: dict[str, Any] = {
        "__name__": "__main__", "FreeCAD": FreeCAD, "App": FreeCAD, "Part": Part, "doc": document.doc,
        "obj": document.doc.getObject,
    }  # fmt: skip
    known = {each.Name for each in document.doc.Objects}
    printed = io.StringIO()
    document.watch.recording = True
    try:
        with contextlib.redirect_stdout(printed), _deadline(given["seconds"]):
            exec(compile(given["code"], "script", "exec"), names)
    except _Overtime:
        raise Refusal(
            f"The script was stopped after {given['seconds']:.0f} s", "script_too_long",
            "do less in one call, or allow more with timeout_seconds", mode="limit",
        ) from None  # fmt: skip
    except SystemExit:
        pass
    except Exception as fault:
        raise Refusal(
            _explained(fault), "script_failed", "mend the script; nothing it did was kept", mode="input"
        ) from fault
    finally:
        document.watch.recording = False
    if document.doc.Name not in FreeCAD.listDocuments():
        raise Refusal("The script closed the session's document", "document_closed", "open a new session")
    document.recompute()
    value, cut = plain_result(names.get("result"))
    more = {
        "result": value, "result_truncated": cut, "printed": printed.getvalue()[-OUTPUT_CHARACTERS:],
        "added": [each.Name for each in document.listed() if each.Name not in known],
        "pinned": sorted(document.pinned),
    }  # fmt: skip
    made: Any = names.get("result")
    there = isinstance(getattr(made, "Name", None), str) and document.doc.getObject(made.Name) is not None
    edit.result(made if there and hasattr(made, "TypeId") else None, **more)


@contextlib.contextmanager
def _deadline(seconds: float) -> Iterator[None]:
    def stop(*_: object) -> None:
        raise _Overtime

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _explained(fault: Exception) -> str:
    lines = [frame.lineno for frame in traceback.extract_tb(fault.__traceback__) if frame.filename == "script"]
    if isinstance(fault, SyntaxError) and fault.filename == "script":
        lines = [fault.lineno]
    where = f" in line {lines[-1]}" if lines and lines[-1] else ""
    return f"The script failed{where}: {type(fault).__name__}: {words_of(fault)}"


def plain_result(value: Any) -> tuple[Any, bool]:
    """Return a value as JSON data within the cap, and whether it was cut."""
    plain = _plain(value, DEPTH)
    text = json.dumps(plain)
    if len(text) <= RESULT_CHARACTERS:
        return plain, False
    return text[:RESULT_CHARACTERS], True


def _plain(value: Any, depth: int) -> Any:
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else repr(value)
    if depth <= 0:
        return repr(value)[:200]
    if isinstance(value, dict):
        return {str(key): _plain(each, depth - 1) for key, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(each, depth - 1) for each in value]
    return _freecad(value)


def _freecad(value: Any) -> Any:
    kind = type(value).__name__
    if kind == "Vector":
        return [value.x, value.y, value.z]
    if kind == "Placement":
        told = placement_of(value)
        return {"position_mm": told["position"], "axis": told["axis"], "angle_deg": told["angle"]}
    if kind == "Rotation":
        return {"axis": list(value.Axis), "angle_deg": value.Angle * 57.29577951308232}
    if kind == "BoundBox":
        return {"min_mm": [value.XMin, value.YMin, value.ZMin], "max_mm": [value.XMax, value.YMax, value.ZMax]}
    if kind == "Quantity":
        return value.Value
    if hasattr(value, "TypeId") and hasattr(value, "Label"):
        return {"obj_id": value.Name, "label": value.Label, "kind": value.TypeId}
    return repr(value)[:1000]
