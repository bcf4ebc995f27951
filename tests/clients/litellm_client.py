"""litellm against /v1; prints what it saw as one JSON object. Runs in a venv of its own."""

import asyncio
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
OTHER_KEY = os.environ["AMBER_OTHER_KEY"]
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


def image() -> str:
    """What a model that says what it was sent says of one."""
    url = {"url": MARKERS["image"]}
    parts = [{"type": "text", "text": "What is it?"}, {"type": "image_url", "image_url": url}]
    told = ask([{"role": "user", "content": parts}], "fake-vision")
    return str(told.choices[0].message.content)


async def leave_early() -> None:
    messages = [{"role": "user", "content": MARKERS["slow"]}]
    stream: Any = await litellm.acompletion(
        model="openai/fake-model", messages=messages, stream=True, **AT
    )
    await anext(stream)
    await stream.aclose()


def failure(act: Callable[[], object]) -> list[Any] | None:
    try:
        act()
    except openai.APIError as error:  # litellm's own kinds derive from it
        return [type(error).__name__, getattr(error, "status_code", None)]
    return None


def main() -> None:
    chunks = ask(MARKERS["pieces"], stream=True)
    pieces = [piece for c in chunks if (piece := c.choices[0].delta.content)]
    told = litellm.embedding(model="openai/fake-embedding", input=["amber"], **AT)
    seen = {
        "models": litellm.get_valid_models(
            check_provider_endpoint=True,
            custom_llm_provider="openai",
            api_base=os.environ["AMBER_URL"].removesuffix("/v1"),
            api_key=os.environ["AMBER_KEY"],
        ),
        "image": image(),
        "response": litellm.responses(
            model="openai/fake-model", input=MARKERS["words"], **AT
        ).output_text,
        "whole": ask(MARKERS["words"]).choices[0].message.content,
        "streamed": "".join(pieces),
        "pieces": len(pieces),
        "dimensions": len(told.data[0]["embedding"]),
        "errors": {
            "no_model": failure(lambda: ask("x", "absent")),
            "bad_key": failure(lambda: ask("x", api_key="amb_live_wrong")),
            "not_allowed": failure(lambda: ask("x", api_key=OTHER_KEY)),
            "bad_request": failure(lambda: ask("x", temperature=9)),
            "too_long": failure(lambda: ask("x", "fake-context-too-long")),
            "busy": failure(lambda: ask("x", "fake-429")),
            "broken": failure(lambda: ask("x", "fake-500")),
        },
    }
    seen |= tool_round()
    asyncio.run(leave_early())
    print(json.dumps(seen))


if __name__ == "__main__":
    main()
