"""Test that a role is in both tables and on the page about them, and fits its column."""

import re
from pathlib import Path

from chats.messages.roles import POLICIES
from chats.models import ChatMessage
from engine.messages import ROLES, MessageRole

PAGE = Path(__file__).parents[3] / "docs" / "architecture.md"


def test_every_role_is_in_both_tables():
    assert set(ROLES) == set(POLICIES) == set(MessageRole)


def test_every_role_is_described():
    table = PAGE.read_text().partition("\n## Roles\n")[2].partition('"Content needed"')[0]
    assert set(re.findall(r"`(\w+)`", table)) >= set(MessageRole)


def test_every_role_fits_its_column():
    column = ChatMessage._meta.get_field("role")
    assert column.max_length is not None
    assert max(map(len, MessageRole)) <= column.max_length
