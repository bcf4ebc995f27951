"""Let operators talk to an assistant: each question is a turn without a chat, run as any other.

The page keeps the conversation and sends it along. The turn belongs to the operator, in the
assistant's organization, and its texts are deleted as those of all turns without a chat.
"""

from collections.abc import Mapping
from typing import Any

import orjson
from django.http import HttpRequest
from django.utils.translation import gettext as _

from accounts.models import Role, User
from accounts.principal import Principal
from accounts.sign_in.authentication import browser_session
from amber.lib.errors import Invalid, Missing
from assistants.models import Assistant
from chats import services
from chats.api.serializers import TryInput
from chats.models import Turn
from engine.messages import MessageRole


def operator_principal(request: HttpRequest, assistant: Assistant) -> Principal:
    """Return the operator as an admin of the assistant's organization."""
    assert isinstance(request.user, User)
    session = browser_session(request)
    return Principal(assistant.organization_id, request.user, role=Role.ADMIN, session=session)


def start_trial(principal: Principal, assistant: Assistant, posted: Mapping[str, str]) -> Turn:
    """Start the turn of a question. Raises Invalid, and what starting a turn raises."""
    body = {"content": posted.get("content", ""), "history": _read_history(posted)}
    given = TryInput(data=body)
    if not given.is_valid():
        fields = {name: [str(text) for text in said] for name, said in given.errors.items()}
        raise Invalid(fields=fields)
    question = {"role": MessageRole.HUMAN.value, "content": given.validated_data["content"]}
    messages = [*given.validated_data["history"], question]
    return services.start_stateless_turn(principal, assistant=assistant, messages=messages)


def find_trial(principal: Principal, assistant: Assistant, turn_id: Any) -> Turn:
    """Return a turn that this operator started with this assistant. Raises Missing."""
    mine = Turn.objects.filter(chat=None, user=principal.user, assistant=assistant)
    rows = mine.filter(organization_id=assistant.organization_id, pk=turn_id)
    turn: Turn | None = rows.first()
    if turn is None:
        raise Missing
    return turn


def _read_history(posted: Mapping[str, str]) -> Any:
    try:
        return orjson.loads(posted.get("history") or "[]")
    except orjson.JSONDecodeError:
        raise Invalid(fields={"history": [_("This is not valid JSON.")]}) from None
