"""What /v1 said in its own tests against OpenAI's types for TypeScript, which tell what is required though
it may be null from what may be absent: no document of OpenAI's API comes as a package, and these types
are made of it.

`make test-clients` runs the tests of `public_api` first, which leave what was said in SAID_FOLDER.
"""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from public_api.tests.openai_forms import OURS
from tests.clients.test_other_clients import INSTALLED
from tests.house.test_docs import events_of_responses

SAID = Path(os.environ.get("SAID_FOLDER", INSTALLED / "said"))
NODE = INSTALLED / "node"
COMPILER = NODE / "node_modules/.bin/tsc"
COMPILE_SECONDS = 300

TYPES = {
    "ModelList": "{ object: 'list'; data: OpenAI.Model[] }",
    "Model": "OpenAI.Model",
    "ChatCompletion": "OpenAI.ChatCompletion",
    "ChatCompletionChunk": "OpenAI.ChatCompletionChunk",
    "CreateEmbeddingResponse": "OpenAI.CreateEmbeddingResponse",
    "Response": "OpenAI.Responses.Response",
    "ResponseStreamEvent": "OpenAI.Responses.ResponseStreamEvent",
    "ResponseItemList": "OpenAI.Responses.ResponseItemList",
    "Deleted": "{ id: string; object: 'response'; deleted: true }",
    "Failed": "{ error: OpenAI.ErrorObject }",
}
MESSAGES = ("ChatCompletionMessage", "ChoiceDelta", "ResponseFunctionToolCall")
OF_MESSAGES = {name for kind, name in OURS if kind.startswith(MESSAGES)} - {"annotations"}
"""Fields of ours in messages and calls. Annotations are of ours in deltas alone."""
TOLD_APART_BY = ("type", "role", "object", "status", "finish_reason")

pytestmark = pytest.mark.skipif(
    not COMPILER.exists() or not SAID.exists(), reason="`make test-clients` brings what it needs"
)


def kept() -> list[tuple[str, Any]]:
    """One of each kind, as OpenAI would say it."""
    found: dict[str, tuple[str, Any]] = {}
    for path in sorted(SAID.glob("*.jsonl")):
        for line in path.read_text().splitlines():
            name, body = json.loads(line)
            found.setdefault(name + json.dumps(kind_of(body)), (name, published(body)))
    return list(found.values())


def kind_of(value: Any) -> Any:
    """Names of fields and kinds of values; of lists the kinds of entries there are."""
    if isinstance(value, dict):
        return {
            name: each if name in TOLD_APART_BY else kind_of(each) for name, each in value.items()
        }
    if isinstance(value, list):
        return sorted({json.dumps(kind_of(each), sort_keys=True) for each in value})
    return type(value).__name__


def published(value: Any) -> Any:
    """Without the fields of ours; with the one that the client makes itself."""
    if isinstance(value, list):
        return [published(each) for each in value]
    if not isinstance(value, dict):
        return value
    ours = OF_MESSAGES | ({"document"} if "url_citation" in value else set())
    match value.get("object", value.get("type")):
        case "model":
            ours = {"name"}
        case "response" if "output" in value:
            ours, value = {"store"}, {**value, "output_text": ""}
        case "error":
            ours = {"error"}
    plain = {name: published(each) for name, each in value.items() if name not in ours}
    if "delta" in plain and isinstance(plain["delta"], dict):
        plain["delta"].pop("annotations", None)
    return plain


def source(bodies: list[tuple[str, Any]]) -> Iterator[str]:
    """A constant each; the last ones must be found wrong, or nothing was looked at."""
    yield 'import type OpenAI from "published";'
    for number, (name, body) in enumerate(bodies):
        yield f"export const said{number} = {json.dumps(body)} satisfies {TYPES[name]};"
    model = {"id": "m", "object": "model", "created": 1, "owned_by": "amber"}
    for number, wrong in enumerate((model | {"owner": "x"}, model | {"created": None}, {})):
        yield "// @ts-expect-error"
        yield f"export const wrong{number} = {json.dumps(wrong)} satisfies OpenAI.Model;"


def test_every_body_and_event_is_of_its_published_type():
    bodies = kept()
    assert {name for name, _ in bodies} == set(TYPES)
    assert {body["type"] for name, body in bodies if name == "ResponseStreamEvent"} == (
        events_of_responses()
    )
    path = NODE / "said.ts"
    path.write_text("\n".join(source(bodies)) + "\n")
    options = ("--noEmit", "--strict", "--exactOptionalPropertyTypes", "--skipLibCheck")
    module = ("--module", "nodenext", "--target", "es2022")
    done = subprocess.run(
        [COMPILER, *options, *module, path.name],
        cwd=NODE,
        capture_output=True,
        text=True,
        timeout=COMPILE_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout[:5_000]
