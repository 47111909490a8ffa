"""Keys, hosts and origins."""

import pytest

from metaforge.core.errors import AuthDenied
from metaforge.mcp.access import Access, auth_mode, check_stdio_key, is_loopback
from metaforge.settings import BadSetting, Settings

LOCAL = "127.0.0.1"


@pytest.mark.parametrize(
    ("host", "yes"),
    [
        ("127.0.0.1", True), ("127.8.8.8", True), ("localhost", True), ("LOCALHOST", True), ("::1", True), 
        ("[::1]", True), ("0.0.0.0", False), ("::", False), ("10.0.0.1", False), ("example.com", False), ("", False),
        ("localhost.evil.example", False),
    ],
)  # fmt: skip
def test_loopback_is_told_from_the_rest(host, yes):
    assert is_loopback(host) is yes


@pytest.mark.parametrize(
    ("mode", "key", "expected"),
    [("", "", "off"), ("", "k", "api_key"), ("off", "k", "off"), ("API_KEY", "k", "api_key")],
)
def test_the_mode_follows_from_the_key_unless_it_is_said(mode, key, expected):
    assert auth_mode(Settings(auth_mode=mode, api_key=key)) == expected


@pytest.mark.parametrize(("mode", "key", "hint"), [("oauth", "", "api_key"), ("api_key", "", "METAFORGE_MCP_API_KEY")])
def test_a_mode_that_cannot_be_kept_is_refused(mode, key, hint):
    with pytest.raises(BadSetting, match=hint):
        auth_mode(Settings(auth_mode=mode, api_key=key))


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.1.2.3", "example.com"])
def test_an_open_server_listens_to_this_machine_only(host):
    with pytest.raises(BadSetting, match="METAFORGE_MCP_API_KEY"):
        Access(Settings(), host)
    assert Access(Settings(api_key="k"), host).mode == "api_key"


@pytest.mark.parametrize(
    ("header", "fine"),
    [
        (b"Bearer secret", True), (b"bearer secret", True), (b"Bearer  secret ", True), (b"", False),
        (b"Bearer", False), (b"Bearer ", False), (b"Basic secret", False), (b"Bearer wrong", False),
        (b"Bearer secret2", False), (b"Bearer \xe9", False),
    ],
)  # fmt: skip
def test_only_the_key_opens(header, fine):
    access = Access(Settings(api_key="secret"), LOCAL)
    assert (access.denied({b"authorization": header}) == "") is fine


def test_an_open_server_asks_for_nothing():
    assert Access(Settings(), LOCAL).denied({}) == ""


def test_a_server_for_others_takes_any_host_but_no_page_of_another():
    access = Access(Settings(api_key="k"), "0.0.0.0")
    assert access.foreign({b"host": b"cad.lan:8765"}) == ""
    assert access.foreign({b"host": b"cad.lan:8765", b"origin": b"https://cad.lan"}) == ""
    assert "evil" in access.foreign({b"host": b"cad.lan:8765", b"origin": b"https://evil.example"})


def test_a_malformed_host_is_foreign():
    access = Access(Settings(), LOCAL)
    for host in (b"", b"[::1", b"//", b"a b"):
        assert access.foreign({b"host": host})


@pytest.mark.parametrize("client_key", ["", "wrong", "secret "])
def test_a_stdio_client_must_bring_the_key_where_one_is_set(client_key):
    with pytest.raises(AuthDenied, match="auth_error"):
        check_stdio_key(Settings(api_key="secret", client_key=client_key))


def test_a_stdio_client_with_the_key_or_without_any_passes():
    check_stdio_key(Settings(api_key="secret", client_key="secret"))
    check_stdio_key(Settings())


@pytest.fixture
def settings() -> Settings:
    return Settings(api_key="secret")


async def test_a_request_without_the_key_is_401_and_says_why(web):
    response = await web.post({"jsonrpc": "2.0", "id": 1, "method": "ping"})

    assert response.status_code == 401
    assert response.headers["www-authenticate"].startswith("Bearer")
    assert response.json()["detail"]["error_type"] == "auth_error"
    assert "bearer key" in response.json()["detail"]["reason"]


async def test_health_is_open_and_metrics_are_not(web):
    assert (await web.http.get("/health")).status_code == 200
    assert (await web.http.get("/metrics")).status_code == 401


async def test_a_client_with_the_key_is_a_known_remote_caller(web):
    web.http.headers["authorization"] = "Bearer secret"
    await web.initialize()
    await web.call("echo")

    caller = web.service.calls[0][3]
    assert (caller.trust, caller.actor_id) == ("remote", "api-key")
