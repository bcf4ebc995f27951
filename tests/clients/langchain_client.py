"""langchain-openai against /v1; prints what it saw as one JSON object. Runs in a venv of its own."""

import json
import os
from collections.abc import Callable
from typing import Any

import openai
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI, OpenAIEmbeddings

MARKERS = json.loads(os.environ["MARKERS"])
OTHER_KEY = os.environ["AMBER_OTHER_KEY"]
AT: dict[str, Any] = {
    "base_url": os.environ["AMBER_URL"],
    "api_key": os.environ["AMBER_KEY"],
    "max_retries": 0,
}


@tool
def weather(city: str) -> str:
    """The weather there."""
    return f"Rain in {city} for {os.environ['CLIENT']}"


def model(name: str = "fake-model", **more: Any) -> Any:
    return ChatOpenAI(model=name, **{**AT, **more})


def tool_round() -> dict[str, Any]:
    bound = model().bind_tools([weather])
    question = HumanMessage(MARKERS["call"])
    said = bound.invoke([question])
    (call,) = said.tool_calls
    result = ToolMessage(weather.invoke(call["args"]), tool_call_id=call["id"])
    return {"after_call": bound.invoke([question, said, result]).content}


def image() -> str:
    """What a model that says what it was sent says of one."""
    parts: list[str | dict[str, Any]] = [
        {"type": "text", "text": "What is it?"},
        {"type": "image_url", "image_url": {"url": MARKERS["image"]}},
    ]
    return str(model("fake-vision").invoke([HumanMessage(parts)]).content)


def vectors(text: str) -> dict[str, Any]:
    """It sends token ids unless it is told not to; both are vectors of the same text."""
    plain = OpenAIEmbeddings(model="fake-embedding", check_embedding_ctx_length=False, **AT)
    as_tokens = OpenAIEmbeddings(model="fake-embedding", **AT)
    vector = plain.embed_query(text)
    tokens = as_tokens.embed_documents([text, "another"])
    apart = max(abs(a - b) for a, b in zip(vector, tokens[0], strict=True))
    return {"dimensions": len(vector), "token_ids_differ_by": apart}


def failure(act: Callable[[], object]) -> list[Any] | None:
    try:
        act()
    except openai.APIStatusError as error:
        return [name_of(error), error.status_code]
    return None


def name_of(error: openai.APIStatusError) -> str:
    """LangChain raises kinds of its own that derive from the client's."""
    return next(c.__name__ for c in type(error).__mro__ if c.__module__.startswith("openai"))


def main() -> None:
    pieces = [piece.content for piece in model().stream(MARKERS["pieces"]) if piece.content]
    responses = model(use_responses_api=True).invoke(MARKERS["words"])
    seen = {
        "whole": model().invoke(MARKERS["words"]).content,
        "streamed": "".join(pieces),
        "pieces": len(pieces),
        "response": responses.text,
        "image": image(),
        "errors": {
            "no_model": failure(lambda: model("absent").invoke("x")),
            "bad_key": failure(lambda: model(api_key="amb_live_wrong").invoke("x")),
            "not_allowed": failure(lambda: model(api_key=OTHER_KEY).invoke("x")),
            "bad_request": failure(lambda: model(temperature=9).invoke("x")),
            "too_long": failure(lambda: model("fake-context-too-long").invoke("x")),
            "busy": failure(lambda: model("fake-429").invoke("x")),
            "broken": failure(lambda: model("fake-500").invoke("x")),
        },
    }
    seen |= tool_round() | vectors("Amber is a resin.")
    stream = model().stream(MARKERS["slow"])
    next(stream)
    stream.close()
    print(json.dumps(seen))


if __name__ == "__main__":
    main()
