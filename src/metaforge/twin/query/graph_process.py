"""The process that holds one reader's graph of one project and runs queries on it. It can open nothing once it is up.

Run as a module by the server, which reads the record and sends rows: there is no way from here to the database.
"""

import gc
import sys
from typing import Any

import orjson

from metaforge.tools.confine import confine
from metaforge.twin.query.frames import Refused, claim_output, serve
from metaforge.twin.query.graph_engine import Caps
from metaforge.twin.query.kglite_engine import KgliteEngine
from metaforge.twin.query.projection import ITEM_FIELDS, NODE_FIELDS, PROPERTIES, STRUCTURE, Projection


class GraphProcess:
    """Its requests: `put` rows, `settle`, and `query`."""

    def __init__(self) -> None:
        self._projection = Projection(KgliteEngine())

    def put(self, request: dict[str, Any]) -> dict[str, Any]:
        """Take rows of items, nodes and links, in that order; `touched` nodes that have no row are told as `gone`."""
        # What is put stays: looking through it for garbage again and again would cost a quarter of the time.
        gc.disable()
        try:
            return self._put(request)
        finally:
            gc.enable()

    def _put(self, request: dict[str, Any]) -> dict[str, Any]:
        if request.get("clear"):
            self._projection = Projection(KgliteEngine())
        projection = self._projection
        projection.put(request.get("items", ()), request.get("nodes", ()), ())
        if request.get("settle"):
            projection.settle()
        projection.put(links=request.get("links", ()))
        sent = {row[0] for row in request.get("nodes", ())}
        gone = [each for each in request.get("touched", ()) if each not in sent and each in projection.label_of]
        return {"nodes_count": projection.nodes_count, "gone": gone}

    def query(self, request: dict[str, Any]) -> dict[str, Any]:
        """Run one query that the gate let pass. Rows that do not fit `max_bytes` are left away and counted."""
        caps = Caps(request["rows_count"], request["seconds"])
        found = self._projection.engine.run(request["cypher"], request["params"], caps)
        rows: list[dict[str, Any]] = []
        size = 0
        for row in found.rows:
            plain = {name: self._plain(value) for name, value in row.items()}
            size += len(orjson.dumps(plain, default=str, option=orjson.OPT_NON_STR_KEYS))
            if size > request["max_bytes"] and rows:
                break
            rows.append(plain)
        return {
            "columns": found.columns, "rows": rows, "total_count": found.total_count,
            "unknown": self._unknown(request["labels"], request["properties"]),
        }  # fmt: skip

    def _plain(self, value: Any) -> Any:
        """Return a value without what only the engine knows."""
        if isinstance(value, list):
            return [self._plain(each) for each in value]
        if not isinstance(value, dict):
            return value
        if value.keys() == _NODE_KEYS:
            properties = dict(value["properties"])
            node_id = properties.pop("id", "")
            if node_id not in self._projection.own_type:
                properties.pop("type", None)
            if node_id not in self._projection.own_title:
                properties.pop("title", None)
            return {"labels": value["labels"], "properties": properties}
        if value.keys() == _EDGE_KEYS:
            return {"type": value["type"], "properties": value["properties"]}
        return {name: self._plain(each) for name, each in value.items()}

    def _unknown(self, labels: list[str], properties: list[str]) -> dict[str, Any]:
        projection = self._projection
        kinds = sorted(set(projection.label_of.values()))
        types = sorted(projection.types)
        names = projection.names | PROPERTIES
        return {
            "labels": [each for each in labels if each not in kinds and each not in types and each not in STRUCTURE],
            "properties": [each for each in properties if each not in names],
            "known_labels": kinds, "known_types": types,
        }  # fmt: skip


_NODE_KEYS = {"id", "labels", "properties"}
_EDGE_KEYS = {"id", "start", "end", "type", "properties"}


def _warm_up() -> None:
    """Use everything once: whatever is imported late must be imported before the doors close."""
    trial = GraphProcess()
    names = {
        "node_id": "n",
        "kind": "k",
        "name": "n",
        "project_id": "p",
        "item_id": "i",
        "item_key": "K",
        "revision": 1,
    }
    node = [names.get(field, "") for field in NODE_FIELDS]
    item = [names.get(field, "n" if field.endswith("node_id") else 1) for field in ITEM_FIELDS]
    trial.put({"items": [item], "nodes": [[*node, '{"a b": {"c": 1.5}}']], "settle": True})
    ask = {"rows_count": 1, "seconds": 1.0, "max_bytes": 1000, "labels": [], "properties": [], "params": {}}
    for text in (
        "MATCH p = shortestPath((a)-[*..2]-(b)) RETURN p, a, date('2020-01-01') AS d, datetime() AS t ORDER BY a.name",
        "MATCH (a), (b), (c) RETURN count(*)",
        "MATCH (",
        "RETURN 1 / 0",
    ):
        try:
            trial.query(ask | {"cypher": text})
        except Refused:
            continue


def main() -> None:
    """Serve one graph."""
    writing = claim_output()
    _warm_up()
    confine(int(sys.argv[1]))
    process = GraphProcess()
    serve({"put": process.put, "query": process.query}, writing)


if __name__ == "__main__":
    main()
