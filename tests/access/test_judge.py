"""Keys, hosts and origins."""

import pytest

from metaforge.access.addresses import Addresses, is_loopback
from metaforge.access.identity import Denied, Identity
from metaforge.access.judge import Access
from metaforge.access.mode import auth_mode, auth_shown, check_stdio_key
from metaforge.core.errors import AuthDenied
from metaforge.settings import BadSetting, Settings

LOCAL = "127.0.0.1"
ISSUER = "https://login.example/realms/forge"


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
    ("mode", "key", "issuer", "expected"),
    [
        ("", "", "", "off"), ("", "k", "", "api_key"), ("", "", ISSUER, "oauth"), ("", "k", ISSUER, "api_key+oauth"),
        ("off", "k", ISSUER, "off"), ("API_KEY", "k", ISSUER, "api_key"),
        ("oauth+api_key", "k", ISSUER, "api_key+oauth"),
    ],
)  # fmt: skip
def test_the_mode_follows_from_what_is_set_unless_it_is_said(mode, key, issuer, expected):
    settings = Settings(auth_mode=mode, api_key=key, oauth_issuer=issuer)
    assert auth_mode(settings) == expected
    assert auth_shown(settings, over_stdio=False) == ("open" if expected == "off" else expected)


def test_stdio_reports_its_key_alone():
    assert auth_shown(Settings(oauth_issuer=ISSUER), over_stdio=True) == "open"
    assert auth_shown(Settings(oauth_issuer=ISSUER, api_key="k"), over_stdio=True) == "api_key"


@pytest.mark.parametrize(
    ("mode", "hint"),
    [
        ("oauth", "METAFORGE_OAUTH_ISSUER"), ("api_key", "METAFORGE_MCP_API_KEY"),
        ("api_key+oauth", "METAFORGE_MCP_API_KEY"), ("password", "use off, api_key, oauth, api_key"),
    ],
)  # fmt: skip
def test_a_mode_that_cannot_be_kept_is_refused(mode, hint):
    with pytest.raises(BadSetting, match=hint):
        auth_mode(Settings(auth_mode=mode))


@pytest.mark.parametrize(
    ("changes", "hint"),
    [
        ({"oauth_issuer": "http://login.example"}, "METAFORGE_OAUTH_ISSUER.*https"),
        ({"oauth_issuer": "login.example"}, "METAFORGE_OAUTH_ISSUER"),
        ({"oauth_jwks_url": "http://login.example/keys"}, "METAFORGE_OAUTH_JWKS_URL"),
        ({"oauth_audience": ()}, "METAFORGE_OAUTH_AUDIENCE"),
    ],
)
def test_an_issuer_that_others_could_play_is_refused(changes, hint):
    settings = Settings(**{"oauth_issuer": ISSUER, "oauth_audience": ("a",), **changes})
    with pytest.raises(BadSetting, match=hint):
        Access(settings, LOCAL)


def test_the_audience_follows_from_the_public_url():
    access = Access(Settings(oauth_issuer=ISSUER, public_url="https://forge.example/"), LOCAL)
    assert access.oauth.audiences == ("https://forge.example/mcp",)


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
async def test_only_the_key_opens(header, fine):
    access = Access(Settings(api_key="secret"), LOCAL)
    assert isinstance(await access.judge({b"authorization": header}), Identity) is fine


async def test_an_open_server_asks_for_nothing():
    found = await Access(Settings(), LOCAL).judge({})
    assert (found.actor_id, found.trust, found.verified) == ("anonymous", "untrusted", False)


async def test_a_key_outside_ascii_opens_too():
    access = Access(Settings(api_key="schlüssel"), LOCAL)
    for header in ("Bearer schlüssel", "bearer  schlüssel "):
        assert isinstance(await access.judge({b"authorization": header.encode()}), Identity)


def test_an_open_server_behind_a_public_url_is_refused():
    with pytest.raises(BadSetting, match="METAFORGE_PUBLIC_URL"):
        Access(Settings(public_url="https://forge.example"), LOCAL)
    assert Access(Settings(public_url="http://localhost:8000"), LOCAL).mode == "off"


def test_a_proxy_on_this_machine_speaks_for_its_public_name():
    access = Access(Settings(api_key="k", public_url="https://forge.example"), LOCAL)
    assert access.foreign({b"host": b"forge.example", b"origin": b"https://forge.example"}) == ""
    assert "evil" in access.foreign({b"host": b"forge.example", b"origin": b"https://evil.example"})
    assert access.foreign({b"host": b"evil.example"})


# -- guesses ------------------------------------------------------------------------------------------------------


def bearer(key: str, **more: str) -> dict[bytes, bytes]:
    told = {"authorization": f"Bearer {key}", **{name.replace("_", "-"): value for name, value in more.items()}}
    return {name.encode(): value.encode() for name, value in told.items()}


async def statuses(access, keys, peer=("203.0.113.7", 4000), **more):
    found = [await access.judge(bearer(key, **more), peer) for key in keys]
    return [each.status if isinstance(each, Denied) else 200 for each in found]


async def test_ten_different_wrong_keys_from_one_address_make_it_wait():
    access = Access(Settings(api_key="secret"), "0.0.0.0")
    assert await statuses(access, [f"guess-{n}" for n in range(11)]) == [401] * 10 + [429]
    refused = await access.judge(bearer("secret"), ("203.0.113.7", 4001))
    assert refused.status == 429, "the right key must not tell itself apart while guesses are refused"
    assert 1 <= int(dict(refused.headers)[b"retry-after"]) <= 60
    assert await statuses(access, ["secret"], ("203.0.113.8", 4000)) == [200]


async def test_a_client_with_an_old_key_locks_out_nobody():
    access = Access(Settings(api_key="secret"), "0.0.0.0")
    assert await statuses(access, ["old"] * 50 + ["secret"]) == [401] * 50 + [200]


async def test_requests_without_a_credential_are_no_guesses():
    access = Access(Settings(api_key="secret"), "0.0.0.0")
    for _ in range(50):
        assert (await access.judge({}, ("203.0.113.7", 1))).status == 401
    assert await statuses(access, ["secret"]) == [200]


async def test_an_address_is_listened_to_again_after_the_window():
    attempts = Access(Settings(api_key="secret"), LOCAL).attempts
    for n in range(10):
        attempts.note("a", f"guess-{n}", now=float(n))
    assert attempts.wait_seconds("a", now=10.0) == pytest.approx(50.0)
    assert attempts.wait_seconds("a", now=60.0) == 0.0
    assert attempts.wait_seconds("a", now=200.0) == 0.0
    assert len(attempts) == 0


async def test_counting_ends_a_minute_after_the_last_wrong_key():
    attempts = Access(Settings(api_key="secret"), LOCAL).attempts
    attempts.note("a", "x", now=0.0)
    assert attempts.wait_seconds("b", now=59.0) == 0.0
    assert len(attempts) == 1
    assert attempts.wait_seconds("b", now=60.0) == 0.0
    assert len(attempts) == 0


async def test_many_addresses_do_not_fill_the_memory():
    attempts = Access(Settings(api_key="secret"), LOCAL).attempts
    for n in range(6000):
        attempts.note(str(n), "x", now=0.0)
    assert len(attempts) == 4096


async def test_behind_a_trusted_proxy_clients_are_told_apart_and_elsewhere_not():
    guesses = [f"guess-{n}" for n in range(11)]
    trusting = Access(Settings(api_key="secret", trusted_proxies=("10.0.0.0/8",)), "0.0.0.0")
    proxy = ("10.1.2.3", 80)
    await statuses(trusting, guesses, proxy, x_forwarded_for="198.51.100.1, 203.0.113.7")
    assert await statuses(trusting, ["secret"], proxy, x_forwarded_for="203.0.113.7") == [429]
    assert await statuses(trusting, ["secret"], proxy, x_forwarded_for="203.0.113.8") == [200]
    wary = Access(Settings(api_key="secret"), "0.0.0.0")
    await statuses(wary, guesses, proxy, x_forwarded_for="203.0.113.7")
    assert await statuses(wary, ["secret"], proxy, x_forwarded_for="203.0.113.8") == [429], "anyone can write it"


def test_a_house_of_ipv6_addresses_is_one_address():
    addresses = Addresses()
    assert addresses.client(("2001:db8::1", 1), {}) == addresses.client(("2001:db8::ffff:1", 1), {})
    assert addresses.client(("::ffff:192.0.2.1", 1), {}) == "192.0.2.1"
    assert addresses.client(None, {}) == "unknown"


def test_a_proxy_that_is_no_address_is_refused():
    with pytest.raises(BadSetting, match="METAFORGE_TRUSTED_PROXIES"):
        Access(Settings(api_key="k", trusted_proxies=("proxy.lan",)), LOCAL)


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


async def test_a_request_without_the_key_is_401_and_says_why(web):
    response = await web.post({"jsonrpc": "2.0", "id": 1, "method": "ping"})

    assert response.status_code == 401
    assert response.headers["www-authenticate"].startswith("Bearer")
    assert response.json()["detail"]["error_type"] == "auth_error"
    assert "bearer key" in response.json()["detail"]["reason"]


async def test_health_is_open_and_metrics_are_not(web):
    assert (await web.http.get("/health")).status_code == 200
    assert (await web.http.get("/metrics")).status_code == 401


async def test_a_key_is_no_identity(web):
    web.http.headers["authorization"] = "Bearer secret"
    await web.initialize()
    await web.call("echo")

    caller = web.service.calls[0][3]
    assert (caller.trust, caller.actor_id, caller.verified) == ("untrusted", "api-key", False)
