import pytest
import tiktoken
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.text import tokens
from engine.text.token_ids import UnknownTokenError, text_of_tokens

ENCODINGS = sorted(tokens.ENCODINGS)


def ids_of(text: str, encoding: str) -> list[int]:
    encoder: tiktoken.Encoding = tokens._encoder(encoding)
    return encoder.encode_ordinary(text)


@pytest.mark.parametrize("encoding", ENCODINGS)
@settings(deadline=None)  # the first one loads the vocabulary
@given(text=st.text(st.characters(codec="utf-8"), max_size=60))
def test_what_tiktoken_makes_of_a_text_becomes_the_text_again(encoding, text):
    assert text_of_tokens(ids_of(text, encoding), encoding) == text


def test_half_a_character_is_replaced():
    first, *_ = ids_of("\U0001f9ec", "cl100k_base")
    assert "\ufffd" in text_of_tokens([first], "cl100k_base")


@pytest.mark.parametrize("token", [-1, 100_257, 10**30])
def test_an_id_that_is_none_is_named(token):
    with pytest.raises(UnknownTokenError) as caught:
        text_of_tokens([9906, token], "cl100k_base")
    assert caught.value.token == token


def test_an_unknown_encoding_is_read_as_the_default_one():
    ids = ids_of("Hello", tokens.DEFAULT_ENCODING)
    assert text_of_tokens(ids, "unknown") == text_of_tokens(ids) == "Hello"
