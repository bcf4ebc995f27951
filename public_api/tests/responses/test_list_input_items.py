"""GET /v1/responses/{id}/input_items with OpenAI's own client: what a response was asked, page by page."""

import openai
import pytest
from openai.types.responses import ResponseItemList

from chats.models import Turn
from chats.tests.rows import new_assistant
from libraries.models import File
from public_api.responses.inputs import input_items
from public_api.tests.completions import png_url
from public_api.tests.live_server import sdk
from public_api.tests.responses.test_create_responses import SIX, WEATHER, call_weather
from tests.fakes.answers import answer_text

pytestmark = pytest.mark.django_db(transaction=True)

NOTED = [
    {"role": "user", "content": [{"type": "input_text", "text": "One"}]},
    {"role": "assistant", "content": "Two"},
    {"role": "developer", "content": "Be brief."},
    {"role": "user", "content": SIX},
]


def listed(client, response_id, **query):
    page = client.get(
        f"/responses/{response_id}/input_items", cast_to=ResponseItemList, options={"params": query}
    )
    return page.to_dict()


def told(items):
    """Who said what, oldest first."""
    return [(item["role"], item["content"][0]["text"]) for item in items]


def test_lists_the_items_that_were_sent_the_newest_first(client, model):
    response = client.responses.create(model="fake-model", input=NOTED)
    items = [item.to_dict() for item in client.responses.input_items.list(response.id)]
    assert told(items[::-1]) == [
        ("user", "One"),
        ("assistant", "Two"),
        ("system", "Be brief."),
        ("user", SIX),
    ]
    assert {item["type"] for item in items} == {"message"}
    assert items[-1]["content"] == [{"type": "input_text", "text": "One"}]
    again = listed(client, response.id, order="asc")
    assert again["data"] == items[::-1]
    assert (again["first_id"], again["last_id"]) == (items[-1]["id"], items[0]["id"])
    assert again["has_more"] is False


def test_a_long_conversation_comes_in_pages(client, model):
    response = client.responses.create(model="fake-model", input=NOTED)
    pages = list(client.responses.input_items.list(response.id, limit=1, order="asc").iter_pages())
    assert len(pages) == 4
    ids = [page.data[0].id for page in pages]
    assert len(set(ids)) == 4
    rest = listed(client, response.id, after=ids[1], order="asc", limit=2)
    assert [item["id"] for item in rest["data"]] == ids[2:]
    assert rest["has_more"] is False
    assert listed(client, response.id, after=ids[2])["data"][0]["id"] == ids[1]
    nothing = listed(client, response.id, after=ids[0])
    assert (nothing["data"], nothing["has_more"]) == ([], False)


def test_calls_and_results_are_items(client, model):
    first = call_weather(client)
    (call,) = first.output
    result = {"type": "function_call_output", "call_id": call.call_id, "output": "Rain."}
    second = client.responses.create(
        model="fake-model", input=[result], previous_response_id=first.id, tools=[WEATHER]
    )
    question, called, answered = listed(client, second.id, order="asc")["data"]
    assert told([question]) == [("user", "Will it rain?")]
    assert (called["call_id"], called["arguments"]) == (call.call_id, call.arguments)
    assert (answered["type"], answered["output"]) == ("function_call_output", "Rain.")
    assert answered["call_id"] == call.call_id


def test_what_came_before_is_part_of_it(client, model):
    first = client.responses.create(model="fake-model", input=SIX, instructions="Only now.")
    second = client.responses.create(
        model="fake-model", input="And?", previous_response_id=first.id
    )
    items = listed(client, second.id, order="asc")["data"]
    assert told(items) == [("user", SIX), ("assistant", answer_text(6)), ("user", "And?")]
    assert told(listed(client, first.id)["data"]) == [("user", SIX)]


def test_calls_of_the_assistants_own_are_not_shown(client, model, new_model, alice):
    new_model("fake-parallel-tools")
    new_assistant(alice, model="fake-parallel-tools", slug="ada")
    first = client.responses.create(model="assistant:ada", input="both")
    assert Turn.objects.get().step == 2
    second = client.responses.create(
        model="fake-model", input="And?", previous_response_id=first.id
    )
    items = listed(client, second.id, order="asc")["data"]
    assert [item["type"] for item in items] == ["message"] * 3
    assert told(items)[1] == ("assistant", first.output_text)


def test_an_image_stands_with_its_question(client, model):
    parts = [
        {"type": "input_text", "text": SIX},
        {"type": "input_image", "image_url": png_url(), "detail": "auto"},
    ]
    response = client.responses.create(
        model="fake-model", input=[{"role": "user", "content": parts}]
    )
    (item,) = listed(client, response.id)["data"]
    assert item["content"][1] == {
        "type": "input_image",
        "detail": "auto",
        "file_id": str(File.objects.get().pk),
        "image_url": None,
    }


def test_an_image_alone_is_an_item():
    entries = [{"role": "human", "content": ""}, {"role": "file", "content": "", "file_id": "f1"}]
    (item,) = input_items("0" * 32, entries)
    assert (item["role"], item["content"][0]["file_id"]) == ("user", "f1")


def test_in_a_stored_chat_they_are_what_was_new(client, model):
    first = client.responses.create(model="fake-model", input=SIX, metadata={"chat_id": "new"})
    new = [{"role": "user", "content": "And?"}, {"role": "user", "content": "[[fake tokens=2]]"}]
    second = client.responses.create(model="fake-model", input=new, previous_response_id=first.id)
    assert told(listed(client, first.id)["data"]) == [("user", SIX)]
    items = listed(client, second.id, order="asc")["data"]
    assert told(items) == [("user", "And?"), ("user", "[[fake tokens=2]]")]


@pytest.mark.parametrize(
    ("query", "param"),
    [({"limit": 0}, "limit"), ({"limit": 101}, "limit"), ({"order": "up"}, "order"), ({"after": "x"}, "after")],
    ids=["none", "too many", "order", "unknown item"],
)  # fmt: skip
def test_bad_queries_name_what_is_wrong(client, model, query, param):
    response = client.responses.create(model="fake-model", input=SIX)
    with pytest.raises(openai.BadRequestError) as caught:
        listed(client, response.id, **query)
    assert caught.value.param == param


def test_what_is_not_stored_has_none(client, model):
    response = client.responses.create(model="fake-model", input=SIX, store=False)
    with pytest.raises(openai.NotFoundError):
        listed(client, response.id)


def test_they_are_the_askers_alone(client, address, model, mallory):
    response = client.responses.create(model="fake-model", input=SIX)
    guests = client.responses.create(model="fake-model", input=SIX, user="ann")
    _, secret = mallory.new_key(scopes=["public"])
    with sdk(address, secret) as other, pytest.raises(openai.NotFoundError):
        listed(other, response.id)
    with pytest.raises(openai.NotFoundError):
        listed(client, guests.id)
    assert told(listed(client, guests.id, user="ann")["data"]) == [("user", SIX)]
