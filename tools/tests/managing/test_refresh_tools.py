"""Refresh tools daily: which services are asked, which are not, and what a failure keeps."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from tests.fixtures.personas import OPERATOR
from tools.connections import refreshing
from tools.models import Tool
from tools.services import create_tool, update_tool
from tools.tests.tool_service import function

pytestmark = pytest.mark.django_db


@pytest.fixture
def new_tool(bob, weather):
    def make(**columns: Any) -> Tool:
        tool = create_tool(
            bob.principal, given={"kind": "discovery", "discovery_url": weather.url, "api_key": "k"}
        )
        Tool.objects.filter(pk=tool.pk).update(**columns)
        tool.refresh_from_db()
        return tool

    return make


def hours_ago(hours: float) -> Any:
    return timezone.now() - timedelta(hours=hours)


def names_of(tool: Tool) -> list[str]:
    tool.refresh_from_db()
    return [each["name"] for each in tool.data["functions"]]


def test_tools_are_asked_once_a_day(new_tool, weather):
    due, fresh = new_tool(tried_at=hours_ago(25)), new_tool(tried_at=hours_ago(23))
    never = new_tool(tried_at=None)
    weather.functions = [function("tornado")]
    refreshing.refresh_due()
    assert names_of(due) == names_of(never) == ["tornado"]
    assert names_of(fresh) == ["forecast"]
    assert due.tried_at == due.refreshed_at > hours_ago(1)
    asked = len(weather.asked)
    refreshing.refresh_due()
    assert len(weather.asked) == asked


def test_a_failure_keeps_what_was_known_and_is_not_hammered(new_tool, weather):
    tool = new_tool(tried_at=hours_ago(25), refreshed_at=hours_ago(25))
    weather.fields = {"name": ""}
    refreshing.refresh_due()
    assert names_of(tool) == ["forecast"]
    assert "name: This must not be empty." in tool.last_error
    assert tool.refreshed_at < hours_ago(24) < tool.tried_at
    asked = len(weather.asked)
    refreshing.refresh_due()
    assert len(weather.asked) == asked


def test_one_that_fails_stops_no_other(new_tool, weather):
    unreadable = new_tool(tried_at=hours_ago(50), api_key_sealed="v1.lost.key")
    moved = new_tool(tried_at=hours_ago(40), discovery_url="http://10.0.0.1/")
    good = new_tool(tried_at=hours_ago(30), last_error="Before.")
    refreshing.refresh_due()
    for tool in (unreadable, moved, good):
        tool.refresh_from_db()
    assert "key cannot be read" in unreadable.last_error
    assert "not one that Amber may call" in moved.last_error
    assert good.last_error == ""
    assert Tool.objects.filter(tried_at__lt=hours_ago(24)).count() == 0


def test_one_that_breaks_amber_holds_up_no_other(new_tool, weather, monkeypatch):
    monkeypatch.setattr(refreshing, "BATCH", 1)
    broken, good = new_tool(tried_at=hours_ago(50)), new_tool(tried_at=hours_ago(30))
    Tool.objects.filter(pk=broken.pk).update(kind="gone")
    with pytest.raises(KeyError):
        refreshing.refresh_due()
    weather.functions = [function("tornado")]
    refreshing.refresh_due()
    assert names_of(good) == ["tornado"]


def test_the_longest_untried_come_first(new_tool, weather, monkeypatch):
    monkeypatch.setattr(refreshing, "BATCH", 1)
    monkeypatch.setattr(refreshing, "BUDGET_SECONDS", 0.0)
    asked: list[Tool] = []
    monkeypatch.setattr(refreshing, "refresh", asked.extend)
    second, first = new_tool(tried_at=hours_ago(30)), new_tool(tried_at=hours_ago(40))
    assert list(refreshing._find_due()) == [first, second]
    refreshing.refresh_due()
    assert asked == [], "without time nothing is begun"


def test_every_due_tool_gets_its_turn_in_batches(new_tool, weather, monkeypatch):
    monkeypatch.setattr(refreshing, "BATCH", 2)
    for _ in range(5):
        new_tool(tried_at=None)
    asked = len(weather.asked)
    refreshing.refresh_due()
    assert len(weather.asked) == asked + 5


def test_pasted_documents_are_nobodys_to_ask(new_tool, weather):
    tool = new_tool(discovery_url="", tried_at=None)
    asked = len(weather.asked)
    refreshing.refresh_due()
    tool.refresh_from_db()
    assert (len(weather.asked), tool.tried_at) == (asked, None)


def test_what_a_person_changed_meanwhile_stays(new_tool, weather):
    stale = new_tool(tried_at=None)
    update_tool(Tool.objects.get(pk=stale.pk), changes={"api_key": "another"}, by=OPERATOR)
    before = Tool.objects.values().get(pk=stale.pk)
    weather.functions = [function("tornado")]
    refreshing.refresh([stale])
    assert Tool.objects.values().get(pk=stale.pk) == before
