"""The process that reads query texts. Run as a module by the server; it can open nothing once it is up."""

import sys
from typing import Any

from metaforge.tools.confine import confine
from metaforge.twin.query.frames import Refused, claim_output, serve

_WARM = (
    "MATCH (a:b {c: 1})-[r:d*1..2]->(e) WHERE a.x = $p AND NOT EXISTS { MATCH (a)--() } RETURN count(*) AS n LIMIT 1",
    "MATCH p = shortestPath((a)-[*..3]->(b)) WITH p UNWIND nodes(p) AS n RETURN toUpper(n.name), CASE WHEN 1 > 2 "
    "THEN 'a' ELSE 1.5 END ORDER BY n.name DESC",
    "MATCH (n) SET n.x = 1",
    "this is no query (",
)


def main() -> None:
    """Answer `{do: examine, text}` with what the text names."""
    writing = claim_output()
    from metaforge.twin.query.grammar import examine

    # Whatever is imported late must be imported now.
    for text in _WARM:
        try:
            examine(text)
        except Refused:
            continue
    confine(int(sys.argv[1]))

    def answer(request: dict[str, Any]) -> dict[str, Any]:
        return examine(request["text"]).as_json()

    serve({"examine": answer}, writing)


if __name__ == "__main__":
    main()
