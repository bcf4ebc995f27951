"""Test the built-in tool `search_library`: offered only with a library that the turn may search."""

import pytest

from amber.lib.database.tenant import as_tenant
from chats.tests.rows import new_assistant, new_chat, new_turn, path_of, say
from chats.tests.runs import ask, marker, prepared_for, run
from engine.events import TurnStatus
from libraries.models import Library
from libraries.tests.ledger import ingest, new_document, new_library
from tools.protocol import ToolContext, ToolError
from tools.tests.services import call

pytestmark = pytest.mark.django_db(transaction=True)

PUMP = "The pump is bled by opening the valve on its left side until no air comes out."
TEA = "Green tea is steeped at seventy degrees for two minutes."


@pytest.fixture(autouse=True)
def media(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path


@pytest.fixture
def library(alice):
    """Two documents, and a third in another library that says the same."""
    made = new_library(alice)
    new_document(made, PUMP, name="pump.txt")
    new_document(made, TEA, name="tea.txt")
    ingest()
    made.refresh_from_db()
    return made


@pytest.fixture
def offered(alice, new_model):
    """The names of the tools that a turn of an assistant with this library is offered."""
    new_model("text-model", default=True)

    def names(library, content="How is the pump bled?", **fields):
        assistant = new_assistant(alice, library=library, **fields)
        chat = new_chat(alice, assistant=assistant)
        say(chat, content)
        turn = new_turn(chat, assistant=assistant)
        prepared = prepared_for(turn)
        return {spec.name for spec in prepared.toolbox.specs}

    return names


def context_of(persona, *libraries):
    return ToolContext(
        organization_id=persona.organization.pk,
        user_id=persona.user.pk,
        library_ids=tuple(library.pk for library in libraries),
    )


# -- When it is offered ----------------------------------------------------------------------------


def test_is_offered_with_a_library(offered, library):
    assert "search_library" in offered(library)
    assert "search_library" in offered(library, content="Hello")
    assert "search_library" not in offered(None)
    assert "search_library" not in offered(library, disabled_builtin_tools=["search_library"])


def test_is_not_offered_with_a_library_that_its_owner_keeps_to_himself(offered, library, bob):
    library.user = bob.user
    library.save()
    assert "search_library" not in offered(library)
    library.shared = True
    library.save()
    assert "search_library" in offered(library)


# -- What it finds ---------------------------------------------------------------------------------


def test_passages_are_numbered_under_the_name_of_their_document(library, alice):
    found = call("search_library", {"query": "How is the pump bled?"}, context_of(alice, library))
    assert found.text.startswith(f"[1] pump.txt\n{PUMP}")


def test_no_more_than_asked_for(library, alice):
    query = {"query": "pump valve, or green tea", "count": 1}
    assert "[2]" not in call("search_library", query, context_of(alice, library)).text


def test_what_is_not_there_is_not_found(library, alice):
    found = call("search_library", {"query": "quarterly revenue"}, context_of(alice, library))
    assert found.text.startswith("The library holds nothing relevant to this question.")


@pytest.mark.parametrize("query", ["", "  ", "x" * 2_001])
def test_a_query_has_its_limits(library, alice, query):
    with pytest.raises(ToolError, match="1 to 2,000 characters"):
        call("search_library", {"query": query}, context_of(alice, library))


def test_nothing_is_found_outside_of_the_turn_s_libraries(library, alice, mallory):
    empty = new_library(alice)
    strangers = ToolContext(
        organization_id=mallory.organization.pk,
        user_id=mallory.user.pk,
        library_ids=(library.pk,),
    )
    for given in (context_of(alice), context_of(alice, empty), strangers):
        assert "pump" not in call("search_library", {"query": "pump"}, given).text


def test_a_library_that_only_the_assistants_creator_sees_is_searched_for_others(
    library, alice, bob
):
    with as_tenant(bob.principal.tenant):
        assert not Library.objects.exists()
        found = call("search_library", {"query": "How is the pump bled?"}, context_of(bob, library))
    assert found.text.startswith("[1] pump.txt")


def test_a_turn_searches_its_library(library, alice, new_model):
    new_model()
    query = marker("search_library", {"query": "How is the pump bled?"})
    turn = ask(alice, content=query, library=library)
    assert run(turn) == TurnStatus.COMPLETED
    assert dict(path_of(turn.chat))["tool"].startswith(f"[1] pump.txt\n{PUMP}")
