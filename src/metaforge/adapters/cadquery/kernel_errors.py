"""The exceptions of the kernel, which have no common base in Python, and how they are told."""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from OCP import Standard, StdFail

from metaforge.core.errors import FailureMode, ToolError

P = ParamSpec("P")
R = TypeVar("R")

# What has no class of its own in Python comes as RuntimeError.
KERNEL_ERRORS: tuple[type[Exception], ...] = (
    RuntimeError,
    *(
        found
        for module in (Standard, StdFail)
        for found in vars(module).values()
        if isinstance(found, type) and issubclass(found, Exception)
    ),
)

KERNEL_OR_GUARD: tuple[type[Exception], ...] = (*KERNEL_ERRORS, ToolError)
"""What a guarded operation may raise: the kernel's refusal or the guard's."""


def tells_kernel_errors(function: Callable[P, R]) -> Callable[P, R]:
    """Turn what the kernel throws out of a tool into words."""

    @wraps(function)
    def told(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except KERNEL_ERRORS as fault:
            raise kernel_refused(fault) from fault

    return told


def kernel_refused(fault: BaseException, where: str = "") -> ToolError:
    """Return the error for a kernel exception that nothing more is known about."""
    text = str(fault).strip() or "no message"
    return ToolError(
        f"The kernel refused the operation ({type(fault).__name__}: {text})",
        kind="kernel_refused", where=where, failure_mode=FailureMode.DESIGN,
        fix="make the last dimension smaller, and check that wires are closed and do not cross themselves",
    )  # fmt: skip
