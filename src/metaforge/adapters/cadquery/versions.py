"""Which library did the work."""

from functools import cache
from importlib.metadata import version


@cache
def _versions() -> tuple[tuple[str, str], ...]:
    return (("cadquery", version("cadquery")), ("cadquery-ocp", version("cadquery-ocp")))


def programs() -> dict[str, str]:
    """Return name -> version for the record."""
    return dict(_versions())
