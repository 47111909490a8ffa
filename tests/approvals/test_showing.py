import base64
import hashlib
import json
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


LONG = {"name": "Drone", "content": "é" * 100_000, "points": [[number, number] for number in range(50_000)]}


def test_what_is_too_long_to_read_is_told_by_its_size_and_digest() -> None:
    shown = shown_arguments(LONG)
    digest = hashlib.sha256(LONG["content"].encode()).hexdigest()
    assert shown["name"] == "Drone"
    assert shown["content"] == f"{'é' * 800} ... [100000 characters in all, SHA-256 {digest}]"
    assert shown["points"].startswith("[50000 items, ")


def test_a_file_that_somebody_knows_is_known_again_by_its_digest() -> None:
    step = base64.b64encode(b"ISO-10303-21;" * 20_000).decode()
    shown = shown_arguments({"step_base64": step})["step_base64"]
    assert shown.endswith(f"SHA-256 {hashlib.sha256(step.encode()).hexdigest()}]")


def test_a_page_of_text_is_shown_whole() -> None:
    arguments = {"content": "word " * 12_000, "table": [{"row": number} for number in range(1000)]}
    assert shown_arguments(arguments) == arguments


@pytest.mark.parametrize(
    "arguments",
    [
        LONG,
        ARGUMENTS,
        {f"text_{number}": "x" * 60_000 for number in range(10)},
        {f"text_{number}": "x" * 5_000 for number in range(1000)},
        {"deep": {"er": [{"a": "x" * 70_000}, *({"b": number} for number in range(9000))]}},
    ],
    ids=["long", "secrets", "many long", "very many", "deep"],
)
def test_what_was_shown_is_shown_the_same_again_and_is_bounded(arguments: dict[str, Any]) -> None:
    shown = shown_arguments(arguments)
    assert shown_arguments(shown) == shown
    assert len(json.dumps(shown)) < max(300_000, 1_100 * len(arguments))
    assert restored(shown, arguments) == arguments


def test_a_long_value_can_be_replaced_but_not_mended_at_its_beginning() -> None:
    shown = shown_arguments(LONG)
    assert restored(shown | {"content": "short"}, LONG) == LONG | {"content": "short"}
    with pytest.raises(InvalidArguments, match="only the beginning of a longer value"):
        restored(shown | {"content": "E" + shown["content"]}, LONG)


def test_secrets_stay_hidden_in_what_is_too_long() -> None:
    text = "https://bob:hunter2@host/ " + "x" * 100_000
    shown = str(shown_arguments({"content": text, "list": [{"password": "s3cret"}] * 9000}))
    assert "hunter2" not in shown
    assert "s3cret" not in shown
    assert hashlib.sha256(text.encode()).hexdigest() not in shown
