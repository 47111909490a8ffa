"""Keys and references, without a database."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metaforge.core.errors import ToolError
from metaforge.twin.ids import new_id
from metaforge.twin.refs import KEY, ItemRef, derive_key, is_ref, match_key, names_key, numbered_key, parse_ref


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("Leg, front left", "CAD-LEG-FRONT-LEFT"), ("  leg  ", "CAD-LEG"), ("Träger", "CAD-TRAGER"),
        ("M3 x 8", "CAD-M3-X-8"),
        ("ﬁxture ½", "CAD-FIXTURE-1-2"), ("a" * 60, "CAD-" + "A" * 48), ("a" * 47 + " b", "CAD-" + "A" * 47),
    ],
)  # fmt: skip
def test_a_name_becomes_a_key(name: str, key: str) -> None:
    assert derive_key("CAD", name) == key


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_every_name_gives_a_valid_key_that_only_its_own_words_claim(name: str) -> None:
    key = derive_key("NEED", name)
    assert KEY.fullmatch(key)
    assert len(key) <= len("NEED-") + 48
    assert parse_ref(key) == ItemRef(key)
    if names_key("NEED", name, key):
        assert match_key(key.removeprefix("NEED-")) == match_key(name)


@given(st.text(), st.text())
def test_names_of_one_match_key_differ_in_case_and_punctuation_only(left: str, right: str) -> None:
    if match_key(left) == match_key(right):
        assert [each for each in left.casefold() if each.isdigit()] == [
            each for each in right.casefold() if each.isdigit()
        ]


def test_a_reference_is_read_and_written_alike() -> None:
    assert parse_ref(" CAD-LEG@12 ") == ItemRef("CAD-LEG", 12)
    assert str(parse_ref("CAD-LEG@12")) == "CAD-LEG@12"
    assert str(parse_ref("CAD-LEG")) == "CAD-LEG"


@pytest.mark.parametrize(
    "text", ["", "x", "CAD-LEG@0", "CAD-LEG@01", "CAD-LEG@-1", "CAD-LEG@²", "CAD-LÉG", "CAD-LEG\n@1"]
)
def test_other_texts_are_no_references(text: str) -> None:
    assert not is_ref(text)
    with pytest.raises(ToolError, match="CAD-BRACKET@2"):
        parse_ref(text)


def test_duplicates_are_numbered_from_two() -> None:
    assert numbered_key("CAD-X", set()) == "CAD-X"
    assert numbered_key("CAD-X", {"CAD-X", "CAD-X-2", "CAD-X-4"}) == "CAD-X-3"


def test_ids_grow_and_are_never_keys() -> None:
    ids = [new_id("n") for _ in range(2000)]
    assert ids == sorted(set(ids))
    assert all(re.fullmatch("n[0-9a-f]{20}", each) and not is_ref(each) for each in ids)
