"""Parameters of models on their way from a client to the provider: none vanishes without a word."""

from typing import Any

import pytest

from public_api.tests.completions import SIX, ask

pytestmark = pytest.mark.django_db(transaction=True)


def sent(provider: Any, mark: str) -> dict[str, Any]:
    return dict(provider.requests(contains=mark)[-1])


def test_vendors_parameters_reach_the_provider(client, alice, model, fake_provider):
    more = {"repetition_penalty": 1.1, "top_k": 4, "reasoning_effort": "low"}
    ask(client, f"{SIX} vendors", extra_body=more)
    body = sent(fake_provider, "vendors")
    assert {name: body[name] for name in more} == more


def test_a_models_own_parameters_do_where_an_operator_allows_them(
    client, alice, model, fake_provider
):
    model.allowed_parameters = ["temperature", "vendor_flag"]
    model.extra_parameters = {"seed": 7}
    model.forced_parameters = {"max_tokens": 5}
    model.save()
    given = {"vendor_flag": {"on": True}, "other": 1, "logit_bias": {"5": 1}}
    answer = client.chat.completions.with_raw_response.create(
        model="fake-model",
        messages=[{"role": "user", "content": f"{SIX} own"}],
        temperature=0.5,
        top_p=0.5,
        max_tokens=50,
        extra_body=given,
    )
    assert answer.headers["X-Amber-Ignored-Parameters"] == "logit_bias, other"
    body = sent(fake_provider, "own")
    assert body["vendor_flag"] == {"on": True}
    assert (body["temperature"], body["seed"], body["max_tokens"]) == (0.5, 7, 5)
    assert not {"top_p", "other", "logit_bias"} & {*body}


def test_a_stream_names_what_is_ignored_too(client, alice, model):
    with client.chat.completions.with_streaming_response.create(
        model="fake-model",
        messages=[{"role": "user", "content": SIX}],
        stream=True,
        extra_body={"other": 1, "bad\nname": 1},
    ) as answer:
        assert answer.headers["X-Amber-Ignored-Parameters"] == "other"
        list(answer.iter_lines())


def test_nothing_is_named_where_nothing_is_ignored(client, alice, model):
    answer = client.chat.completions.with_raw_response.create(
        model="fake-model", messages=[{"role": "user", "content": SIX}], user="me"
    )
    assert "X-Amber-Ignored-Parameters" not in answer.headers
