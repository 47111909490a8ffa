"""Who may come in, from which page, with how much, and how browsers must treat what they get."""

import pytest

from metaforge.settings import Settings

KEY = "a-key-that-is-long-enough"
START = {"agent_code": "mechanical", "task_type": "design"}


async def test_every_answer_tells_browsers_what_they_may_do(served) -> None:
    for path in ("/v1/approvals", "/v1/nothing", "/nothing", "/v1/openapi.json"):
        headers = (await served.http.get(path)).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["cache-control"] == "no-store"
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert "server" not in headers


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "http://localhost:3000"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"host": "evil.example"},
    ],
)
async def test_another_sites_page_changes_nothing(served, headers) -> None:
    refused = await served.post("/v1/sessions", START, 403, headers=headers)

    assert refused["detail"]["error_type"] == "forbidden"
    assert (await served.get("/v1/sessions"))["total"] == 0


async def test_the_servers_own_page_and_programs_may(served) -> None:
    own = {"origin": f"http://127.0.0.1:{served.port}", "sec-fetch-site": "same-origin"}

    await served.post("/v1/sessions", START, 201, headers=own)
    await served.post("/v1/sessions", START, 201)


async def test_a_form_cannot_stand_for_json(served) -> None:
    answer = await served.http.post("/v1/sessions", content='{"agent_code": "a", "task_type": "b"}',
                                    headers={"content-type": "text/plain"})  # fmt: skip

    assert answer.status_code == 415
    assert answer.json()["detail"]["error_type"] == "unsupported_media_type"


async def test_a_body_beyond_the_limit_is_refused_with_or_without_its_length(served) -> None:
    large = b'{"agent_code": "' + b"a" * (1 << 20) + b'"}'

    async def parts():
        for start in range(0, len(large), 65536):
            yield large[start : start + 65536]

    for content in (large, parts()):
        answer = await served.http.post("/v1/sessions", content=content, headers={"content-type": "application/json"})
        assert answer.status_code == 413
        assert "METAFORGE_MAX_REQUEST_MB" in answer.json()["detail"]["reason"]


async def test_what_is_no_json_or_no_such_thing_has_the_one_shape(served) -> None:
    headers = {"content-type": "application/json"}
    for method, path, content, status in (
        ("POST", "/v1/sessions", b"{", 422), ("POST", "/v1/sessions", b"[" * 100_000, 400),
        ("GET", "/v1/nothing", b"", 404), ("DELETE", "/v1/sessions", b"", 405), ("PUT", "/v1/approvals", b"", 405),
    ):  # fmt: skip
        answer = await served.http.request(method, path, content=content, headers=headers)
        assert answer.status_code == status, (method, path, answer.text)
        assert set(answer.json()["detail"]) >= {"error_type", "reason"}
    assert (await served.http.delete("/v1/sessions")).headers["allow"] == "GET, POST"


class TestWithAKey:
    @pytest.fixture
    def settings(self, tmp_path) -> Settings:
        return Settings(home=tmp_path / "home", adapters=("none",), api_key=KEY)

    async def test_nothing_is_told_without_it(self, served) -> None:
        for path in ("/v1/approvals", "/v1/openapi.json", "/v1/approvals/events", "/v1/nothing"):
            answer = await served.http.get(path)
            assert answer.status_code == 401
            assert answer.json()["detail"]["error_type"] == "auth_error"
            assert answer.headers["www-authenticate"].startswith("Bearer")
        await served.get("/v1/approvals", 401, headers={"authorization": "Bearer wrong"})

    async def test_its_holder_decides_and_nobody_vouches_for_who_that_is(self, served) -> None:
        entry = served.hold()

        item = await served.post(
            f"/v1/approvals/tool:{entry.approval_id}/decision", {"decision": "approve"},
            headers={"authorization": f"Bearer {KEY}"},
        )  # fmt: skip

        assert item["decision"]["approver"] == "api-key"
        assert item["decision"]["approver_verified"] is False

    async def test_the_document_says_that_a_key_is_wanted(self, served) -> None:
        document = await served.get("/v1/openapi.json", headers={"authorization": f"Bearer {KEY}"})

        assert document["security"] == [{"bearer": []}]
        assert document["components"]["securitySchemes"]["bearer"] == {"type": "http", "scheme": "bearer"}

    async def test_a_person_who_looks_for_a_page_is_sent_to_sign_in(self, served) -> None:
        answer = await served.http.get("/approvals?status=all", headers={"accept": "text/html"})

        assert answer.status_code == 303
        assert answer.headers["location"] == "/sign-in?next=%2Fapprovals%3Fstatus%3Dall"

    async def test_a_session_cookie_alone_changes_nothing_over_the_api(self, served) -> None:
        browser = served.services.browser
        headers = {b"host": f"127.0.0.1:{served.port}".encode()}
        signed = await browser.sign_in(KEY, "Ada", headers)
        cookie = signed.cookie[1].decode().partition(";")[0]
        entry = served.hold()
        path = f"/v1/approvals/tool:{entry.approval_id}/decision"

        assert (await served.get("/v1/approvals", headers={"cookie": cookie}))["items"]
        refused = await served.post(path, {"decision": "approve"}, 403, headers={"cookie": cookie})
        assert refused["detail"]["error_type"] == "csrf"

        token = browser.csrf.token(signed.identity.session_id)
        item = await served.post(path, {"decision": "approve"}, headers={"cookie": cookie, "x-csrf-token": token})
        assert (item["decision"]["approver"], item["decision"]["approver_verified"]) == ("Ada", False)


class TestBehindAProxy:
    @pytest.fixture
    def settings(self, tmp_path) -> Settings:
        url = "https://forge.example"
        return Settings(home=tmp_path / "home", adapters=("none",), api_key=KEY, public_url=url)

    async def test_pages_of_the_public_address_may_change_things(self, served) -> None:
        headers = {"authorization": f"Bearer {KEY}", "origin": "https://forge.example", "host": "forge.example"}

        await served.post("/v1/sessions", START, 201, headers=headers)
        await served.post("/v1/sessions", START, 403, headers=headers | {"origin": "https://evil.example"})


async def test_the_mcp_server_is_reached_past_the_gateway(served) -> None:
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}

    answer = await served.post("/mcp", {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello})

    assert answer["result"]["serverInfo"]
    assert (await served.get("/health"))["service"] == "metaforge-mcp"
    metrics = await served.http.get("/metrics")
    assert metrics.headers["content-type"].startswith("text/plain")
    assert "metaforge_tool_calls" in metrics.text
    assert "content-security-policy" not in (await served.http.get("/health")).headers
