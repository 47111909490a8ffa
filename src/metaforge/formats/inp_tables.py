"""The numbers below a deck's cards: tables, sets and single values; every fault names its line."""

import numpy as np

from metaforge.formats.deck_model import MAX_ID, Floats, Ids, is_id
from metaforge.formats.inp import BadDeck, Card, fields, numbers


def set_members(card: Card, known: dict[str, Ids]) -> Ids:
    """Return the ids below a *NSET or *ELSET card, those of sets it names included."""
    found: list[int] = []
    joined: list[Ids] = []
    for index, row in enumerate(card.rows):
        parts = [part for part in fields(row) if part]
        if "GENERATE" in card.parameters:
            try:
                start, stop, stride = (int(float(part)) for part in [*parts, "1"][:3])
            except (ValueError, OverflowError):
                raise BadDeck(f"Not a range: {row!r}", where=card.where(index), fix="write first, last, step") from None
            if start < 1 or stop > MAX_ID or stride < 1:
                raise BadDeck(f"Range {row!r} is not usable", where=card.where(index), fix=f"ids from 1 to {MAX_ID:,}")
            joined.append(np.arange(start, stop + 1, stride, dtype=np.int64))
            continue
        for part in parts:
            if is_id(part):
                found.append(int(part))
            elif (members := known.get(part.upper())) is not None:
                joined.append(members)
    return np.concatenate([np.array(found, dtype=np.int64), *joined])


def node_table(card: Card) -> Floats:
    """Return id and coordinates of each line below a *NODE card."""
    try:
        flat = np.array(",".join(card.rows).split(","), dtype=np.float64)
        if len(flat) == 4 * len(card.rows):
            return flat.reshape(-1, 4)
    except ValueError:
        pass
    table = np.zeros((len(card.rows), 4))
    for index in range(len(card.rows)):
        values = row_numbers(card, index)[:4]
        table[index, : len(values)] = values
    return table


def element_table(card: Card, node_count: int | None) -> Ids:
    """Return id and nodes of each element below a card; lines may be broken anywhere."""
    tokens = [part for row in card.rows for part in row.split(",")]
    try:
        flat = np.array([part for part in tokens if part.strip()], dtype=np.int64)
    except (ValueError, OverflowError):
        raise BadDeck(
            "An element line holds something that is no node number", where=card.where(), fix="write integers"
        ) from None
    if node_count is None:
        # Nobody here knows the type: as many nodes as the first line that holds anything has.
        lengths = (sum(bool(part.strip()) for part in row.split(",")) for row in card.rows)
        node_count = next((length - 1 for length in lengths if length), 1)
    if len(flat) % (node_count + 1):
        kind = card.name("TYPE")
        raise BadDeck(
            f"Elements of type {kind} have {node_count} nodes, but the numbers below do not fit: "
            f"{len(flat)} is no multiple of {node_count + 1}",
            where=card.where(),
            fix=f"give each element its id and {node_count} nodes, or correct TYPE",
        )
    return flat.reshape(-1, node_count + 1)


def check_ids(card: Card, ids: Ids, what: str) -> None:
    """Refuse ids that CalculiX cannot hold."""
    if len(ids) and (ids.max() > MAX_ID or ids.min() < 1):
        bad = int(ids.max() if ids.max() > MAX_ID else ids.min())
        raise BadDeck(
            f"{what.capitalize()} number {bad:,} is outside 1 to {MAX_ID:,}: "
            "CalculiX reserves memory for every number up to the highest",
            kind="id_too_large",
            where=card.where(),
            fix=f"renumber the {what}s from 1",
        )


def row_numbers(card: Card, index: int) -> list[float]:
    """Return the numbers of one line."""
    try:
        return numbers(card.rows[index])
    except ValueError:
        raise BadDeck(
            f"Not numbers: {card.rows[index][:60]!r}", where=card.where(index), fix="write numbers between commas"
        ) from None


def integer_at(card: Card, index: int, parts: list[str], at: int, default: int) -> int:
    """Return an integer of a line, or the default where nothing stands."""
    if len(parts) <= at or not parts[at]:
        return default
    try:
        return int(parts[at])
    except ValueError:
        raise BadDeck(
            f"Not a degree of freedom: {parts[at]!r}", where=card.where(index), fix="write 1 to 6, or 11 for heat"
        ) from None


def number_at(card: Card, index: int, parts: list[str], at: int) -> float:
    """Return a number of a line, 0 where nothing stands."""
    if len(parts) <= at:
        return 0.0
    try:
        return numbers(parts[at])[0]
    except ValueError:
        raise BadDeck(f"Not a number: {parts[at]!r}", where=card.where(index), fix="write a number") from None
