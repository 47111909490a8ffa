"""A small issuer on a real socket: metadata, keys, and a token endpoint; it can rotate its keys and go away."""

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

from joserfc import jwk, jwt

AUDIENCE = "https://forge.example/mcp"
FIRST = jwk.generate_key("RSA", 2048, {"kid": "k1", "use": "sig"})
"""Making one takes a while; every issuer begins with this."""


class Issuer:
    """Signs tokens with keys whose public halves it serves."""

    def __init__(self) -> None:
        self.keys: dict[str, Any]
        self.signing_id: str
        self.asked: list[str] = []
        self.metadata: dict[str, Any] | None = None
        self.key_set: Any = None
        """What to serve instead of the keys."""
        self.keys, self.signing_id = {"k1": FIRST}, "k1"
        self._server: ThreadingHTTPServer | None = None
        self.start()
        self.url = f"http://127.0.0.1:{self.port}/realms/forge"

    def start(self, port: int = 0) -> None:
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                issuer.asked.append(self.path)
                body = issuer._document(self.path)
                self._answer(404 if body is None else 200, body or {})

            def do_POST(self) -> None:
                length = int(self.headers["content-length"])
                asked = {name: each[0] for name, each in parse_qs(self.rfile.read(length).decode()).items()}
                client = {"sub": asked["client_id"], "client_id": asked["client_id"], "preferred_username": None}
                token = issuer.token(**client, aud=asked["resource"], scope=asked.get("scope", ""))
                self._answer(200, {"access_token": token, "token_type": "Bearer", "expires_in": 3600})

            def _answer(self, status: int, body: Any) -> None:
                text = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    def stop(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._thread.join()
            self._server = None

    def rotate(self, key_id: str, kind: str = "RSA", detail: Any = 2048, *, keep: bool = False) -> None:
        """Sign with a new key; the old ones are gone unless they are kept."""
        if not keep:
            self.keys = {}
        self.keys[key_id] = jwk.generate_key(kind, detail, {"kid": key_id, "use": "sig"})
        self.signing_id = key_id

    def _document(self, path: str) -> Any:
        if path == "/realms/forge/.well-known/openid-configuration":
            found = {
                "issuer": self.url, "jwks_uri": f"{self.url}/keys", "token_endpoint": f"{self.url}/token",
                "authorization_endpoint": f"{self.url}/authorize", "response_types_supported": ["code"],
                "grant_types_supported": ["client_credentials"],
                "token_endpoint_auth_methods_supported": ["client_secret_post"],
            }  # fmt: skip
            return found if self.metadata is None else self.metadata
        if path == "/realms/forge/keys":
            public = [key.as_dict(private=False) for key in self.keys.values()]
            return {"keys": public} if self.key_set is None else self.key_set
        return None

    @property
    def key_fetches(self) -> int:
        return self.asked.count("/realms/forge/keys")

    def claims(self, **changes: Any) -> dict[str, Any]:
        now = int(time.time())
        found = {
            "iss": self.url, "sub": "anna-17", "aud": AUDIENCE, "iat": now, "exp": now + 600,
            "client_id": "claude-code", "preferred_username": "anna",
        }  # fmt: skip
        return {name: value for name, value in (found | changes).items() if value is not None}

    def token(self, header: dict[str, Any] | None = None, key: Any = None, **changes: Any) -> str:
        head = {"alg": "RS256", "kid": self.signing_id, "typ": "at+jwt", **(header or {})}
        head = {name: value for name, value in head.items() if value is not None}
        signing = key or self.keys.get(head.get("kid", self.signing_id)) or self.keys[self.signing_id]
        return jwt.encode(head, self.claims(**changes), signing, algorithms=[head["alg"]])
