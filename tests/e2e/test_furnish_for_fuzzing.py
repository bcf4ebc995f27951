"""The people and rows that `make test-fuzz` begins with, made here without schemathesis: else nobody would
notice that they cannot be made any more."""

import json
from pathlib import Path

import pytest

from tests.e2e.kit.platform import Platform
from tests.fuzz.danger import SPOILERS
from tests.fuzz.first_requests import FIRST
from tests.fuzz.furnish import SAME_BY_ANOTHER_NAME, furnish
from tests.rest.test_openapi import OPERATIONS
from tools.tests.mcp.oauth_service import serving_oauth
from tools.tests.services import say_json
from tools.tests.tool_service import function, serving

pytestmark = pytest.mark.e2e

STORED_RESPONSE = "DELETE /v1/responses/{response_id}"


def test_people_with_rows_are_made(running_platform: Platform, tmp_path: Path) -> None:
    apart = tmp_path / "apart.json"
    apart.write_text(json.dumps([*SAME_BY_ANOTHER_NAME, STORED_RESPONSE]))
    cast = json.loads(running_platform.command("-m", "tests.fuzz", str(apart)))
    with serving() as tool, serving_oauth() as protected:
        tool.route("/call", say_json({"content": "done"}))
        tool.functions = [function(), function("send", requires_approval=True)]
        furnish(running_platform, cast, tool, f"{protected.root}/mcp")
    assert all(party["credentials"] and party["values"] for party in cast["apart"].values())


def test_every_operation_that_is_named_is_there() -> None:
    there = {f"{method.upper()} {route.documented}" for route, method in OPERATIONS}
    assert {*SPOILERS, *FIRST, *SAME_BY_ANOTHER_NAME, STORED_RESPONSE} <= there
