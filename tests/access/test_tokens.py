"""Access tokens against a real issuer over real HTTP."""

import asyncio
import base64
import hmac
import json
import re
import time

import pytest
from joserfc import jwk

from metaforge.access.identity import Denied, Identity
from metaforge.access.judge import Access
from metaforge.settings import Settings

PEER = ("203.0.113.7", 4000)


def bearer(token):
    return {b"host": b"forge.example", b"authorization": f"Bearer {token}".encode()}


def unsigned(header, claims, signature=b""):
    parts = (json.dumps(header).encode(), json.dumps(claims).encode(), signature)
    return ".".join(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts)


@pytest.fixture
def access(oauth):
    return Access(oauth, "0.0.0.0")


async def refused(access, token, status=401):
    found = await access.judge(bearer(token), PEER)
    assert isinstance(found, Denied), found
    assert found.status == status, found.reason
    return found


async def test_a_good_token_is_a_verified_remote_caller(access, issuer):
    found = await access.judge(bearer(issuer.token(scope="forge:use forge:read")), PEER)
    assert isinstance(found, Identity)
    assert (found.actor_id, found.trust, found.verified) == ("user:anna-17", "remote", True)
    assert found.name == "anna (anna-17)", "many issuers let people choose the first"
    assert found.scopes == {"forge:use", "forge:read"}
    assert issuer.asked == ["/realms/forge/.well-known/openid-configuration", "/realms/forge/keys"]


async def test_nothing_is_asked_before_the_first_token(access, issuer):
    assert (await access.judge({b"host": b"forge.example"}, PEER)).status == 401
    assert access.known({}) is None
    assert issuer.asked == []


async def test_a_known_token_is_found_without_waiting_and_without_the_issuer(access, issuer):
    headers = bearer(issuer.token())
    first = await access.judge(headers, PEER)
    issuer.stop()
    assert access.known(headers, PEER) is first
    assert await access.judge(headers, PEER) is first


async def test_a_known_token_ends_when_it_says(access, issuer, monkeypatch):
    headers = bearer(issuer.token(exp=int(time.time()) + 100))
    await access.judge(headers, PEER)
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 98)
    assert access.known(headers, PEER) is not None
    monkeypatch.setattr(time, "time", lambda: now + 101)
    assert access.known(headers, PEER) is None


async def test_the_issuers_own_token_endpoint_opens_the_server(access, issuer):
    import httpx

    asked = {"grant_type": "client_credentials", "client_id": "ci", "resource": "https://forge.example/mcp"}
    async with httpx.AsyncClient() as http:
        token = (await http.post(f"{issuer.url}/token", data=asked)).json()["access_token"]
    found = await access.judge(bearer(token), PEER)
    assert (found.actor_id, found.trust, found.verified) == ("user:ci", "remote", False), "a client is no person"


@pytest.mark.parametrize(
    "claims",
    [
        {"sub": "ci", "client_id": "ci"}, {"sub": "ci", "client_id": None, "azp": "ci"},
        {"sub": "ci@clients", "client_id": "ci"}, {"gty": "client-credentials"}, {"idtyp": "app"},
        {"sub": "0b7c", "client_id": "ci", "preferred_username": "service-account-ci"},
    ],
)  # fmt: skip
async def test_a_clients_own_token_is_not_taken_for_a_person(access, issuer, claims):
    assert not (await access.judge(bearer(issuer.token(**claims)), PEER)).verified


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"exp": int(time.time()) - 3600}, "expired"),
        ({"exp": None}, "exp"),
        ({"exp": "never"}, "exp"),
        ({"nbf": int(time.time()) + 3600}, "not yet valid"),
        ({"iat": int(time.time()) + 3600}, "future"),
        (
            {"aud": "https://other.example/mcp"},
            r"for https://other.example/mcp, not for this server.*forge.example/mcp",
        ),
        ({"aud": ["a", "b"]}, "not for this server"),
        ({"aud": None}, "not for this server"),
        ({"iss": "https://evil.example"}, "from https://evil.example; this server believes http"),
        ({"iss": None}, "from None"),
        ({"sub": None}, "sub"),
        ({"sub": ""}, "sub"),
        ({"sub": "a\nb"}, "cannot be written down"),
        ({"sub": "x" * 201}, "cannot be written down"),
    ],
)
async def test_a_token_with_a_wrong_claim_is_refused_and_told_why(access, issuer, changes, reason):
    found = await refused(access, issuer.token(**changes))
    assert re.search(reason, found.reason), found.reason
    challenge = dict(found.headers)[b"www-authenticate"].decode()
    assert 'error="invalid_token"' in challenge


async def test_real_tokens_that_are_not_good_here_are_no_guesses(access, issuer):
    for n in range(20):
        await refused(access, issuer.token(exp=int(time.time()) - 3600, jti=str(n)))
    assert isinstance(await access.judge(bearer(issuer.token()), PEER), Identity)


async def test_one_of_several_audiences_is_enough(access, issuer):
    token = issuer.token(aud=["https://other.example", "https://forge.example/mcp"])
    assert isinstance(await access.judge(bearer(token), PEER), Identity)


async def test_an_unsigned_token_is_refused(access, issuer):
    for algorithm in ("none", "None", "NONE", ""):
        token = unsigned({"alg": algorithm, "typ": "at+jwt"}, issuer.claims())
        await refused(access, token)
    await refused(access, unsigned({"typ": "at+jwt"}, issuer.claims()))


async def test_the_public_key_is_no_shared_secret(access, issuer):
    public = issuer.keys["k1"]
    for secret in (public.as_pem(private=False), json.dumps(public.as_dict(private=False)).encode()):
        header, claims = {"alg": "HS256", "kid": "k1", "typ": "at+jwt"}, issuer.claims()
        signed = unsigned(header, claims).rpartition(".")[0]
        found = await refused(access, unsigned(header, claims, hmac.digest(secret, signed.encode(), "sha256")))
        assert "HS256" in found.reason


async def test_a_shared_secret_among_the_issuers_keys_is_not_used(access, issuer):
    secret = jwk.OctKey.generate_key(256, {"kid": "s"})
    issuer.key_set = {"keys": [secret.as_dict(private=True), issuer.keys["k1"].as_dict(private=False)]}
    await refused(access, issuer.token({"alg": "HS256", "kid": "s"}, secret))
    assert isinstance(await access.judge(bearer(issuer.token()), PEER), Identity)


async def test_a_key_in_the_token_itself_is_not_believed(access, issuer):
    own = jwk.RSAKey.generate_key(2048)
    header = {"jwk": own.as_dict(private=False), "kid": "k1"}
    await refused(access, issuer.token(header, own))
    await refused(access, issuer.token({"kid": None, "jwk": own.as_dict(private=False)}, own))
    await refused(access, issuer.token({"jku": "http://127.0.0.1:1/keys", "kid": "mine"}, own))


async def test_a_changed_claim_breaks_the_signature(access, issuer):
    head, _, signature = issuer.token().split(".")
    _, claims, _ = issuer.token(sub="root").split(".")
    assert "signature" in (await refused(access, f"{head}.{claims}.{signature}")).reason


async def test_another_algorithm_than_the_keys_is_refused(access, issuer):
    issuer.key_set = {"keys": [issuer.keys["k1"].as_dict(private=False) | {"alg": "RS512"}]}
    await refused(access, issuer.token())


@pytest.mark.parametrize(
    ("kind", "detail", "algorithm"),
    [
        ("RSA", 2048, "RS256"), ("RSA", 2048, "PS384"), ("EC", "P-256", "ES256"), ("EC", "P-384", "ES384"),
        ("OKP", "Ed25519", "EdDSA"), ("OKP", "Ed25519", "Ed25519"),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore::joserfc.errors.SecurityWarning")
async def test_every_asymmetric_signature_is_taken(access, issuer, kind, detail, algorithm):
    issuer.rotate("other", kind, detail)
    assert isinstance(await access.judge(bearer(issuer.token({"alg": algorithm})), PEER), Identity)


@pytest.mark.filterwarnings("ignore")
async def test_a_weak_key_is_not_used(access, issuer):
    issuer.rotate("weak", "RSA", 1024)
    issuer.key_set = {"keys": [issuer.keys["weak"].as_dict(private=False)]}
    found = await refused(access, issuer.token(), 503)
    assert "no signing key" in found.reason


@pytest.mark.parametrize("kind", ["id_token", "logout+jwt", "dpop+jwt"])
async def test_a_token_of_another_kind_is_no_access_token(access, issuer, kind):
    await refused(access, issuer.token({"typ": kind}))


@pytest.mark.parametrize(
    "text",
    [
        "..", "a.b.c", "x" * 20_000, "é.é.é", "e30.e30.", "bnVsbA.bnVsbA.bnVsbA",
        base64.urlsafe_b64encode(b"[" * 3000).decode().rstrip("=") + ".e30.AAAA",
        base64.urlsafe_b64encode(b'{"alg":"RS256","crit":["b64"],"b64":false}').decode().rstrip("=") + ".e30.AAAA",
        base64.urlsafe_b64encode(b'{"alg":["RS256"],"kid":{"a":1}}').decode().rstrip("=") + ".e30.AAAA",
        base64.urlsafe_b64encode(b'{"alg":"RS256","kid":7}').decode().rstrip("=") + ".e30.AAAA",
    ],
    ids=range(10),
)  # fmt: skip
async def test_what_is_no_token_is_refused(access, text):
    await refused(access, text)


async def test_claims_nested_without_end_are_refused(access, issuer):
    from joserfc import jws

    payload = b'{"a":' + b"[" * 5000 + b"]" * 5000 + b"}"
    token = jws.serialize_compact({"alg": "RS256", "kid": "k1"}, payload, issuer.keys["k1"])
    await refused(access, token)


# -- keys ---------------------------------------------------------------------------------------------------------


async def test_a_rotated_key_is_fetched_when_a_token_names_it(access, issuer):
    assert isinstance(await access.judge(bearer(issuer.token()), PEER), Identity)
    old = issuer.token(jti="later")
    issuer.rotate("k2")
    assert isinstance(await access.judge(bearer(issuer.token()), PEER), Identity)
    assert issuer.key_fetches == 2
    assert "no RSA key 'k1'" in (await refused(access, old)).reason


async def test_unknown_keys_make_the_server_ask_only_so_often(access, issuer):
    stranger = jwk.RSAKey.generate_key(2048)
    await access.judge(bearer(issuer.token()), PEER)
    for n in range(40):
        await access.judge(bearer(issuer.token({"kid": f"unknown-{n}"}, stranger)), (f"203.0.113.{n}", 1))
    assert 2 <= issuer.key_fetches <= 6
    assert isinstance(await access.judge(bearer(issuer.token()), PEER), Identity)


async def test_many_first_tokens_at_once_cost_one_fetch(access, issuer):
    tokens = [issuer.token(jti=str(n)) for n in range(20)]
    found = await asyncio.gather(*(access.judge(bearer(token), PEER) for token in tokens))
    assert all(isinstance(each, Identity) for each in found)
    assert issuer.key_fetches == 1


async def test_an_issuer_that_is_down_is_told_apart_from_a_bad_token(access, issuer):
    token = issuer.token()
    issuer.stop()
    found = await refused(access, token, 503)
    assert "cannot be reached" in found.reason
    assert dict(found.headers)[b"retry-after"] == b"3"
    assert len(access.attempts) == 0


async def test_known_keys_serve_on_while_the_issuer_is_down(access, issuer):
    keys = access.tokens.keys
    now = [1000.0]
    keys._clock = lambda: now[0]
    assert isinstance(await access.judge(bearer(issuer.token()), PEER), Identity)
    later = issuer.token(jti="2")
    much_later = issuer.token(jti="3")
    issuer.stop()
    now[0] += 2 * 3600
    assert isinstance(await access.judge(bearer(later), PEER), Identity)
    now[0] += 25 * 3600
    await refused(access, much_later, 503)


async def test_a_failed_fetch_is_not_repeated_at_once_and_mended_later(access, issuer):
    keys = access.tokens.keys
    now = [1000.0]
    keys._clock = lambda: now[0]
    token = issuer.token()
    issuer.stop()
    for _ in range(5):
        await refused(access, token, 503)
    assert keys.fetch_count == 1
    issuer.start(issuer.port)
    now[0] += 3.5
    assert isinstance(await access.judge(bearer(token), PEER), Identity)


async def test_fresh_keys_are_fetched_after_an_hour(access, issuer):
    keys = access.tokens.keys
    now = [1000.0]
    keys._clock = lambda: now[0]
    await access.judge(bearer(issuer.token(jti="1")), PEER)
    now[0] += 3601
    await access.judge(bearer(issuer.token(jti="2")), PEER)
    assert issuer.key_fetches == 2


@pytest.mark.parametrize(
    ("metadata", "reason"),
    [
        ({"issuer": "https://evil.example", "jwks_uri": "http://127.0.0.1:1/"}, "speaks for 'https://evil.example'"),
        ({}, "speaks for None"),
    ],
)
async def test_metadata_that_speaks_for_another_issuer_is_not_believed(access, issuer, metadata, reason):
    issuer.metadata = metadata
    assert reason in (await refused(access, issuer.token(), 503)).reason


@pytest.mark.parametrize("uri", [None, 7, "http://evil.example/keys", "file:///etc/passwd"])
async def test_keys_come_by_https_or_from_this_machine_alone(access, issuer, uri):
    issuer.metadata = {"issuer": issuer.url, "jwks_uri": uri}
    assert "METAFORGE_OAUTH_JWKS_URL" in (await refused(access, issuer.token(), 503)).reason


@pytest.mark.parametrize(
    "key_set", [b"<html>", b"[]", {}, {"keys": 7}, {"keys": [7, {"kty": "RSA", "n": "?"}]}, b"x" * 600_000]
)
async def test_a_broken_key_set_is_an_issuer_that_is_down(access, issuer, key_set):
    issuer.key_set = key_set
    await refused(access, issuer.token(), 503)


async def test_a_key_url_that_is_set_is_used_as_it_is(issuer):
    settings = Settings(
        oauth_issuer=issuer.url, oauth_audience=("https://forge.example/mcp",), oauth_jwks_url=f"{issuer.url}/keys"
    )
    assert isinstance(await Access(settings, "0.0.0.0").judge(bearer(issuer.token()), PEER), Identity)
    assert issuer.asked == ["/realms/forge/keys"]


# -- scopes and both kinds of credentials -------------------------------------------------------------------------


async def test_a_token_without_the_needed_scope_is_403_and_told_which(issuer):
    settings = Settings(
        oauth_issuer=issuer.url, oauth_audience=("https://forge.example/mcp",), oauth_scopes=("forge:use",)
    )
    access = Access(settings, "0.0.0.0")
    found = await refused(access, issuer.token(scope="forge:read"), 403)
    assert 'scope="forge:use", error="insufficient_scope"' in dict(found.headers)[b"www-authenticate"].decode()
    for claim in ({"scope": "x forge:use"}, {"scp": ["forge:use"]}, {"scp": "forge:use"}):
        assert isinstance(await access.judge(bearer(issuer.token(**claim)), PEER), Identity)


async def test_an_agents_token_does_not_decide_and_a_persons_does(access, issuer):
    agent = await access.judge(bearer(issuer.token()), PEER)
    person = await access.judge(bearer(issuer.token(scope="metaforge:approve")), PEER)
    assert access.may_decide(agent).status == 403
    assert access.may_decide(person) is None


async def test_where_no_scope_is_asked_every_token_decides(issuer):
    settings = Settings(oauth_issuer=issuer.url, oauth_audience=("a",), oauth_approve_scope="none")
    access = Access(settings, "0.0.0.0")
    assert access.may_decide(await access.judge(bearer(issuer.token(aud="a")), PEER)) is None


async def test_both_kinds_of_credentials_open_where_both_are_asked(issuer):
    access = Access(Settings(api_key="se.cr.et", oauth_issuer=issuer.url, oauth_audience=("a",)), "0.0.0.0")
    assert access.mode == "api_key+oauth"
    key = await access.judge(bearer("se.cr.et"), PEER)
    token = await access.judge(bearer(issuer.token(aud="a", sub="api-key")), PEER)
    assert (key.trust, token.trust) == ("untrusted", "remote")
    assert key.principal != token.principal
    assert key.actor_id != token.actor_id, "a subject cannot pass for the key's holder"
    await refused(access, "wrong")
    await refused(access, issuer.token())


async def test_the_key_opens_nothing_where_only_tokens_are_taken(issuer):
    settings = Settings(auth_mode="oauth", api_key="secret", oauth_issuer=issuer.url, oauth_audience=("a",))
    await refused(Access(settings, "0.0.0.0"), "secret")


async def test_forged_tokens_make_an_address_wait(access, issuer):
    stranger = jwk.RSAKey.generate_key(2048)
    await access.judge(bearer(issuer.token()), PEER)
    for n in range(10):
        await refused(access, issuer.token(key=stranger, jti=str(n)))
    await refused(access, issuer.token(key=stranger, jti="10"), 429)
