"""The programs of docs/public-api.md that need other people's packages, run as pasted."""

import pytest

from tests.clients.test_other_clients import INSTALLED, reason_to_skip
from tests.e2e.test_run_public_api_page import programs, reader, said_by
from tests.fakes.answers import answer_text

__all__ = ["reader"]

pytestmark = pytest.mark.e2e


def needs(client: str) -> pytest.MarkDecorator:
    reason = reason_to_skip(client)
    return pytest.mark.skipif(bool(reason), reason=reason)


@needs("langchain-openai")
def test_langchain(reader):
    (program,) = programs("python", "langchain")
    python = str(INSTALLED / "langchain-openai/bin/python")
    said = said_by([python, "-c", reader.of(program) + 'print(model.invoke("Hi").text)'])
    assert said.strip() == answer_text(64).strip()


@needs("openai-node")
def test_openais_client_for_node(reader):
    """Beside the package, which an import finds from where the program stands."""
    (program,) = programs("js", "import OpenAI")
    path = INSTALLED / "node/page.mjs"
    path.write_text(reader.of(program) + "console.log(answer.choices[0].message.content);")
    assert said_by(["node", str(path)]).strip() == answer_text(64).strip()
