"""Run an MCP server that wants OAuth, with its authorization server, on 127.0.0.1."""

import base64
import hashlib
import json
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tools.tests.mcp.service import Running, Seen, make_server

Json = dict[str, Any]


@dataclass
class OAuthService:
    """Its tokens and codes; `says` changes what it tells of itself, and `faults` make it fail."""

    port: int = 0
    says: Json = field(default_factory=dict)
    resource: Json = field(default_factory=dict)
    registers: bool = True
    lifetime_seconds: int | None = 3_600
    faults: set[str] = field(default_factory=set)
    clients: dict[str, Json] = field(default_factory=dict)
    codes: dict[str, Json] = field(default_factory=dict)
    access: set[str] = field(default_factory=set)
    refresh: dict[str, str] = field(default_factory=dict)
    token_requests: list[dict[str, str]] = field(default_factory=list)
    seen: Seen = field(default_factory=Seen)

    @property
    def root(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def let_in(self, page: str) -> Json:
        """Do what the person does who says yes: return the query that the browser comes back with."""
        parts = urlsplit(page)
        asked = {name: values[0] for name, values in parse_qs(parts.query).items()}
        assert f"{parts.scheme}://{parts.netloc}{parts.path}" == f"{self.root}/authorize"
        assert asked["redirect_uri"] in self.clients[asked["client_id"]]["redirect_uris"]
        assert asked["code_challenge_method"] == "S256"
        assert asked["resource"] == f"{self.root}/mcp"
        code = secrets.token_urlsafe()
        self.codes[code] = asked
        return {"code": code, "state": asked["state"]}

    def app(self) -> Any:
        inner = make_server(self.seen).streamable_http_app()

        async def answer(scope: Any, receive: Any, send: Any) -> None:
            if scope["type"] != "http" or self._is_let_in(scope):
                await inner(scope, receive, send)
                return
            body, more = b"", True
            while more:
                message = await receive()
                body += message.get("body", b"")
                more = message.get("more_body", False)
            status, told, headers = self._answer(scope, body)
            raw = [(b"content-type", b"application/json"), *headers]
            await send({"type": "http.response.start", "status": status, "headers": raw})
            await send({"type": "http.response.body", "body": json.dumps(told).encode()})

        return answer

    def _is_let_in(self, scope: Any) -> bool:
        token = dict(scope["headers"]).get(b"authorization", b"").decode().removeprefix("Bearer ")
        return scope["path"] == "/mcp" and token in self.access

    def _answer(self, scope: Any, body: bytes) -> tuple[int, Any, list[Any]]:
        match scope["path"]:
            case "/mcp":
                place = f"{self.root}/.well-known/oauth-protected-resource/mcp"
                said = f'Bearer resource_metadata="{place}", scope="tools"'
                return 401, {}, [(b"www-authenticate", said.encode())]
            case "/.well-known/oauth-protected-resource/mcp":
                told = {"resource": f"{self.root}/mcp", "authorization_servers": [self.root]}
                return 200, told | self.resource, []
            case "/.well-known/oauth-authorization-server":
                return 200, self._metadata(), []
            case "/register" if self.registers:
                made = json.loads(body) | {"client_id": secrets.token_hex(8)}
                self.clients[made["client_id"]] = made
                return 201, made, []
            case "/token":
                return self._token(
                    {name: values[0] for name, values in parse_qs(body.decode()).items()}
                )
        return 404, {}, []

    def _metadata(self) -> Json:
        told = {
            "issuer": self.root,
            "authorization_endpoint": f"{self.root}/authorize",
            "token_endpoint": f"{self.root}/token",
            "response_types_supported": ["code"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none"],
        }
        if self.registers:
            told["registration_endpoint"] = f"{self.root}/register"
        return told | self.says

    def _token(self, form: dict[str, str]) -> tuple[int, Any, list[Any]]:
        self.token_requests.append(form)
        if "down" in self.faults:
            return 503, {}, []
        if form["grant_type"] == "authorization_code":
            asked = self.codes.pop(form["code"], None)
            digest = hashlib.sha256(form["code_verifier"].encode()).digest()
            challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
            is_good = (
                asked is not None
                and asked["code_challenge"] == challenge
                and asked["client_id"] == form["client_id"]
            )
        else:
            is_good = self.refresh.pop(form["refresh_token"], None) == form["client_id"]
        if not is_good or form["resource"] != f"{self.root}/mcp":
            return 400, {"error": "invalid_grant"}, []
        token, again = f"access-{secrets.token_hex(8)}", f"refresh-{secrets.token_hex(8)}"
        self.access.add(token)
        self.refresh[again] = form["client_id"]
        told: Json = {"access_token": token, "token_type": "Bearer", "refresh_token": again}
        if self.lifetime_seconds is not None:
            told["expires_in"] = self.lifetime_seconds
        return 200, told, []


@contextmanager
def serving_oauth() -> Iterator[OAuthService]:
    service = OAuthService()
    running = Running(service.app)
    service.port = running.port
    try:
        yield service
    finally:
        running.stop()
