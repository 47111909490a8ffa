"""People in browsers: signing in, what the cookie is worth, and forms that only our pages can have made."""

import base64
import json
import re
import stat

import pytest
from joserfc import jwt
from joserfc.jwk import OctKey

from metaforge.access.browser import Browser, read_cookies
from metaforge.access.csrf import Csrf
from metaforge.access.identity import Denied, Identity
from metaforge.access.judge import Access
from metaforge.access.secret import SigningSecret
from metaforge.settings import BadSetting, Settings

PEER = ("203.0.113.7", 4000)


class Clock:
    def __init__(self) -> None:
        self.now = 1_900_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def make(tmp_path, clock):
    def browser(**settings):
        told = Settings(**{"home": tmp_path, "api_key": "secret", **settings})
        return Browser(Access(told, "127.0.0.1"), told, clock)

    return browser


def sent_back(*cookies):
    """Return the request header that a browser makes of `Set-Cookie` headers."""
    pairs = [value.decode().split(";")[0] for name, value in cookies if name == b"set-cookie"]
    return {b"cookie": "; ".join(pairs).encode()}


async def sign_in(browser, secret="secret", name="Anna"):
    signed = await browser.sign_in(secret, name, {}, PEER)
    assert not isinstance(signed, Denied), signed
    return signed


async def test_a_person_signs_in_with_the_key_and_is_known_by_the_cookie(make):
    browser = make()
    signed = await sign_in(browser)
    found = await browser.judge(sent_back(signed.cookie), PEER)
    assert found == signed.identity
    assert (found.name, found.verified, found.trust, found.actor_id) == ("Anna", False, "untrusted", "api-key")
    assert found.session_id


async def test_a_wrong_key_opens_nothing_and_is_counted(make):
    browser = make()
    codes = [(await browser.sign_in(f"guess-{n}", "", {}, PEER)).status for n in range(11)]
    assert codes == [401] * 10 + [429]
    assert (await browser.sign_in("secret", "", {}, PEER)).status == 429


async def test_the_cookie_is_not_for_scripts_and_not_for_other_sites(make):
    plain = (await sign_in(make())).cookie[1].decode()
    assert re.fullmatch(r"metaforge_session=[\w.-]+; Path=/; Max-Age=28800; HttpOnly; SameSite=Lax", plain)
    secure = (await sign_in(make(public_url="https://forge.example"))).cookie[1].decode()
    assert secure.startswith("__Host-metaforge_session=")
    assert secure.endswith("; Secure")


async def test_a_session_ends_after_eight_hours(make, clock):
    browser = make()
    cookie = sent_back((await sign_in(browser)).cookie)
    clock.now += 8 * 3600 - 1
    assert isinstance(await browser.judge(cookie), Identity)
    clock.now += 1
    assert (await browser.judge(cookie)).status == 401


async def test_signing_out_ends_the_session_for_a_copied_cookie_too(make):
    browser = make()
    signed = await sign_in(browser)
    name, gone = browser.sign_out(signed.identity)
    assert (name, b"Max-Age=0" in gone) == (b"set-cookie", True)
    assert (await browser.judge(sent_back(signed.cookie))).status == 401


async def test_a_new_key_ends_the_sessions_of_the_old_one(make):
    cookie = sent_back((await sign_in(make())).cookie)
    assert isinstance(await make().judge(cookie), Identity), "another process, or the next, knows the session"
    assert (await make(api_key="another").judge(cookie)).status == 401


async def test_a_changed_or_foreign_cookie_is_nobody(make, tmp_path):
    browser = make()
    signed = await sign_in(browser)
    text = sent_back(signed.cookie)[b"cookie"].decode().partition("=")[2]
    head, body, signature = text.split(".")
    claims = json.loads(base64.urlsafe_b64decode(body + "=="))
    forged = base64.urlsafe_b64encode(json.dumps(claims | {"name": "root"}).encode()).decode().rstrip("=")
    none = base64.urlsafe_b64encode(b'{"alg":"none","typ":"metaforge-session"}').decode().rstrip("=")
    secret = SigningSecret.of(Settings(home=tmp_path))
    other_kind = jwt.encode({"alg": "HS256"}, claims, OctKey.import_key(secret.key("sessions")))
    other_key = jwt.encode({"alg": "HS256", "typ": "metaforge-session"}, claims, OctKey.import_key(b"x" * 32))
    for wrong in (f"{head}.{forged}.{signature}", f"{none}.{body}.", other_kind, other_key, "", "a.b.c", "\xff"):
        cookie = {b"cookie": f"metaforge_session={wrong}".encode("latin-1")}
        assert (await browser.judge(cookie)).status == 401, wrong


async def test_a_session_does_not_open_the_machines_endpoint(serve, make, tmp_path):
    cookie = sent_back((await sign_in(make())).cookie)[b"cookie"].decode()
    web = await serve(Settings(api_key="secret", home=tmp_path))
    answer = await web.http.post("/mcp", content=b"{}", headers={"cookie": cookie})
    assert answer.status_code == 401


async def test_a_wrong_bearer_is_not_rescued_by_a_cookie(make):
    browser = make()
    cookie = sent_back((await sign_in(browser)).cookie)
    assert (await browser.judge(cookie | {b"authorization": b"Bearer wrong"}, PEER)).status == 401
    bearer = await browser.judge(cookie | {b"authorization": b"Bearer secret"}, PEER)
    assert bearer.session_id == "", "who shows a header needs no form token"


async def test_a_token_signs_in_a_verified_person_for_as_long_as_it_lasts(make, issuer, clock):
    import time

    clock.now = time.time()
    browser = make(api_key="", oauth_issuer=issuer.url, oauth_audience=("a",))
    token = issuer.token(aud="a", scope="metaforge:approve", exp=int(clock.now) + 1000)
    signed = await sign_in(browser, token, "somebody else")
    cookie = sent_back(signed.cookie)
    found = await browser.judge(cookie)
    assert (found.actor_id, found.name, found.verified) == ("user:anna-17", "anna (anna-17)", True)
    assert found.scopes == {"metaforge:approve"}
    clock.now += 1001
    assert (await browser.judge(cookie)).status == 401


async def test_another_issuer_ends_the_sessions_of_the_old_one(make, issuer):
    browser = make(api_key="", oauth_issuer=issuer.url, oauth_audience=("a",))
    cookie = sent_back((await sign_in(browser, issuer.token(aud="a", exp=1_900_000_900))).cookie)
    assert isinstance(await browser.judge(cookie), Identity)
    other = make(api_key="", oauth_issuer="https://login.example", oauth_audience=("a",))
    assert (await other.judge(cookie)).status == 401


async def test_an_open_server_asks_nobody_to_sign_in(make):
    browser = make(api_key="")
    assert (await browser.judge({})).actor_id == "anonymous"
    assert (await browser.sign_in("", "", {}, PEER)).status == 401


@pytest.mark.parametrize("name", ["  Anna  ", "Anna\n\x1b[31m", "A" * 500])
async def test_a_typed_name_is_kept_as_plain_text(make, name):
    found = (await sign_in(make(), name=name)).identity.name
    assert found.isprintable()
    assert len(found) <= 80


# -- forms --------------------------------------------------------------------------------------------------------


async def test_a_form_is_taken_from_the_browser_that_has_its_page_open(make):
    browser = make(api_key="")
    visit = browser.visit({})
    again = browser.visit(sent_back(visit.cookie))
    assert (again.browser_id, again.cookie) == (visit.browser_id, None)
    token = browser.csrf.token(visit.browser_id)
    assert browser.csrf.refusal(token, again.browser_id) == ""
    stranger = browser.visit({})
    assert browser.csrf.refusal(token, stranger.browser_id)
    assert browser.csrf.refusal("", visit.browser_id)
    assert browser.csrf.refusal(browser.csrf.token(""), "")


async def test_a_signed_in_browsers_forms_are_bound_to_its_session(make):
    browser = make()
    first, second = await sign_in(browser), await sign_in(browser)
    visits = [browser.visit(sent_back(each.cookie), each.identity) for each in (first, second)]
    assert visits[0].cookie is None
    assert browser.csrf.refusal(browser.csrf.token(visits[0].browser_id), visits[1].browser_id)


@pytest.mark.parametrize("value", ["", "x", "../" * 11, "a" * 31, "a" * 33])
def test_a_browser_does_not_choose_what_it_is_recognised_by(make, value):
    visit = make().visit({b"cookie": f"metaforge_visit={value}".encode()})
    assert visit.cookie is not None
    assert visit.browser_id != value


def test_tokens_of_two_servers_differ():
    tokens = {Csrf(SigningSecret(secret)).token("b") for secret in (b"1" * 32, b"2" * 32)}
    assert len(tokens) == 2


def test_the_first_of_two_cookies_by_one_name_counts():
    assert read_cookies({b"cookie": b'a=1; b="2"; a=3; c; =4'}) == {"a": "1", "b": "2", "": "4"}


# -- the secret ---------------------------------------------------------------------------------------------------


def test_the_secret_is_made_once_and_its_owners_alone(tmp_path):
    first = SigningSecret.of(Settings(home=tmp_path)).key("sessions")
    path = tmp_path / "secrets" / "sessions"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert SigningSecret.of(Settings(home=tmp_path)).key("sessions") == first
    assert list(path.parent.iterdir()) == [path]
    assert SigningSecret.of(Settings(home=tmp_path)).key("csrf") != first


def test_a_secret_that_is_set_is_used_and_a_short_one_refused(tmp_path):
    one, two = (SigningSecret.of(Settings(home=tmp_path / name, session_secret="s" * 32)) for name in "ab")
    assert one.key("sessions") == two.key("sessions")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(BadSetting, match="METAFORGE_SESSION_SECRET has 31"):
        SigningSecret.of(Settings(session_secret="s" * 31))
