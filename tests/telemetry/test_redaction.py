import pytest

from metaforge.telemetry.redaction import REDACTED, is_secret, redact


@pytest.mark.parametrize(
    "name",
    [
        "password", "PASSWORD", "db_password", "passwd", "passphrase", "secret", "client_secret", "api_key", "apiKey",
        "X-API-Key", "METAFORGE_MCP_API_KEY", "METAFORGE_MCP_CLIENT_KEY", "authorization", "Proxy-Authorization",
        "access_token", "token", "refreshToken", "cookie", "Set-Cookie", "private_key", "credentials", "ssh-key",
    ],
)  # fmt: skip
def test_names_of_secrets_are_known_in_any_spelling(name: str) -> None:
    assert is_secret(name)


@pytest.mark.parametrize(
    "name",
    ["key", "item_key", "progressToken", "max_tokens", "tokens_count", "pin", "material", "keypad_mm", "monkey", ""],
)
def test_ordinary_names_are_left_alone(name: str) -> None:
    assert not is_secret(name)


def test_secrets_are_taken_out_at_any_depth_and_the_original_stays() -> None:
    given = {"a": [{"token": "t", "n": 1}], "b": ("x", {"password": {"old": "o"}}), "api_key": "", "secret": None}
    before = repr(given)
    assert redact(given) == {
        "a": [{"token": REDACTED, "n": 1}],
        "b": ["x", {"password": REDACTED}],
        "api_key": "",
        "secret": None,
    }
    assert repr(given) == before


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("postgresql+psycopg://anna:s3cret@host:5432/db", f"postgresql+psycopg://anna:{REDACTED}@host:5432/db"),
        ("redis://:pw@host", f"redis://:{REDACTED}@host"),
        ("sent Authorization: Bearer abcDEF123.456-x_y", f"sent Authorization: Bearer {REDACTED}"),
        ("https://host:8080/path?at=12:30@noon", "https://host:8080/path?at=12:30@noon"),
        ("the bearer carries 5000 N", "the bearer carries 5000 N"),
        ("metaforge://artefacts/abc", "metaforge://artefacts/abc"),
    ],
)
def test_secrets_inside_text_are_taken_out_by_their_form(text: str, clean: str) -> None:
    assert redact(text) == clean


def test_data_nested_without_end_is_cut_off() -> None:
    endless: dict[str, object] = {}
    endless["self"] = endless
    assert "nested deeper" in repr(redact(endless))
