from typing import Any

import pytest

from metaforge.approvals.showing import restored, shown_arguments
from metaforge.core.errors import InvalidArguments

ARGUMENTS = {
    "name": "Drone",
    "api_key": "s3cret",
    "source": {"url": "https://bob:hunter2@host/x", "headers": [{"Authorization": "Bearer abcdefghijk"}, "plain"]},
    "empty_password": "",
}


def test_secrets_are_not_shown_wherever_they_are() -> None:
    told = str(shown_arguments(ARGUMENTS))
    assert not any(secret in told for secret in ("s3cret", "hunter2", "abcdefghijk"))
    assert "Drone" in told
    assert "plain" in told


def test_what_was_shown_and_sent_back_is_what_was_hidden() -> None:
    assert restored(shown_arguments(ARGUMENTS), ARGUMENTS) == ARGUMENTS


def test_changes_beside_a_hidden_value_keep_it() -> None:
    edited = shown_arguments(ARGUMENTS) | {"name": "Glider", "count": 3}
    assert restored(edited, ARGUMENTS) == ARGUMENTS | {"name": "Glider", "count": 3}


def test_a_hidden_value_can_be_replaced_and_removed() -> None:
    edited = shown_arguments(ARGUMENTS) | {"api_key": "other"}
    del edited["source"]
    assert restored(edited, ARGUMENTS) == {"name": "Drone", "api_key": "other", "empty_password": ""}


def test_one_is_not_true() -> None:
    assert restored({"a": True}, {"a": 1})["a"] is True


@pytest.mark.parametrize("edited", [
    {"name": "[redacted]"}, {"other": "[redacted]"}, {"source": {"headers": ["x", "y", "[redacted]"]}},
    {"nested": {"deep": ["Bearer [redacted]"]}},
])  # fmt: skip
def test_a_mark_that_hides_nothing_is_refused(edited: dict[str, Any]) -> None:
    with pytest.raises(InvalidArguments, match="stands for nothing there"):
        restored(edited, ARGUMENTS)
