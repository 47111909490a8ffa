import json

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from metaforge.approvals.digest import call_digest, canonical
from metaforge.core.errors import InvalidArguments

NUMBERS = st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(allow_nan=False, allow_infinity=False)
TEXTS = st.text(st.characters(exclude_categories=("Cs",)))
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=20,
)


def test_the_canonical_form_is_that_of_the_standard() -> None:
    value = {"numbers": [333333333.33333329, 1e30, 4.50, 2e-3, 1e-27], "string": "\u20ac$\u000f\nA'B\"\\\\\"/",
             "literals": [None, True, False]}  # fmt: skip
    assert canonical(value).decode() == (
        '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],'
        '"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}'
    )


EDGES = st.sampled_from(
    [0.0, -0.0, 1e-4, 9.99e-5, 1e15, 999999999999999.9, 1.5e15, 0.1, 100.25, 1e16, 1e21, 5e-324, 3.0]
)


@given(st.recursive(VALUES | EDGES | st.floats(1e-5, 1e16), lambda inner: st.lists(inner, max_size=4)))
def test_the_quick_way_writes_what_the_standards_own_library_writes(value: object) -> None:
    assert canonical(value) == rfc8785.dumps(value)


@given(VALUES)
def test_a_value_and_its_canonical_form_read_back_have_one_form(value: object) -> None:
    assert canonical(json.loads(canonical(value), parse_int=float)) == canonical(value)


@given(st.dictionaries(TEXTS, VALUES, min_size=2, max_size=6))
def test_the_order_of_fields_does_not_matter(value: dict[str, object]) -> None:
    assert canonical(dict(reversed(value.items()))) == canonical(value)


@pytest.mark.parametrize(
    "value", [2**53, -(2**60), float("nan"), float("inf"), "\ud800", {"\udfff": 1}, {1: 2}, b"x", {3}],
    ids=["large", "small", "nan", "infinity", "surrogate", "surrogate name", "number name", "bytes", "set"],
)  # fmt: skip
def test_what_json_cannot_carry_exactly_is_refused_with_the_way_out(value: object) -> None:
    with pytest.raises(InvalidArguments, match=r"no one canonical form: .*longer ones as texts"):
        canonical({"argument": value})


def test_nesting_without_end_is_refused() -> None:
    value: list[object] = []
    for _ in range(100_000):
        value = [value]
    with pytest.raises(InvalidArguments, match="nested too deeply"):
        canonical(value)


CALL = ("project.create", {"name": "Drone"}, "p1", "bob", "1.0.0")
OTHERS = [
    ("project.update", {"name": "Drone"}, "p1", "bob", "1.0.0"),
    ("project.create", {"name": "drone"}, "p1", "bob", "1.0.0"),
    ("project.create", {"name": "Drone", "extra": None}, "p1", "bob", "1.0.0"),
    ("project.create", {"name": "Drone"}, "p2", "bob", "1.0.0"),
    ("project.create", {"name": "Drone"}, "p1", "eve", "1.0.0"),
    ("project.create", {"name": "Drone"}, "p1", "bob", "1.0.1"),
]


@pytest.mark.parametrize("other", OTHERS)
def test_a_digest_tells_each_part_of_a_call_apart(other: tuple[str, dict[str, object], str, str, str]) -> None:
    assert call_digest(*other) != call_digest(*CALL)


def test_a_number_is_the_same_however_it_was_written() -> None:
    assert call_digest("t", {"a": 1.0}, "", "", "") == call_digest("t", {"a": 1}, "", "", "")
