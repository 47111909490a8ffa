"""Records, links, adoption, search and long contents."""

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from metaforge.core.errors import ResourceUnreadable, ToolError
from metaforge.store.database import Database
from metaforge.store.transaction import Transaction
from metaforge.twin.bodies import INLINE_BYTES
from metaforge.twin.model import Link, Node, Reader
from metaforge.twin.store import TwinStore


def record(twin: TwinStore, project_id: str, body: dict[str, object], kind: str = "design_decision") -> Node:
    with twin.change(author="a", project_id=project_id) as change:
        return change.record(kind, body, name="why")


def define(twin: TwinStore, project_id: str, name: str, **body: object) -> Node:
    with twin.change(author="a", project_id=project_id) as change:
        return change.define("cad_model", name, body)


NAMES = [
    "O'Brien's \"best\" bracket; drop table nodes; -- %s ? {x}",
    "Halterung für 5 µm Ø8 / Träger №3",
    "🚀 Rakete 👩‍🔧",
    "دعامة الهبوط \u202eabc\u202c",
    "支架 左",
    "कि",
    "tab\tline\nbreak",
    "x" * 10_000,
    "ü" * 10_000,
]


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_every_name_is_kept_whole_and_found_again(twin: TwinStore, project_id: str, name: str) -> None:
    with twin.change(author=name[:200], reason=name, project_id=project_id) as change:
        first = change.define("objective", name, {name: [name]})
        second = change.define("objective", name, {"text": name})
        noted = change.record("evidence", {"text": name}, name=name)
    assert (second.item_key, second.revision) == (first.item_key, 2)
    with twin.read(Reader(project_id=project_id)) as view:
        assert view[first.ref].name == name.strip()
        assert view[first.ref].body == {name: [name]}
        assert view[first.ref].change_reason == name
        assert view.find("evidence", "name", name) == view.find("evidence", "text", name) == [noted]
        assert view.find("objective", "text", name) == [second]


def test_names_that_differ_make_items_that_differ(twin: TwinStore, project_id: str) -> None:
    keys = {define(twin, project_id, name).item_key for name in NAMES}
    assert len(keys) == len(NAMES)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ({"a": {"b": math.nan}}, "nan is no number"),
        ({"a": [1, math.inf]}, "inf is no number"),
        ({"a": "\x00"}, r"U\+0000"),
        ({"a\x00": 1}, r"U\+0000"),
        ({"a": "\ud800"}, "surrogate"),
        ({"a": 2**70}, "64-bit"),
        ({"a": {1, 2}}, "set"),
        ({"a": {1: 2}}, "key 1 is no text"),
        ({"a": json.loads("[" * 200 + "]" * 200)}, "100 levels"),
    ],
    ids=range(9),
)  # fmt: skip
def test_what_json_cannot_keep_is_refused_and_not_changed_silently(
    twin: TwinStore, project_id: str, body: dict[str, object], why: str
) -> None:
    with pytest.raises(ToolError, match=why) as caught:
        record(twin, project_id, body)
    assert caught.value.kind == "not_recordable"
    with twin.read(Reader(project_id=project_id)) as view:
        assert list(view.current_nodes()) == []


@pytest.mark.parametrize("name", ["", "  \n", "\x00", "\ud800"])
def test_a_definition_needs_a_name_that_can_be_kept(twin: TwinStore, project_id: str, name: str) -> None:
    with pytest.raises(ToolError):
        define(twin, project_id, name)


def test_a_long_content_is_kept_whole_beside_the_database(twin: TwinStore, project_id: str, database: Database) -> None:
    text = "Every word counts. " * 60_000
    made = record(twin, project_id, {"text": text, "kind": "long"})
    with twin.read(Reader(project_id=project_id)) as view:
        assert view.node(made.node_id).body["text"] == text
        assert [node.node_id for node in view.find("design_decision", "kind", "long")] == [made.node_id]
        assert view.find("design_decision", "kind", "short") == []
        (inline,) = view.transaction.rows("select length(body) from nodes where node_id = ?", made.node_id)
    assert inline == (0,)
    assert len(text) > INLINE_BYTES


def test_a_corrupt_long_content_is_named_by_its_hash(twin: TwinStore, project_id: str, tmp_path: Path) -> None:
    made = record(twin, project_id, {"text": "x" * (INLINE_BYTES + 1)})
    with twin.read(Reader(project_id=project_id)) as view:
        sha256 = view.transaction.value("select body_sha256 from nodes where node_id = ?", made.node_id)
    path = tmp_path / "blobs" / sha256[:2] / sha256
    path.chmod(0o600)
    path.write_bytes(path.read_bytes()[:-3] + b'y"}')

    with pytest.raises(ResourceUnreadable, match=f"corrupt.*{sha256}"), twin.read() as view:
        view.node(made.node_id)

    path.unlink()
    with pytest.raises(ResourceUnreadable, match=sha256), twin.read() as view:
        view.node(made.node_id)


@pytest.mark.parametrize(
    ("property", "value", "found"),
    [
        ("mass_g", 12.5, True), ("mass_g", 12, False), ("count", 3, True), ("count", 3.0, True), ("count", "3", False),
        ("count", True, False), ("one", True, False), ("flag", True, True), ("flag", 1, False), ("none", None, True),
        ("absent", None, False), ("tags", ["a", "b"], True), ("tags", ["a"], False), ("deep.name", "x", True),
        ("deep", {"name": "x"}, True), ("name", "Leg", True), ("name", 5, False), ("revision", 1, True),
        ("revision", "1", False), ("status", "committed", True), ('quo"ted', 1, True), ("it's", 1, True),
        ("count", 2**62, False), ("huge", 2**64 - 1, True), ("ünï", "ö", True), ("back\\slash\t", "x", True),
        ("deep.name", "x\x00", False), ("name", "\x00", False), ("", "x", False), ("deep..name", "x", False),
    ],
)  # fmt: skip
def test_a_property_is_found_by_its_exact_value(
    twin: TwinStore, project_id: str, property: str, value: object, found: bool
) -> None:
    body = {
        "mass_g": 12.5, "count": 3, "one": 1, "flag": True, "none": None, "tags": ["a", "b"], "deep": {"name": "x"},
        'quo"ted': 1, "it's": 1, "ünï": "ö", "huge": 2**64 - 1,
        "back\\slash\t": "x",
    }  # fmt: skip
    node = define(twin, project_id, "Leg", **body)
    with twin.read(Reader(project_id=project_id)) as view:
        assert view.find("cad_model", property, value) == ([node] if found else [])


def test_a_file_is_found_by_its_digest_and_a_bought_part_by_its_number(twin: TwinStore, project_id: str) -> None:
    digest = "ab" * 32
    part = define(twin, project_id, "Leg", content_hash=digest, mpn="not a part number here")
    define(twin, project_id, "Arm", content_hash="cd" * 32)
    with twin.change(author="anna", project_id=project_id) as change:
        bought = change.define("component_selection", "MCU", {"mpn": "STM32", "content_hash": digest})
        noted = change.record("note", {"content_hash": digest, "text": "x" * (INLINE_BYTES + 1)})
        odd = change.record("note", {"content_hash": 5})
        long = change.record("note", {"content_hash": "h" * 300})
    with twin.read(Reader(project_id=project_id)) as view:
        assert view.find("cad_model", "content_hash", digest) == [part]
        assert view.find("cad_model", "mpn", "not a part number here") == [part]
        assert view.find("component_selection", "mpn", "STM32") == [bought]
        assert view.find("component_selection", "content_hash", digest) == [bought]
        assert [node.node_id for node in view.find("note", "content_hash", digest)] == [noted.node_id]
        assert view.find("note", "content_hash", 5) == [odd]
        assert view.find("note", "content_hash", "h" * 300) == [long]
        assert view.find("note", "content_hash", "") == view.find("note", "content_hash", "?") == []
    later = define(twin, project_id, "Leg", content_hash="ef" * 32)
    with twin.read(Reader(project_id=project_id)) as view:
        assert view.find("cad_model", "content_hash", digest) == []
        assert view.find("cad_model", "content_hash", "ef" * 32) == [later]


@pytest.mark.parametrize("property", ["content_hash", "item_key"])
def test_a_look_up_by_digest_or_key_reads_no_other_node(
    twin: TwinStore, project_id: str, property: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with twin.change(author="anna", project_id=project_id) as change:
        for number in range(300):
            change.define("cad_model", f"Part {number}", {"content_hash": f"{number:064x}"}, item_key=f"P{number}")
    with twin.read(Reader(project_id=project_id)) as view:
        watched = Watched(view.transaction)
        monkeypatch.setattr(view, "transaction", watched)
        (found,) = view.find("cad_model", property, "P7" if property == "item_key" else f"{7:064x}")
        assert found.name == "Part 7"
        plans = [watched.plan(query, values) for query, values in watched.asked]
    # Postgres reads so small a table whole, whatever indexes there are.
    assert watched.postgres or not any("SCAN" in plan for plan in plans)


class Watched:
    """A transaction that remembers the queries made in it."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction
        self.postgres = transaction.postgres
        self.asked: list[tuple[str, tuple[Any, ...]]] = []

    def rows(self, query: str, *values: Any) -> list[Any]:
        self.asked.append((query, values))
        return self._transaction.rows(query, *values)

    def each(self, query: str, *values: Any) -> Iterator[Any]:
        self.asked.append((query, values))
        return self._transaction.each(query, *values)

    def plan(self, query: str, values: tuple[Any, ...]) -> str:
        explain = "explain" if self.postgres else "explain query plan"
        return " ".join(str(row) for row in self._transaction.rows(f"{explain} {query}", *values))


def test_a_name_with_a_null_character_is_one_that_nothing_has(twin: TwinStore, project_id: str) -> None:
    with twin.read(Reader(project_id=project_id)) as view:
        for name in ("n\x00", "CAD-LEG\x00"):
            with pytest.raises(ToolError, match="There is no"):
                view[name]
        assert view.project("p\x00") is None


def test_search_stays_in_the_project_and_below_its_limit(twin: TwinStore, project_id: str) -> None:
    with twin.change(author="owner") as change:
        other = change.create_project("Rover").project_id
    nodes = [record(twin, project_id, {"n": 1}) for _ in range(5)]
    record(twin, other, {"n": 1})
    with twin.read(Reader(project_id=project_id)) as view:
        assert view.find("design_decision", "n", 1) == nodes[::-1]
        assert view.find("design_decision", "n", 1, limit=2) == nodes[:2:-1]
    with twin.read() as view:
        assert len(view.find("design_decision", "n", 1)) == 6


def test_a_link_is_pinned_to_the_revision_it_was_made_against(twin: TwinStore, project_id: str) -> None:
    leg = define(twin, project_id, "Leg")
    decision = record(twin, project_id, {})
    with twin.change(author="b", project_id=project_id) as change:
        made = change.link("depends_on", decision, "CAD-LEG", {"why": "mass"})
        assert change.link("depends_on", decision.node_id, leg.node_id, {"why": "mass"}).link_id == made.link_id
    define(twin, project_id, "Leg")
    with twin.read(Reader(project_id=project_id)) as view:
        assert view.link(made.link_id) == made
        assert view.links(decision.node_id, direction="outgoing") == [made]
        assert view.links(leg.node_id, direction="incoming", type="depends_on") == [made]
        assert view.links(leg.node_id, direction="outgoing") == view.links(leg.node_id, type="implements") == []
        assert view.links(subject=leg.item_id) == view.links() == [made]
        assert view.links(view["CAD-LEG"].node_id) == []
    assert (made.source_revision, made.target_revision, made.target_node_id) == (None, 1, leg.node_id)


def test_a_link_to_nothing_fails_with_nothing_written(twin: TwinStore, project_id: str) -> None:
    for target in ("CAD-LEG", "CAD-LEG@1", "n0"):
        with pytest.raises(ToolError), twin.change(author="b", project_id=project_id) as change:  # noqa: PT012
            decision = change.record("design_decision", {})
            change.link("depends_on", decision, target)
    with twin.read(Reader(project_id=project_id)) as view:
        assert list(view.current_nodes()) == []


def test_a_review_marks_a_link_up_to_the_head(twin: TwinStore, project_id: str) -> None:
    define(twin, project_id, "Leg")
    decision = record(twin, project_id, {})
    with twin.change(author="b", project_id=project_id) as change:
        made = change.link("depends_on", decision, "CAD-LEG")
    define(twin, project_id, "Leg")
    with twin.change(author="reviewer", project_id=project_id) as change:
        with pytest.raises(ToolError, match="@3 is not between"):
            change.review(made.link_id, 3)
        reviewed: Link = change.review(made.link_id)
        with pytest.raises(ToolError, match="no link 'l0'"):
            change.review("l0")
    with twin.read(Reader(project_id=project_id)) as view:
        assert view.link(made.link_id) == reviewed
    assert (reviewed.reviewed_revision, reviewed.reviewed_by) == (2, "reviewer")


def test_a_record_can_replace_a_record_but_no_revision(twin: TwinStore, project_id: str) -> None:
    first, leg = record(twin, project_id, {}), define(twin, project_id, "Leg")
    with twin.change(author="b", project_id=project_id) as change:
        second = change.record("design_decision", {}, supersedes=first.node_id)
    assert second.prior_node_id == first.node_id
    with twin.read(Reader(project_id=project_id)) as view:
        assert [link.type for link in view.links(second.node_id)] == ["supersedes"]
        assert view.node(first.node_id) == first
        with pytest.raises(ToolError, match="no revision of an item"):
            view.history(first.node_id)
    with pytest.raises(ToolError, match="cannot replace it"), twin.change(author="b", project_id=project_id) as change:
        change.record("design_decision", {}, supersedes=leg.node_id)


@pytest.mark.parametrize("kind", ["cad_model", "", "Design Decision", "x" * 65, "drop;table"])
def test_a_record_is_of_a_record_kind(twin: TwinStore, project_id: str, kind: str) -> None:
    with pytest.raises(ToolError) as caught:
        record(twin, project_id, {}, kind)
    assert caught.value.kind == "not_a_record_kind"


def test_a_record_kind_is_never_revised(twin: TwinStore, project_id: str) -> None:
    with pytest.raises(ToolError, match="no kind of item"), twin.change(author="a", project_id=project_id) as change:
        change.define("design_decision", "x", {})


def test_nodes_older_than_items_become_the_first_revisions(twin: TwinStore, project_id: str) -> None:
    with twin.change(author="old") as change:
        first = change.define("cad_model", "Leg", {"n": 1})
        second = change.define("cad_model", "Leg", {"n": 2}, supersedes=first.node_id)
        decision = change.record("design_decision", {})
        change.link("depends_on", decision, first)
    assert second.prior_node_id == first.node_id

    with twin.change(author="new", project_id=project_id) as change:
        third = change.define("cad_model", "Leg", {"n": 3}, supersedes=first.node_id)

    assert (third.ref, third.adopted, third.prior_node_id) == ("CAD-LEG@3", False, second.node_id)
    with twin.read(Reader(project_id=project_id)) as view:
        history = view.history(first.node_id)
        (link,) = view.links(subject=third.item_id)
    assert [(node.node_id, node.ref, node.adopted, node.project_id) for node in history.revisions] == [
        (first.node_id, "CAD-LEG@1", True, project_id),
        (second.node_id, "CAD-LEG@2", True, project_id),
        (third.node_id, "CAD-LEG@3", False, project_id),
    ]
    assert (link.target_revision, link.target_subject) == (1, third.item_id)


def test_an_old_node_of_the_same_name_in_the_project_is_taken_in(twin: TwinStore, project_id: str) -> None:
    with twin.change(author="old") as change:
        old = change.define("cad_model", "Leg", {})
        other = change.define("cad_model", "Arm", {})
        for node in (old, other):
            change.transaction.run("update nodes set project_id = ? where node_id = ?", project_id, node.node_id)
    assert define(twin, project_id, "leg").ref == "CAD-LEG@2"
    assert define(twin, project_id, "Foot").ref == "CAD-FOOT@1"


def test_a_chain_of_more_than_200_is_not_taken_in(twin: TwinStore, project_id: str) -> None:
    with twin.change(author="old") as change:
        node = change.define("cad_model", "Leg", {})
        for _ in range(200):
            node = change.define("cad_model", "Leg", {}, supersedes=node.node_id)
    with (
        pytest.raises(ToolError, match="chain of more than 200"),
        twin.change(author="new", project_id=project_id) as change,
    ):
        change.define("cad_model", "Leg", {}, supersedes=node.node_id)
