from uuid import UUID

import pytest
from django.core.validators import validate_slug
from hypothesis import given
from hypothesis import strategies as st

from assistants.slugs import find_free_slug, looks_like_id, slug_base

ID = UUID("01931e6a-7c1e-7d6b-9d54-9d9b8a1c5f00")


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("My Helper!", "my-helper"),
        ("Café Ünïcode", "cafe-unicode"),
        ("天气助手", "assistant-8a1c5f00"),
        ("天气 bot", "bot"),
        ("---", "assistant-8a1c5f00"),
        ("", "assistant-8a1c5f00"),
        (str(ID), "assistant-8a1c5f00"),
        ("a" * 200, "a" * 70),
        ("a" * 69 + " b", "a" * 69),
    ],
)
def test_a_slug_is_made_of_the_name_or_of_the_id(name, slug):
    assert slug_base(name, ID) == slug


@given(st.text(max_size=200), st.uuids())
def test_it_is_always_one(name, pk):
    slug = slug_base(name, pk)
    validate_slug(slug)
    assert len(slug) <= 70
    assert not looks_like_id(slug)


def test_the_first_free_number_is_taken():
    assert find_free_slug("demo", []) == "demo"
    assert find_free_slug("demo", ["demo"]) == "demo-2"
    assert find_free_slug("demo", ["demo", "demo-3", "demo-2"]) == "demo-4"


@pytest.mark.parametrize("text", [str(ID), ID.hex, str(ID).upper(), f"{{{ID}}}"])
def test_what_reads_as_an_id_looks_like_one(text):
    assert looks_like_id(text)
