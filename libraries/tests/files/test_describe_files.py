from functools import cache
from typing import Any

from drf_spectacular.generators import SchemaGenerator


@cache
def document() -> Any:
    return SchemaGenerator().get_schema(public=True)


def operation(path: str, method: str) -> Any:
    return document()["paths"][f"/api/v1/files/{path}"][method]


def test_a_file_is_sent_as_a_form_or_named_by_address():
    posted = operation("", "post")
    kinds = posted["requestBody"]["content"]
    assert set(kinds) == {"multipart/form-data", "application/json"}
    form = document()["components"]["schemas"]["UploadInputRequest"]
    assert form["properties"]["file"]["format"] == "binary"
    assert set(posted["responses"]) >= {"201", "400", "401", "403", "409", "413"}
    assert "Idempotency-Key" in [parameter["name"] for parameter in posted["parameters"]]


def test_lists_have_pages():
    assert {"limit", "cursor"} <= {each["name"] for each in operation("", "get")["parameters"]}


def test_content_is_binary():
    got = operation("{file_id}/content/", "get")
    kinds = got["responses"]["200"]["content"]
    assert kinds["*/*"]["schema"]["format"] == "binary"
    assert {"304", "401", "404"} <= set(got["responses"])
    names = {parameter["name"] for parameter in got["parameters"]}
    assert {"inline", "signature", "If-None-Match"} <= names


def test_every_operation_says_what_it_does():
    for path, methods in document()["paths"].items():
        if path.startswith("/api/v1/files/"):
            assert all(op.get("operationId") and op.get("tags") for op in methods.values())
