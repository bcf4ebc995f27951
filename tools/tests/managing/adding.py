"""Add tools of the weather service over REST; what the answers tell."""

from typing import Any

from tests.fixtures.personas import api
from tools.models import Tool
from tools.tests.tool_service import ToolService

ALL = "/api/v1/tools/"
KEY = "key-of-the-weather"


def of(tool: Any, verb: str = "") -> str:
    return f"{ALL}{tool['id'] if isinstance(tool, dict) else tool.pk}/{verb}"


def add(persona: Any, service: ToolService, **body: Any) -> Any:
    return api(persona).post(ALL, {"kind": "discovery", "discovery_url": service.url} | body)


def added(persona: Any, service: ToolService, **body: Any) -> Tool:
    answer = add(persona, service, **body)
    assert answer.status_code == 201, answer.json()
    return Tool.objects.get(pk=answer.json()["id"])


def fields_of(answer: Any) -> dict[str, list[str]]:
    assert answer.status_code == 400, answer.json()
    return dict(answer.json()["error"].get("fields", {}))
