"""How the texts of settings are read. Each raises a ValueError that ends the sentence "it ..."."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any


def read_flag(text: str) -> bool:
    """Return a truth value."""
    if text.strip().lower() in ("1", "true", "yes", "on"):
        return True
    if text.strip().lower() in ("0", "false", "no", "off", ""):
        return False
    raise ValueError("takes true or false")


def read_names(text: str) -> tuple[str, ...]:
    """Return names that commas separate."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


HOLDABLE = ("produce", "write", "destroy")


def read_folders(text: str) -> tuple[Path, ...]:
    """Return absolute folders that stand one after the other as in PATH."""
    found = tuple(Path(part).expanduser() for part in text.split(os.pathsep) if part.strip())
    for folder in found:
        if not folder.is_absolute() or folder == Path(folder.anchor):
            raise ValueError(f"takes absolute folders other than /, and {folder} is none")
    return found


def read_effects(text: str) -> tuple[str, ...]:
    """Return which effects a person decides on."""
    names = read_names(text.lower())
    if not names or not set(names) <= set(HOLDABLE):
        raise ValueError(f"takes one or more of {', '.join(HOLDABLE)}, separated by commas")
    return names


def one_of(*allowed: str) -> Callable[[str], str]:
    """Return a reader of one of some words."""

    def parse(text: str) -> str:
        if (name := text.strip().lower()) not in allowed:
            raise ValueError(f"takes one of {', '.join(allowed)}")
        return name

    return parse


def between(low: float, high: float, kind: type = float) -> Callable[[str], Any]:
    """Return a reader of a number above `low`, at most `high`."""

    def parse(text: str) -> Any:
        value = kind(text)
        if not low < value <= high:
            raise ValueError(f"takes a number above {low:g}, at most {high:g}")
        return value

    return parse
