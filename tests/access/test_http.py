"""Credentials on the wire: challenges, metadata, and sessions that stay with the credential that opened them."""

import json
import time

import pytest

from metaforge.settings import Settings

PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "tiny.echo", "arguments": {}}}
LEGACY = {"jsonrpc": "2.0", "id": 1, "method": "tool/call", "params": {"tool_id": "tiny.echo", "arguments": {}}}
KEY = "k" * 32


def stateless(method="tools/call", **params):
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
    }
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}


async def post_stateless(web, tool, token, **more):
    message = stateless(name=f"tiny.{tool}", arguments={}, **more)
    headers = {
        "mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": f"tiny.{tool}",
        "authorization": f"Bearer {token}", "accept": "application/json, text/event-stream",
    }  # fmt: skip
    return await web.http.post("/mcp", content=json.dumps(message), headers=headers)


@pytest.fixture
async def guarded(serve, oauth):
    return await serve(oauth)


def show(web, token):
    web.http.headers["authorization"] = f"Bearer {token}"


async def test_a_client_finds_its_way_from_the_401_to_the_issuer(guarded, issuer):
    refused = await guarded.post(PING)
    assert refused.status_code == 401
    assert refused.json()["detail"]["error_type"] == "auth_error"
    challenge = refused.headers["www-authenticate"]
    url = f"http://127.0.0.1:{guarded.port}/.well-known/oauth-protected-resource/mcp"
    assert challenge == f'Bearer resource_metadata="{url}"'
    found = await guarded.http.get(url)
    assert found.status_code == 200
    assert found.json() == {
        "resource": f"http://127.0.0.1:{guarded.port}/mcp",
        "authorization_servers": [issuer.url],
        "bearer_methods_supported": ["header"],
        "resource_name": "MetaForge",
    }
    assert (await guarded.http.get("/.well-known/oauth-protected-resource")).json() == found.json()
    assert (await guarded.http.get("/.well-known/openid-configuration")).status_code == 401


async def test_metadata_names_the_public_url_and_the_scopes(serve, issuer):
    settings = Settings(oauth_issuer=issuer.url, public_url="https://forge.example/", oauth_scopes=("forge:use",))
    web = await serve(settings)
    found = (await web.http.get("/.well-known/oauth-protected-resource/mcp")).json()
    assert found["resource"] == "https://forge.example/mcp"
    assert found["scopes_supported"] == ["forge:use"]
    challenge = (await web.post(PING)).headers["www-authenticate"]
    assert challenge == (
        'Bearer resource_metadata="https://forge.example/.well-known/oauth-protected-resource/mcp", scope="forge:use"'
    )


async def test_a_server_that_takes_no_tokens_names_no_issuer(web):
    assert (await web.http.get("/.well-known/oauth-protected-resource")).status_code == 401
    assert "resource_metadata" not in (await web.post(PING)).headers["www-authenticate"]


async def test_a_header_cannot_break_out_of_the_challenge(guarded):
    answer = await guarded.http.post(
        "/mcp", content=b"{}", headers={"host": '127.0.0.1", error="x', "authorization": "Bearer a.b.c"}
    )
    assert answer.status_code in (401, 403)
    assert 'error="x' not in answer.headers.get("www-authenticate", "")


async def test_a_token_opens_every_dialect_as_the_same_verified_person(guarded, issuer):
    token = issuer.token()
    show(guarded, token)
    await guarded.initialize()
    assert (await guarded.call("echo")).status_code == 200
    assert (await post_stateless(guarded, "echo", token)).status_code == 200
    assert (await guarded.post(LEGACY, path="/rpc")).status_code == 200
    callers = [call[3] for call in guarded.service.calls]
    assert [(each.actor_id, each.trust, each.verified) for each in callers] == [("user:anna-17", "remote", True)] * 3


async def test_a_session_is_not_there_for_another_credential(guarded, issuer):
    show(guarded, issuer.token())
    await guarded.initialize()
    show(guarded, issuer.token(sub="mallory"))
    assert (await guarded.post(CALL)).status_code == 404
    assert (await guarded.http.get("/mcp", headers=guarded.headers())).status_code == 404
    assert (await guarded.http.delete("/mcp", headers=guarded.headers())).status_code == 404
    show(guarded, issuer.token(client_id="other-client"))
    assert (await guarded.post(CALL)).status_code == 404
    show(guarded, issuer.token(jti="renewed"))
    assert (await guarded.post(CALL)).status_code == 200, "a renewed token goes on with its session"
    assert [call[3].actor_id for call in guarded.service.calls] == ["user:anna-17"]


async def test_the_legacy_dialect_does_not_lend_a_session_to_another_credential(guarded, issuer):
    show(guarded, issuer.token())
    await guarded.initialize()
    show(guarded, issuer.token(sub="mallory"))
    assert (await guarded.post(LEGACY, path="/rpc")).status_code == 200
    caller = guarded.service.calls[0][3]
    assert (caller.actor_id, caller.session_id) == ("user:mallory", "")


async def test_a_key_and_a_token_do_not_share_a_session(serve, issuer):
    web = await serve(Settings(api_key="secret", oauth_issuer=issuer.url, oauth_audience=("a",)))
    show(web, "secret")
    await web.initialize()
    show(web, issuer.token(aud="a"))
    assert (await web.post(CALL)).status_code == 404


async def test_clients_that_say_the_same_of_themselves_are_told_apart_by_their_tokens(guarded, issuer):
    for subject in ("anna", "ben", "anna"):
        assert (await post_stateless(guarded, "echo", issuer.token(sub=subject))).status_code == 200
    assert [call[3].actor_id for call in guarded.service.calls] == ["user:anna", "user:ben", "user:anna"]


async def test_an_answer_to_a_question_is_taken_from_its_own_caller_alone(guarded, issuer):
    asked = (await post_stateless(guarded, "ask", issuer.token())).json()["result"]
    assert asked["resultType"] == "input_required"
    key = next(iter(asked["inputRequests"]))
    answer = {
        "requestState": asked["requestState"],
        "inputResponses": {key: {"action": "accept", "content": {"approve": True}}},
    }
    stolen = (await post_stateless(guarded, "ask", issuer.token(sub="mallory"), **answer)).json()
    assert "requestState is not valid" in stolen["error"]["message"]
    own = (await post_stateless(guarded, "ask", issuer.token(jti="renewed"), **answer)).json()
    assert own["result"]["structuredContent"]["reply"]["action"] == "accept"


async def test_an_expired_token_is_refused_in_the_middle_of_a_session(guarded, issuer, monkeypatch):
    show(guarded, issuer.token())
    await guarded.initialize()
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 700)
    monkeypatch.setattr(guarded.app._access.tokens, "_clock", lambda: now + 700)
    refused = await guarded.post(CALL)
    assert refused.status_code == 401
    assert "expired" in refused.json()["detail"]["reason"]


async def test_an_issuer_that_is_down_is_503_and_says_when_to_try_again(guarded, issuer):
    token = issuer.token()
    issuer.stop()
    show(guarded, token)
    answer = await guarded.post(PING)
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "3")


async def test_guesses_are_429_and_say_when_to_try_again(web):
    codes = []
    for n in range(11):
        show(web, f"guess-{n}")
        answer = await web.post(PING)
        codes.append(answer.status_code)
    assert codes == [401] * 10 + [429]
    assert 1 <= int(answer.headers["retry-after"]) <= 60
    assert answer.json()["detail"]["error_type"] == "auth_error"


async def test_the_worker_says_with_each_request_which_run_it_serves(serve):
    web = await serve(Settings(api_key="secret", service_key=KEY))
    show(web, "secret")
    await web.initialize()
    for run in ("run-1", "run-2", ""):
        await web.call("echo", x_metaforge_service_key=KEY, x_metaforge_run=run, x_metaforge_phase="concept")
    await web.call("echo", x_metaforge_service_key="wrong" * 8, x_metaforge_run="run-3")
    told = [call[3].service and call[3].service.run_id for call in web.service.calls]
    assert told == ["run-1", "run-2", None, None]
    assert {call[3].trust for call in web.service.calls} == {"untrusted"}, (
        "the run is looked up before anybody is trusted"
    )


async def test_an_event_stream_ends_with_the_token_that_opened_it(guarded, issuer, monkeypatch):
    show(guarded, issuer.token(exp=int(time.time()) + 100))
    await guarded.initialize()
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 97)
    monkeypatch.setattr(guarded.app, "_loop", Hurried(guarded.app._loop))
    async with guarded.http.stream("GET", "/mcp", headers=guarded.headers()) as response:
        assert response.status_code == 200
        assert [line async for line in response.aiter_lines() if line] == [": open"]
    assert guarded.app._loop.asked_seconds == pytest.approx(3, abs=1.5)


class Hurried:
    """A loop on which timers strike at once."""

    def __init__(self, loop):
        self._loop = loop
        self.asked_seconds = 0.0

    def call_later(self, seconds, act):
        self.asked_seconds = seconds
        return self._loop.call_soon(act)

    def __getattr__(self, name):
        return getattr(self._loop, name)
