import json
from pathlib import Path

import pytest

from tools.openapi.document import (
    MAX_DOCUMENT_BYTES,
    DocumentError,
    at_pointer,
    read_document,
    resolve_reference,
)

DATA = Path(__file__).parents[1] / "data"
LEAST = {"openapi": "3.1.0", "paths": {"/": {}}}


@pytest.mark.parametrize("name", ["petstore-3.0.yaml", "forest-3.1.json"])
def test_json_and_yaml_are_read(name):
    document = read_document((DATA / name).read_bytes())
    assert document["openapi"] in ("3.0.3", "3.1.0")
    assert document["paths"]


def test_a_byte_order_mark_does_no_harm():
    assert read_document(b"\xef\xbb\xbf" + json.dumps(LEAST).encode()) == LEAST


@pytest.mark.parametrize(
    ("content", "place", "words"),
    [
        (b"", "", "neither"),
        (b"[]", "", "neither"),
        (b"hello", "", "neither"),
        (b"<html><body>404</body></html>", "", "neither"),
        (b"\xff\xfe\x00", "", "UTF-8"),
        (b'{"openapi": "3.1.0"', "", "nested|cut off|not valid JSON"),
        (b'{"openapi": "3.1.0",}', "", "not valid JSON"),
        (b"{" * 100_000, "", "not valid JSON|nested"),
        (b'{"a":' * 60 + b"1" + b"}" * 60, "", "nested"),
        (b'{"swagger": "1.2", "paths": {}}', "swagger", "Convert"),
        (b'{"swagger": "2.0", "paths": {}}', "paths", "nothing to call"),
        (b'{"swagger": "2.0", "paths": []}', "paths", "nothing to call"),
        (b'{"openapi": "2.0", "paths": {"/": {}}}', "openapi", "3.0"),
        (b'{"openapi": "3.10.0", "paths": {"/": {}}}', "openapi", "3.0"),
        (b'{"openapi": 3.1, "paths": {"/": {}}}', "openapi", "3.0"),
        (b'{"paths": {"/": {}}}', "openapi", "3.0"),
        (b'{"openapi": "3.1.0"}', "paths", "nothing to call"),
        (b'{"openapi": "3.1.0", "paths": []}', "paths", "nothing to call"),
        (b'{"openapi": "3.1.0", "paths": {}}', "paths", "nothing to call"),
        (b" " * (MAX_DOCUMENT_BYTES + 1), "", "10 MB"),
    ],
    ids=range(20),
)
def test_what_is_no_document_is_explained(content, place, words):
    with pytest.raises(DocumentError, match=words) as caught:
        read_document(content)
    assert caught.value.place == place


def test_a_reference_leads_through_others_to_a_part_of_the_document():
    document = {
        "a": {"$ref": "#/b~1c/0"},
        "b/c": [{"$ref": "#/d%20e"}],
        "d e": {"it": 1},
        "loop": {"$ref": "#/loop"},
    }
    assert resolve_reference(document, {"$ref": "#/a"}) == {"it": 1}
    assert resolve_reference(document, {"plain": 1}) == {"plain": 1}
    assert resolve_reference(document, {"$ref": "#/loop"}) is None


@pytest.mark.parametrize(
    "reference",
    ["#/x", "#/b/9", "#/b/x", "#/b/-1", "other.yaml#/a", "http://127.0.0.1/", "#anchor", ""],
)
def test_a_reference_leads_nowhere_else(reference):
    assert at_pointer({"b": [1]}, reference) is None
