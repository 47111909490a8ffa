"""The official client finds the issuer from our 401, gets a token there, and is let in."""

import asyncio

import httpx2
from mcp import Client
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from mcp.client.streamable_http import streamable_http_client

from metaforge.settings import Settings

LIMIT_SECONDS = 20


class Storage:
    """Keeps what the client was given."""

    def __init__(self):
        self.tokens = None
        self.client = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client_info):
        self.client = client_info


async def test_it_gets_a_token_by_itself_and_calls_a_tool(serve, issuer, free_port):
    url = f"http://127.0.0.1:{free_port}"
    web = await serve(Settings(oauth_issuer=issuer.url, public_url=url, oauth_scopes=("forge:use",)), free_port)
    auth = ClientCredentialsOAuthProvider(
        f"{url}/mcp", Storage(), "ci", "hush", "client_secret_post", "forge:use", issuer=issuer.url
    )
    async with (
        asyncio.timeout(LIMIT_SECONDS),
        httpx2.AsyncClient(auth=auth) as http,
        Client(streamable_http_client(f"{url}/mcp", http_client=http), mode="legacy") as client,
    ):
        called = await client.call_tool("tiny.echo", {"text": "hello"})

    assert called.structured_content["echo"] == "hello"
    caller = web.service.calls[0][3]
    assert (caller.actor_id, caller.trust, caller.verified) == ("user:ci", "remote", False)
