"""`execute_script`: run a caller's CadQuery script in this process, which serves no other call afterwards.

The process is the sandbox; nothing here tries to be one.
"""

import hashlib
import linecache
import os
import signal
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import PurePosixPath
from types import FrameType
from typing import Any

import cadquery as cq

from metaforge.adapters.cadquery import results
from metaforge.adapters.cadquery.boolean import solids_warning
from metaforge.adapters.cadquery.captured import captured_stdout, read_captured
from metaforge.adapters.cadquery.kernel_errors import KERNEL_ERRORS, kernel_refused, tells_kernel_errors
from metaforge.adapters.cadquery.load import load
from metaforge.adapters.cadquery.measure import facts
from metaforge.adapters.cadquery.model import Colour, Part, compound, model_of
from metaforge.adapters.cadquery.properties import part_info
from metaforge.adapters.cadquery.show import draw
from metaforge.adapters.cadquery.versions import programs
from metaforge.adapters.cadquery.watch import NAME, Watch, script_line, watched
from metaforge.adapters.cadquery.write import write_step
from metaforge.core.errors import FailureMode, ToolError, ToolTimedOut
from metaforge.engineering.solid_guard import SolidFacts, check_solid
from metaforge.tools.context import Answer, ToolContext


class _TimeIsUp(BaseException):
    """Raised in the script, past any `except Exception` of its own."""


@dataclass(frozen=True)
class Run:
    """What a script left behind."""

    parts: tuple[Part, ...]
    is_assembly: bool
    stdout: str
    watch: Watch


@tells_kernel_errors
def execute(
    ctx: ToolContext,
    script: str,
    output_path: str | None,
    compare_to: str | None,
    timeout_seconds: float,
    picture: bool,
) -> Answer[results.ScriptResult]:
    """Run a script and keep the part it makes."""
    path = output_path or f"out/script-{hashlib.sha256(script.encode()).hexdigest()[:10]}.step"
    run = run_script(ctx, script, PurePosixPath(path).stem, min(timeout_seconds, ctx.timeout_seconds))
    model = model_of(run.parts, PurePosixPath(path).stem)
    measured = facts(model.shape)
    if run.watch.emptied_by and measured.faces_count == 0:
        raise _emptied(run, script)
    try:
        warnings = check_solid(measured, "script", expected_solids_count=None)
    except ToolError as fault:
        fault.data["stdout"] = run.stdout
        raise
    if measured.solids_count > 1 and not run.is_assembly:
        warnings.append(solids_warning(model.shape, "script"))
    deltas, notes = _deltas(ctx, path, compare_to, measured)
    files = [write_step(ctx, model, path)]
    return Answer(
        results.ScriptResult(
            cad_file=path,
            script_text=script,
            volume_mm3=measured.volume_mm3,
            surface_area_mm2=measured.area_mm2,
            bounding_box_mm=results.bounding_box(measured),
            solids_count=measured.solids_count,
            parts=part_info(model.parts[:60]),
            stdout=run.stdout,
            deltas=deltas,
        ),
        summary=f"{path}: {results.size_words(measured)}, volume {measured.volume_mm3:.6g} mm3, "
        f"area {measured.area_mm2:.6g} mm2, {measured.solids_count} solid(s), valid.{_delta_words(deltas)}",
        warnings=(*warnings, *notes),
        next_step=f"cadquery.get_properties input_file={path} lists faces; give the next revision compare_to={path}",
        pictures=draw(ctx, model, path, measured, files) if picture else (),
        files=tuple(files),
        programs=programs(),
    )


def run_script(ctx: ToolContext, script: str, name: str, timeout_seconds: float) -> Run:
    """Run a script with the workspace as current directory.

    Raises:
        ToolError: it does not compile, raises, or leaves no shape; the message names its line.
        ToolTimedOut: it ran longer than `timeout_seconds`.
    """
    shown: list[Any] = []
    scope: dict[str, Any] = {
        "__name__": "__main__", "__file__": NAME, "cq": cq, "cadquery": cq,
        "show_object": lambda thing, *_, **__: shown.append(thing), "debug": lambda *_, **__: None,
    }  # fmt: skip
    linecache.cache[NAME] = (len(script), None, script.splitlines(keepends=True), NAME)
    store = ctx.scratch / "stdout.txt"
    previous = os.getcwd()
    with watched() as watch:
        try:
            with captured_stdout(store), _deadline(timeout_seconds):
                code = compile(script, NAME, "exec")
                os.chdir(ctx.workspace)
                exec(code, scope)
        except _TimeIsUp as fault:
            raise _timed_out(fault, script, timeout_seconds, read_captured(store)) from None
        except (Exception, SystemExit) as fault:  # noqa: BLE001 - a caller's script may raise anything
            printed = read_captured(store)
            told = _told(fault, script, watch, printed)
            if printed.strip():
                told.message += f"\nPrinted before: {printed.strip()[-600:]}"
            raise told from None
        finally:
            os.chdir(previous)
    printed = read_captured(store)
    made = scope.get("result")
    if made is None and shown:
        made = shown[0] if len(shown) == 1 else shown
    if made is None:
        raise ToolError(
            f"The script ran but left no part: no variable 'result' and no show_object(...). {_candidates(scope)}",
            kind="no_result", where="script", fix="assign the part to 'result'", stdout=printed,
        )  # fmt: skip
    parts = tuple(_parts(made, name))
    if not parts:
        raise ToolError(
            f"'result' is {type(made).__name__} and holds no shape", kind="no_result", where="result",
            fix="assign a Workplane, Shape, Assembly, or a list of them to 'result'", stdout=printed,
        )  # fmt: skip
    return Run(parts, isinstance(made, cq.Assembly | list | tuple | dict), printed, watch)


@contextmanager
def _deadline(seconds: float) -> Iterator[None]:
    """Interrupt Python code after so long; time inside the kernel is the engine's to limit."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(_: int, frame: FrameType | None) -> None:
        raise _TimeIsUp(script_line(frame))

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _parts(made: Any, name: str, colour: Colour | None = None) -> Iterator[Part]:
    """Turn what a script made into placed parts."""
    if isinstance(made, cq.Assembly):
        for shape, path, location, own in made:
            tint = tuple(round(each, 6) for each in own.toTuple()[:3]) if own else colour
            yield Part(path.rsplit("/", 1)[-1], shape.moved(location).wrapped, tint)
    elif isinstance(made, cq.Workplane):
        shapes = [each.wrapped for each in made.vals() if isinstance(each, cq.Shape)]
        if shapes:
            yield Part(name, shapes[0] if len(shapes) == 1 else compound(shapes), colour)
    elif isinstance(made, cq.Shape):
        yield Part(name, made.wrapped, colour)
    elif isinstance(made, dict):
        for key, each in made.items():
            yield from _parts(each, str(key), colour)
    elif isinstance(made, list | tuple):
        for number, each in enumerate(made, 1):
            yield from _parts(each, f"{name}-{number}", colour)


def _candidates(scope: dict[str, Any]) -> str:
    kinds = (cq.Workplane, cq.Shape, cq.Assembly, cq.Sketch)
    found = [f"{name} ({type(value).__name__})" for name, value in scope.items() if isinstance(value, kinds)]
    return f"It defines {', '.join(found[:8])}" if found else "It defines no part"


def _timed_out(fault: _TimeIsUp, script: str, seconds: float, printed: str) -> ToolTimedOut:
    line = fault.args[0]
    return ToolTimedOut(
        f"The script ran longer than {seconds:g} s and was stopped",
        kind="tool_timeout", where=_where(script, line), failure_mode=FailureMode.LIMIT,
        fix="end the loop, or give a larger timeout_seconds (at most 600)", stdout=printed,
    )  # fmt: skip


def _told(fault: BaseException, script: str, watch: Watch, printed: str) -> ToolError:
    """Tell what a script raised in the field's words, with its line."""
    if isinstance(fault, SyntaxError) and fault.filename == NAME:
        where = _where(script, fault.lineno or 0)
        return ToolError(f"The script does not compile: {fault.msg}", kind="script_syntax", where=where, stdout=printed)
    frames = traceback.extract_tb(fault.__traceback__)
    line = next((frame.lineno or 0 for frame in reversed(frames) if frame.filename == NAME), 0)
    where = _where(script, line)
    if isinstance(fault, ToolError):
        # The guard's own error, raised inside the script's call.
        fault.where = f"{where} ({fault.where})" if fault.where else where
        fault.data["stdout"] = printed
        return fault
    if isinstance(fault, MemoryError):
        return ToolError(
            "The script asked for more memory than a tool may use", kind="memory_limit", where=where,
            failure_mode=FailureMode.LIMIT, fix="use smaller arrays, or fewer and simpler shapes", stdout=printed,
        )  # fmt: skip
    message, kind, fix = _words(fault, watch)
    design = kind in ("empty_selection", "kernel_refused", "empty_result")
    mode = FailureMode.DESIGN if design else FailureMode.INPUT
    return ToolError(message, kind=kind, where=where, fix=fix, failure_mode=mode, stdout=printed)


def _words(fault: BaseException, watch: Watch) -> tuple[str, str, str]:
    text = str(fault).strip() or "no message"
    selection = watch.empty_selection
    if selection is not None and isinstance(fault, ValueError | IndexError):
        return (
            f"{selection.sentence()} ({text})", "empty_selection",
            "choose a selector that matches, such as '|Z', '>Z' or '%LINE'",
        )  # fmt: skip
    if watch.emptied_by and "void" in text.lower():
        return (
            f"result is empty: the {watch.emptied_by} removed all material",
            "empty_result",
            "check the tool's size",
        )
    if isinstance(fault, KERNEL_ERRORS) and type(fault) is not RuntimeError:
        told = kernel_refused(fault)
        return (told.message, told.kind, told.fix)
    if isinstance(fault, SystemExit):
        return ("The script ended itself with exit()", "script_error", "leave out exit()")
    if isinstance(fault, PermissionError | FileNotFoundError | OSError):
        return (
            f"{type(fault).__name__}: {text}", "script_error",
            "a script may read files of the workspace only, by relative path, and writes through output_path",
        )  # fmt: skip
    return (f"{type(fault).__name__}: {text}", "script_error", "")


def _where(script: str, line: int) -> str:
    lines = script.splitlines()
    return f"line {line}: {lines[line - 1].strip()[:200]}" if 0 < line <= len(lines) else "script"


def _emptied(run: Run, script: str) -> ToolError:
    what = "the cut removed all material" if run.watch.emptied_by == "cut" else "the parts share no volume"
    return ToolError(
        f"result is empty: {what}", kind="empty_result", where=_where(script, run.watch.emptied_line),
        failure_mode=FailureMode.DESIGN, fix="check size and position of the tool", stdout=run.stdout,
    )  # fmt: skip


def _deltas(
    ctx: ToolContext, path: str, compare_to: str | None, now: SolidFacts
) -> tuple[results.Deltas | None, list[str]]:
    """Compare with an earlier revision: the file named, else what lies under the output path."""
    earlier = compare_to or (path if ctx.input_file(path).is_file() else None)
    if earlier is None:
        return None, []
    try:
        before = facts(load(ctx, earlier).shape)
    except ToolError as fault:
        if compare_to:
            raise
        return None, [f"No deltas: {fault.message}"]
    old, new = before.size_mm, now.size_mm
    change = now.volume_mm3 - before.volume_mm3
    return results.Deltas(
        compared_to=earlier,
        volume_mm3=change,
        volume_percent=100 * change / before.volume_mm3 if before.volume_mm3 > 0 else None,
        surface_area_mm2=now.area_mm2 - before.area_mm2,
        size_mm=(round(new[0] - old[0], 6), round(new[1] - old[1], 6), round(new[2] - old[2], 6)),
        solids_count=now.solids_count - before.solids_count,
    ), []


def _delta_words(deltas: results.Deltas | None) -> str:
    if deltas is None:
        return ""
    percent = f" ({deltas.volume_percent:+.3g} %)" if deltas.volume_percent is not None else ""
    grown = ", ".join(f"{each:+.4g}" for each in deltas.size_mm)
    return f" Against {deltas.compared_to}: volume {deltas.volume_mm3:+.6g} mm3{percent}, size {grown} mm."
