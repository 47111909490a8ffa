"""Read a query's text and say what it is made of. Runs in the parser's own process: slow texts are ended with it."""

import re
from dataclasses import dataclass, field
from typing import Any

from graphglot.dialect.neo4j import Neo4j
from graphglot.error import GraphGlotError

from metaforge.twin.query.allowed import ALLOWED, FILES, FUNCTIONS, REFUSED, WRITES
from metaforge.twin.query.frames import Refused

_DIALECT = Neo4j()
_PATH_SEARCHES = ("shortestpath", "allshortestpaths")
_PREFIX = "p_"
"""Before every parameter's name in the judged copy: the parser takes no word of the language for one."""
_LOUD = ("FOREACH", "SHOW", "YIELD", "TERMINATE", "ALTER", "GRANT", "DENY", "REVOKE")


@dataclass
class Contents:
    """What a text that may run names."""

    parameters: set[str] = field(default_factory=set)
    labels: set[str] = field(default_factory=set)
    """Of nodes and of relationships."""
    properties: set[str] = field(default_factory=set)

    def as_json(self) -> dict[str, Any]:
        return {name: sorted(values) for name, values in vars(self).items()}


def examine(text: str) -> Contents:
    """Return what a query names.

    Args:
        text: one statement.

    Raises:
        Refused: it is no Cypher, more than one statement, or made of more than reading a graph takes.
    """
    try:
        tokens = _DIALECT.tokenize(text)
        _refuse_by_words(tokens)
        statements = _DIALECT.parse(_readable(text, tokens))
    except RecursionError:
        raise Refused(
            "query_nested_too_deeply", "The query is nested too deeply to be read", "Use fewer brackets inside brackets"
        ) from None
    except GraphGlotError as fault:
        raise Refused("query_syntax", f"This is no Cypher that can be read here: {_plain(fault)}", _HINT) from None
    if len(statements) != 1:
        raise Refused(
            "several_statements", f"The text holds {len(statements)} statements; one is run at a time",
            "Send them one by one" if statements else "Send a query such as MATCH (n) RETURN count(n)",
        )  # fmt: skip
    return _contents(statements[0])


_HINT = (
    "Reading clauses are MATCH, OPTIONAL MATCH, WHERE, WITH, UNWIND, RETURN, ORDER BY, SKIP, LIMIT and UNION; map "
    "projections n {.name}, COUNT { } and exists(n.x) are not known: return n.name, use count() and n.x IS NOT NULL"
)


def _contents(statement: Any) -> Contents:
    contents = Contents()
    nodes = list(statement.dfs())
    for node in nodes:
        # Before anything else, so that the reason is the clause and not what holds it.
        if (clause := REFUSED.get(type(node).__name__)) is not None:
            raise refused_clause(clause)
    for node in nodes:
        name = type(node).__name__
        if name not in ALLOWED:
            raise Refused("query_not_allowed", f"The query uses {_spaced(name)}, which is not part of reading", _HINT)
        if name == "LabelName":
            contents.labels.add(node.identifier.name)
        elif name == "PropertyName":
            contents.properties.add(node.identifier.name)
        elif name == "GeneralParameterReference":
            contents.parameters.add(_parameter(node))
        elif name == "Anonymous":
            _check_function(str(node.name))
    return contents


def _parameter(node: Any) -> str:
    name = next(str(below.name) for below in node.dfs() if type(below).__name__ == "Identifier")
    return name.removeprefix(_PREFIX)


def _check_function(name: str) -> None:
    if name.lower() not in FUNCTIONS:
        known = ", ".join(sorted(FUNCTIONS))
        raise Refused("unknown_function", f"There is no function {name[:80]}() here", f"Use one of {known}")


def refused_clause(clause: str) -> Refused:
    """Return the refusal of a clause, with its reason."""
    if clause in WRITES:
        return Refused("query_writes", f"{clause} changes the graph, and twin.query_cypher only reads")
    if clause in FILES:
        return Refused(
            "query_reaches_outside", f"{clause} reaches files outside the graph, and no query may",
            "Pass values as params",
        )  # fmt: skip
    if clause == "CALL":
        return Refused(
            "query_calls", "CALL runs procedures and subqueries, and none may be run here",
            "Use MATCH, WITH and EXISTS { } instead; labels(n), type(r) and keys(n) tell the schema",
        )  # fmt: skip
    return Refused("query_not_allowed", f"{clause} is not part of reading a graph", _HINT)


def _refuse_by_words(tokens: list[Any]) -> None:
    """Name what the parser would only call a mistake. Words inside quotes are no words here."""
    words = [_word(token) for token in tokens]
    for place, word in enumerate(words):
        after = words[place + 1] if place + 1 < len(tokens) else ""
        first = place == 0 or tokens[place - 1].text == ";"
        if f"{word} {after}" in FILES:
            raise refused_clause(f"{word} {after}")
        if (first and (word in FILES or word in _LOUD)) or (word == "FOREACH" and after == "("):
            raise refused_clause(word)


def _word(token: Any) -> str:
    return token.text.upper() if token.token_type.name != "STRING" and " " not in token.text else ""


def _readable(text: str, tokens: list[Any]) -> str:
    """Return the text as the parser can read it: path searches as their pattern, any word as a parameter's name.

    Only the copy that is judged is changed; what runs is the caller's text.
    """
    edits: list[tuple[int, int, str]] = []
    for place, token in enumerate(tokens[:-1]):
        after = tokens[place + 1]
        if token.text == "$" and after.start == token.end + 1 and after.text[:1].isalpha():
            edits.append((after.start, after.start, _PREFIX))
        elif token.text.lower() in _PATH_SEARCHES and after.text == "(" and _starts_pattern(tokens, place):
            close = _closing(tokens, place + 1)
            if close is not None:
                edits += [(token.start, after.end + 1, " "), (tokens[close].start, tokens[close].end + 1, " ")]
    for start, end, instead in sorted(edits, reverse=True):
        text = text[:start] + instead + text[end:]
    return text


def _starts_pattern(tokens: list[Any], place: int) -> bool:
    return place > 0 and tokens[place - 1].text.upper() in ("=", ",", "MATCH")


def _closing(tokens: list[Any], opening: int) -> int | None:
    depth = 0
    for place in range(opening, len(tokens)):
        if tokens[place].token_type.name == "LEFT_PAREN":
            depth += 1
        elif tokens[place].token_type.name == "RIGHT_PAREN":
            depth -= 1
            if depth == 0:
                return place
    return None


def _plain(fault: Exception) -> str:
    first = re.sub(r"\x1b\[[0-9;]*m", "", str(fault)).strip().split("\n")
    return " ".join(part.strip() for part in first if part.strip())[:300]


def _spaced(name: str) -> str:
    return "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in name.strip("_")).strip()
