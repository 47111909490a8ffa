"""The graph of some rows, made the plain way: a statement for each node and each relationship."""

from collections.abc import Iterable, Sequence
from typing import Any

import kglite
import orjson

from metaforge.twin.query.bodies import LONG_BYTES
from metaforge.twin.query.projection import ITEM_FIELDS, LINK_FIELDS, NODE_FIELDS, PROPERTIES, relationship_type

Row = Sequence[Any]
TAKEN = PROPERTIES - {"title", "type"} | {"node_type", "labels"}


def load(items: Iterable[Row], nodes: Iterable[Row], links: Iterable[Row]) -> kglite.KnowledgeGraph:
    """Return a graph of rows that tell of each item, node and link once."""
    loader = PlainLoader()
    for row in items:
        loader.add_item(dict(zip(ITEM_FIELDS, row, strict=True)))
    for row in nodes:
        loader.add_node(dict(zip((*NODE_FIELDS, "body"), row, strict=True)))
    loader.connect()
    for row in links:
        loader.add_link(dict(zip((*LINK_FIELDS, "body"), row, strict=True)))
    return loader.graph


class PlainLoader:
    """Says each thing by itself."""

    def __init__(self) -> None:
        self.graph = kglite.KnowledgeGraph()
        self.labels: dict[str, str] = {}
        self.items: dict[str, dict[str, Any]] = {}
        self.waiting: list[tuple[str, str, str]] = []

    def add_item(self, row: dict[str, Any]) -> None:
        self.items[row["item_id"]] = row
        properties = {"node_id": row["item_id"], **{n: row[n] for n in ("item_key", "kind", "name", "project_id")}}
        if row["head_node_id"]:
            properties |= {n: row[n] for n in ("head_revision", "head_node_id")}
            self.waiting.append((row["item_id"], "HEAD", row["head_node_id"]))
        if row["current_node_id"]:
            properties["current_revision"] = row["current_revision"]
        self._create("Item", row["item_id"], properties)

    def add_node(self, row: dict[str, Any]) -> None:
        node_id, body = row["node_id"], row.pop("body")
        properties = {
            name: value for name, value in row.items()
            if value or name in ("name", "project_id", "status", "created_at")
        }  # fmt: skip
        item_id = properties.pop("item_id", "")
        prior = properties.pop("prior_node_id", "")
        if "adopted" in properties:
            properties["adopted"] = True
        if item_id:
            item = self.items.get(item_id, {"head_node_id": "", "current_node_id": ""})
            properties |= {
                "item_key": row["item_key"], "revision": row["revision"], "ref": f"{row['item_key']}@{row['revision']}",
                "is_head": node_id == item["head_node_id"], "is_current": node_id == item["current_node_id"],
            }  # fmt: skip
            self.waiting += [(node_id, "REVISION_OF", item_id)] + [(node_id, "SUPERSEDES", prior)] * bool(prior)
        else:
            properties |= {"ref": node_id, "is_current": True}
            properties.pop("item_key", None)
            properties.pop("revision", None)
        self._create(row["kind"], node_id, properties | own(body))

    def connect(self) -> None:
        for source, type, target in self.waiting:
            if source in self.labels and target in self.labels:
                self._connect(source, type, target, {})

    def add_link(self, row: dict[str, Any]) -> None:
        body, source, target, type = (row.pop(n) for n in ("body", "source_node_id", "target_node_id", "type"))
        if source not in self.labels or target not in self.labels:
            return
        if row["reviewed_revision"] is None:
            del row["reviewed_by"]
        properties = {name: value for name, value in row.items() if value is not None}
        self._connect(source, relationship_type(type), target, properties | own(body))
        if relationship_type(type) == "SUPERSEDES" and row["target_revision"] is None:
            self.graph.cypher(
                f"MATCH (n:`{self.labels[target]}` {{id: $id}}) SET n.is_current = false", params={"id": target}
            )

    def _create(self, label: str, node_id: str, properties: dict[str, Any]) -> None:
        self.labels[node_id] = label
        self.graph.cypher(
            f"CREATE (n:`{label}` {{id: $id, name: $name}}) SET n += $all",
            params={"id": node_id, "name": properties["name"], "all": properties},
        )

    def _connect(self, source: str, type: str, target: str, properties: dict[str, Any]) -> None:
        self.graph.cypher(
            f"MATCH (a:`{self.labels[source]}` {{id: $a}}), (b:`{self.labels[target]}` {{id: $b}}) "
            f"CREATE (a)-[x:`{type}`]->(b) SET x = $all",
            params={"a": source, "b": target, "all": properties},
        )


def own(text: str) -> dict[str, Any]:
    """Return what a body adds to a thing's properties."""
    properties: dict[str, Any] = {}
    left_out = []
    for name, value in orjson.loads(text).items():
        if len(text) > LONG_BYTES and len(orjson.dumps(value)) > LONG_BYTES:
            left_out.append(name)
        elif value is not None and name:
            properties[f"body_{name}" if name in TAKEN else name] = fitting(value)
    return properties | ({"left_out": left_out} if left_out else {})


def fitting(value: Any) -> Any:
    if isinstance(value, list):
        return [fitting(each) for each in value]
    if isinstance(value, dict):
        return {name: fitting(each) for name, each in value.items()}
    return float(value) if type(value) is int and not -(2**63) <= value < 2**63 else value
