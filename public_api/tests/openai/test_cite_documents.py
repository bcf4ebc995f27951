"""Answers of assistants with a library over /v1: their marks are annotations, whole and streamed."""

from typing import Any

import pytest

from chats.tests.rows import new_assistant
from libraries.models import Document
from libraries.tests.ledger import ingest, new_document, new_library
from providers.models import OFFLINE_URL, LanguageModel, Provider

pytestmark = pytest.mark.django_db(transaction=True)

QUESTION = "How is the pump bled?"
PUMP = "The pump is bled by opening the valve on its left side until no air comes out."
ASKED: Any = {"model": "assistant:ada", "messages": [{"role": "user", "content": QUESTION}]}
ROOT = "https://amber.example.com"


@pytest.fixture(autouse=True)
def quoting(alice, provider, settings, tmp_path):
    """An assistant that quotes what was found for the question."""
    settings.MEDIA_ROOT = tmp_path
    settings.AMBER_PUBLIC_URL = ROOT
    offline = Provider.objects.create(name="Offline model", base_url=OFFLINE_URL)
    LanguageModel.objects.create(
        provider=offline, alias="quoting", upstream_id="offline", default=True
    )
    library = new_library(alice)
    new_document(library, PUMP, name="pump.txt")
    ingest()
    return new_assistant(alice, model="quoting", library=library, slug="ada")


def assert_is_of_the_document(cited: dict[str, Any], text: str) -> None:
    assert text[cited["start_index"] : cited["end_index"]] == "[1]"
    assert cited["title"] == "pump.txt"
    assert cited["url"] == f"{ROOT}/api/v1/documents/{Document.objects.get().pk}/"


def test_a_completion_says_what_it_cites(client):
    message = client.chat.completions.create(**ASKED).choices[0].message
    annotation = message.annotations[0].to_dict()
    assert_is_of_the_document(annotation["url_citation"], message.content)
    document = annotation["document"]
    assert (document["id"], document["name"]) == (str(Document.objects.get().pk), "pump.txt")
    assert PUMP[document["start"] : document["end"]]


def test_a_stream_of_chunks_says_it_before_its_end(client):
    chunks = list(client.chat.completions.create(**ASKED, stream=True))
    whole = client.chat.completions.create(**ASKED).choices[0].message
    *_, last_but_one, last = (chunk.choices[0] for chunk in chunks)
    assert last.finish_reason == "stop"
    told = last_but_one.delta.to_dict()["annotations"]
    assert told == [each.to_dict() for each in whole.annotations]


def test_a_response_says_it_and_its_events_say_it(client):
    asked = {"model": "assistant:ada", "input": QUESTION}
    part = client.responses.create(**asked).output[0].content[0]
    assert_is_of_the_document(part.annotations[0].to_dict(), part.text)
    events = list(client.responses.create(**asked, stream=True))
    told = [e for e in events if e.type == "response.output_text.annotation.added"]
    assert [e.to_dict()["annotation"] for e in told] == [
        each.to_dict() for each in part.annotations
    ]
    assert events[-1].response.output[0].content[0].annotations == part.annotations
