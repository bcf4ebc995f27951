"""litellm against /v1; prints what it saw as one JSON object. Runs in a venv of its own."""

import json
import os
from collections.abc import Callable
from typing import Any

import litellm
import openai

MARKERS = json.loads(os.environ["MARKERS"])
WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather there.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
        },
    },
}
AT: dict[str, Any] = {
    "api_base": os.environ["AMBER_URL"],
    "api_key": os.environ["AMBER_KEY"],
    "num_retries": 0,
    "max_retries": 0,
}


def ask(content: Any, name: str = "fake-model", **more: Any) -> Any:
    messages = content if isinstance(content, list) else [{"role": "user", "content": content}]
    return litellm.completion(model=f"openai/{name}", messages=messages, **{**AT, **more})


def tool_round() -> dict[str, Any]:
    question = {"role": "user", "content": MARKERS["call"]}
    said = ask([question], tools=[WEATHER]).choices[0].message
    (call,) = said.tool_calls
    asked = json.loads(call.function.arguments)
    text = f"Rain in {asked['city']} for {os.environ['CLIENT']}"
    result = {"role": "tool", "tool_call_id": call.id, "content": text}
    last = ask([question, said.model_dump(), result], tools=[WEATHER])
    return {"after_call": last.choices[0].message.content}


def failure(act: Callable[[], object]) -> list[Any] | None:
    try:
        act()
    except openai.APIStatusError as error:  # litellm's own kinds derive from it
        return [type(error).__name__, error.status_code]
    return None


def main() -> None:
    chunks = ask(MARKERS["words"], stream=True)
    pieces = [piece for c in chunks if (piece := c.choices[0].delta.content)]
    told = litellm.embedding(model="openai/fake-embedding", input=["amber"], **AT)
    seen = {
        "models": litellm.get_valid_models(
            check_provider_endpoint=True,
            custom_llm_provider="openai",
            api_base=os.environ["AMBER_URL"].removesuffix("/v1"),
            api_key=os.environ["AMBER_KEY"],
        ),
        "whole": ask(MARKERS["words"]).choices[0].message.content,
        "streamed": "".join(pieces),
        "pieces": len(pieces),
        "dimensions": len(told.data[0]["embedding"]),
        "errors": {
            "no_model": failure(lambda: ask("x", "absent")),
            "bad_key": failure(lambda: ask("x", api_key="amb_live_wrong")),
            "busy": failure(lambda: ask("x", "fake-429")),
        },
    }
    print(json.dumps(seen | tool_round()))


if __name__ == "__main__":
    main()
