import asyncio
from typing import Any

import orjson
import pytest

from engine.provider import openai_model
from engine.provider.client import Endpoint
from engine.provider.faults import fault_of_status
from engine.provider.model import ModelProfile, ModelRequest, ParameterRules
from engine.provider.parameters import refused_parameter, sent_parameters

ASKED = {"temperature": 0.2, "top_k": 5, "stop": ["x"], "max_tokens": 9, "seed": None}


@pytest.mark.parametrize(
    ("rules", "refused", "sent"),
    [
        ({}, (), {"temperature": 0.2, "top_k": 5, "stop": ["x"], "max_tokens": 9}),
        ({}, ("stop", "top_k"), {"temperature": 0.2, "max_tokens": 9}),
        ({}, ("max_tokens",), {**ASKED, "max_completion_tokens": 9}),
        ({"allowed": {"top_k"}}, (), {"top_k": 5, "max_tokens": 9}),
        (
            {"allowed": {"temperature", "max_completion_tokens"}},
            (),
            {"temperature": 0.2, "max_completion_tokens": 9},
        ),
        ({"extra": {"temperature": 1, "flag": True}}, (), {**ASKED, "flag": True}),
        ({"forced": {"temperature": 1, "stop": None}}, (), {**ASKED, "temperature": 1}),
        ({"extra": {"extra_body": {"flag": {"on": 1}}}}, (), {**ASKED, "flag": {"on": 1}}),
        ({"forced": {"model": "another", "messages": []}}, (), ASKED),
        ({"extra": {"flag": 1}}, ("flag",), ASKED),
    ],
)
def test_what_is_sent(rules: Any, refused: Any, sent: Any) -> None:
    wanted = {k: v for k, v in sent.items() if v is not None}
    if rules.get("forced", {}).get("stop", "") is None:
        del wanted["stop"]
    if "max_completion_tokens" in wanted:
        wanted.pop("max_tokens", None)
    rules = ParameterRules(**{**rules, "allowed": frozenset(rules.get("allowed", ()))})
    assert sent_parameters(ASKED, rules, refused) == wanted


SENT = {
    "temperature": 1,
    "top_p": 1,
    "stop": [],
    "seed": 1,
    "max_tokens": 5,
    "presence_penalty": 1,
    "parallel_tool_calls": True,
    "reasoning_effort": "low",
    "stream_options": {},
    "response_format": {},
    "tool_choice": "auto",
    "messages": [],
}

REFUSALS = [
    # as OpenAI and Azure (four), xAI (two), Groq, Mistral, Gemini, Anthropic, Bedrock and DeepSeek write it
    (
        {
            "message": "Unsupported value: 'temperature' does not support 0.2 with this model.",
            "param": "temperature",
            "code": "unsupported_value",
        },
        "temperature",
    ),
    ({"message": "Unsupported parameter: 'stop' is not supported with this model."}, "stop"),
    ({"message": "Unrecognized request argument supplied: parallel_tool_calls"}, None),
    (
        {
            "message": "Unsupported parameter: 'max_tokens' is not supported with this model. Use "
            "'max_completion_tokens' instead."
        },
        "max_tokens",
    ),
    ({"message": "Argument not supported on this model: presencePenalty"}, "presence_penalty"),
    ({"message": "Model grok-4 does not support parameter reasoningEffort."}, "reasoning_effort"),
    ({"message": "property 'seed' is unsupported"}, "seed"),
    (
        {
            "detail": [
                {
                    "type": "extra_forbidden",
                    "loc": ["body", "seed"],
                    "msg": "Extra inputs are not permitted",
                }
            ]
        },
        "seed",
    ),
    (
        {"message": 'Invalid JSON payload received. Unknown name "seed": Cannot find field.'},
        "seed",
    ),
    (
        {"message": "`temperature` and `top_p` cannot both be specified for this model."},
        "temperature",
    ),
    ({"message": "extraneous key [parallel_tool_calls] is not permitted"}, None),
    ({"message": "deepseek-reasoner does not support this tool_choice"}, "tool_choice"),
    # and what names none that may be left out, or refuses a value
    ({"message": "Unsupported parameter: 'response_format'"}, ""),
    ({"message": "temperature must be at most 1"}, ""),
    ({"message": "This model does not support images."}, ""),
    ({"message": "We do not support what you want. Stopped."}, ""),
]


@pytest.mark.parametrize(("error", "name"), REFUSALS)
@pytest.mark.parametrize("status", [400, 422])
def test_what_is_refused(error: Any, name: str | None, status: int) -> None:
    wanted = "parallel_tool_calls" if name is None else name or None
    body = error if "detail" in error else {"error": error}
    assert refused_parameter(fault_of_status(status, body), SENT, ParameterRules()) == wanted


def test_an_operators_own_parameter_may_be_refused_too() -> None:
    rules = ParameterRules(extra={"extra_body": {"vendor_flag": 1}})
    error = fault_of_status(400, {"error": {"message": "Unknown parameter: vendor_flag"}})
    assert refused_parameter(error, {"vendor_flag": 1}, rules) == "vendor_flag"
    assert refused_parameter(error, {"vendor_flag": 1}, ParameterRules()) is None


def test_other_faults_refuse_nothing() -> None:
    error = fault_of_status(500, {"error": {"message": "Unsupported parameter: stop"}})
    assert refused_parameter(error, SENT, ParameterRules()) is None


def test_a_word_that_one_caller_made_up_is_nobody_elses_loss(monkeypatch: Any) -> None:
    sent: list[Any] = []

    async def send(client: Any, path: str, body: bytes, headers: Any) -> Any:
        sent.append(orjson.loads(body).get("reasoning_effort"))
        if sent[-1] == "enormous":
            said = "Unsupported value: 'reasoning_effort' does not support 'enormous'."
            raise fault_of_status(400, {"error": {"message": said, "param": "reasoning_effort"}})

    async def shared_client(*_: Any, **__: Any) -> None: ...

    monkeypatch.setattr(openai_model, "_refused_parameters", {})
    monkeypatch.setattr(openai_model, "send", send)
    monkeypatch.setattr(openai_model, "shared_client", shared_client)
    model = openai_model.OpenAIModel(
        ModelProfile(upstream_id="thinker"), Endpoint("https://x.test", "")
    )
    for word in ("enormous", "enormous", "high"):
        extra = {"reasoning_effort": word}
        asyncio.run(model._open(ModelRequest([{"role": "user", "content": "Hi"}], extra=extra)))
    assert sent == ["enormous", None, None, "high"]
