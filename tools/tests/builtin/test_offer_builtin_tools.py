"""Offer this app's built-in tools as a running installation does."""

import asyncio
import subprocess
import sys

import pytest
from django.test import Client
from jsonschema.validators import Draft202012Validator

from accounts.models import User
from engine.tool_calls import ToolCall
from engine.trust import Exposure
from tools.calling.registry import offer_builtin_tools
from tools.calling.result_files import ResultFiles
from tools.calling.toolbox import ToolLimits, TurnToolbox
from tools.models import Tool
from tools.protocol import Circumstances


def test_time_and_arithmetic_are_always_offered():
    assert {"current_time", "calculate"} <= {
        tool.name for tool in offer_builtin_tools(Circumstances())
    }


def test_every_schema_is_one():
    for tool in offer_builtin_tools(Circumstances(has_library=True, has_sealed_blocks=True)):
        Draft202012Validator.check_schema(tool.spec.parameters)
        assert tool.spec.description


@pytest.mark.parametrize(
    ("name", "arguments", "ok", "content"),
    [
        ("calculate", '{"expression": "9.0 + 6.0"}', True, "15.0"),
        ("calculate", '{"expression": "1 / 0"}', False, "Division by zero."),
        ("calculate", "{}", False, "The arguments are wrong. expression: Field required."),
        ("current_time", "", True, "2026-03-02 06:05:09 (Monday), Asia/Shanghai, UTC+08:00"),
        (
            "current_time",
            '{"time_zone": null}',
            True,
            "2026-03-02 06:05:09 (Monday), Asia/Shanghai, UTC+08:00",
        ),
    ],
)
def test_they_answer_through_a_toolbox(context, name, arguments, ok, content):
    limits = ToolLimits(timeout_seconds=30, result_tokens=100, count=len)
    files = ResultFiles(context, vision=False)
    box = TurnToolbox(
        offer_builtin_tools(Circumstances()), context=context, limits=limits, files=files
    )
    result = asyncio.run(box.call(ToolCall("c", name, arguments), Exposure()))
    assert (result.ok, result.content) == (ok, content)
    assert box.is_safe_to_repeat(name)


def test_operators_see_why_a_tool_failed_and_change_nothing(alice):
    client = Client()
    client.force_login(User.objects.create_superuser("operator@example.com"))
    tool = Tool.objects.create(
        organization=alice.organization,
        user=alice.user,
        name="Weather",
        discovery_url="https://weather.example",
        api_key_sealed="sealed",
        last_error="It did not answer.",
    )
    pages = "/admin/tools/tool/"
    assert "It did not answer." in client.get(pages).content.decode()
    shown = client.get(f"{pages}{tool.pk}/change/").content.decode()
    assert "sealed" not in shown
    assert client.get(f"{pages}add/").status_code == 403


def test_offering_them_loads_nothing_heavy():
    """Idle workers pay for neither the HTTP client (4 MB), the provider's nor the parsers."""
    heavy = ("httpx2", "openai", "numpy", "lxml", "trafilatura")
    code = (
        "import os, sys, django\n"
        "os.environ['AMBER_ROLE'] = 'worker'\n"
        "django.setup()\n"
        "from tools.calling.registry import builtin_names\n"
        "assert 'web_browse' in builtin_names()\n"
        f"print(sorted(set({heavy}) & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
