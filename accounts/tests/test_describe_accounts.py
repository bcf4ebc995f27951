"""What the OpenAPI document says about credentials."""

from typing import Any

import pytest

from tests.fixtures.personas import api


@pytest.fixture(scope="module")
def document() -> Any:
    return api().get("/api/schema/", {"format": "json"}).json()


@pytest.mark.parametrize(
    ("path", "method", "credentials"),
    [
        ("me/", "get", ["apiKey", "session"]),
        ("me/", "patch", ["session"]),
        ("api-keys/", "get", ["session"]),
        ("organizations/", "get", ["apiKey", "session"]),
    ],
)
def test_says_which_credentials_are_taken(document, path, method, credentials):
    security = document["paths"][f"/api/v1/{path}"][method]["security"]
    assert [name for choice in security for name in choice] == credentials


def test_describes_the_credentials(document):
    schemes = document["components"]["securitySchemes"]
    assert schemes["apiKey"]["scheme"] == "bearer"
    assert schemes["session"]["in"] == "cookie"


def test_hangs_errors_on_operations(document):
    responses = document["paths"]["/api/v1/api-keys/{key_id}/"]["patch"]["responses"]
    assert {"400", "401", "403", "404", "409"} <= set(responses)


def test_secrets_are_shown_by_the_answers_that_make_them_only(document):
    schemas = document["components"]["schemas"]
    assert "key" in schemas["IssuedApiKey"]["properties"]
    assert "key" not in schemas["ApiKey"]["properties"]
    assert "token" not in schemas["Invitation"]["properties"]
    assert not any(
        "sha256" in name for schema in schemas.values() for name in schema.get("properties", ())
    )
