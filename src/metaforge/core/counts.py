"""Counts in sentences: 1 requirement, 2 requirements."""


def counted(count: int, one: str, many: str = "") -> str:
    """Say how many there are of something.

    Args:
        count: how many.
        one: what one is called, with its verb where there is one: `record rests`.
        many: what several are called; by default `one` with an s.
    """
    return f"{count:,} {one if count == 1 else many or one + 's'}"
