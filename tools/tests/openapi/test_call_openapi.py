"""Call functions of the two documents on a real server."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest

from amber.lib.tests.local_server import say, send_to
from tools.openapi.source import OpenAPISource
from tools.outgoing.requests import ServiceError
from tools.protocol import ArgumentsError, Exchange, ProducedFile, ToolOutput
from tools.source import Connection

DATA = Path(__file__).parents[1] / "data"
PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20


@pytest.fixture
def tool(settings, server, context):
    """Call functions of a document, as discovered from the server."""
    settings.AMBER_TOOL_ALLOWED_HOSTS = [f"127.0.0.1:{server.port}"]

    def make(name="petstore-3.0.yaml", api_key="", **options):
        address = f"http://127.0.0.1:{server.port}"
        options = {"document": (DATA / name).read_text(), "server": address} | options
        connection = Connection("", api_key, OpenAPISource().check_options(options), name="Shop")
        found = asyncio.run(OpenAPISource().discover(connection))
        kept = json.loads(json.dumps(found.data))
        functions = {f.spec.name: f for f in OpenAPISource().functions(connection, kept)}

        def call(function, arguments=None, **about):
            return asyncio.run(
                functions[function].call(arguments or {}, replace(context, call_id="c1", **about))
            )

        return call

    return make


def test_a_call_sends_each_argument_to_its_place(tool, server):
    server.routes["/pets"] = say(b'[{"name": "Rex"}]', headers={"Content-Type": "application/json"})
    arguments = {
        "limit": 5,
        "tags": ["a&b", "c"],
        "near": {"lat": 1.5, "lon": 2},
        "sort": ["name", "age"],
        "filter_name": None,
        "session": "s 1",
        "X-Trace": "t",
    }
    assert tool()("listPets", arguments) == ToolOutput('[{"name": "Rex"}]')
    (request,) = server.requests
    assert request.method == "GET"
    assert request.target == (
        "/pets?limit=5&tags=a%26b&tags=c&near%5Blat%5D=1.5&near%5Blon%5D=2&sort=name,age"
    )
    assert request.headers["cookie"] == "session=s%201"
    assert request.headers["x-trace"] == "t"
    assert "idempotency-key" not in request.headers


def test_a_body_is_put_together(tool, server, context):
    server.routes["/pets/7%2F8"] = say(b"ok", headers={"Content-Type": "text/plain"})
    parents = [{"id": "1", "name": "Bella"}]
    arguments = {"id": "7/8", "id_body": "7", "name": "Rex", "parents": parents}
    assert tool()("replacePet", arguments).text == "ok"
    (request,) = server.requests
    assert (request.method, request.target) == ("PUT", "/pets/7%2F8")
    assert json.loads(request.body) == {"id": "7", "name": "Rex", "parents": parents}
    assert request.headers["content-type"] == "application/json"
    assert request.headers["idempotency-key"] == replace(context, call_id="c1").call_key


def test_null_is_a_value_where_the_schema_says_so_and_else_left_out(tool, server):
    tool()("addPet", {"name": "Rex", "born": None, "price": None, "X-Trace": None})
    assert json.loads(server.requests[0].body) == {"name": "Rex", "born": None}


def test_forms_are_sent(tool, server):
    call = tool()
    call("order", {"pet": "a b", "extras": ["x", "y"], "address": {"city": "Köln"}})
    call("addPhoto", {"id": "7", "picture": "bytes", "caption": "Rex"})
    form, multipart = server.requests
    assert form.body == b"pet=a%20b&extras=x&extras=y&address%5Bcity%5D=K%C3%B6ln"
    assert multipart.headers["content-type"].startswith("multipart/form-data; boundary=")
    assert b'name="picture"; filename="picture"' in multipart.body


def test_a_document_of_3_1_is_called(tool, server):
    call = tool("forest-3.1.json", "ann:pw")
    call("growTree", {"tree": "oak", "where": {"x": 1}, "body": {"by": 2}})
    call("note", {"body": "hello"})
    grow, note = server.requests
    assert grow.target == "/trees/.oak/grow?where=%7B%22x%22%3A1%7D"
    assert grow.headers["content-type"] == "application/merge-patch+json"
    assert grow.headers["authorization"] == "Basic YW5uOnB3"
    assert note.body == b"hello"


@pytest.mark.parametrize(
    ("function", "arguments", "words"),
    [
        ("get_pet", {}, "'id' is a required property"),
        ("get_pet", {"id": None}, "'id' is a required property"),
        ("get_pet", {"id": 7}, "id: 7 is not of type 'string'"),
        ("get_pet", {"id": "..", "x": 1}, "'x' was unexpected"),
        ("get_pet", {"id": "../orders"}, "path segment"),
        ("get_pet", {"id": ""}, "must not be empty"),
        ("listPets", {"limit": 0}, "limit: 0 is less than or equal to"),
        ("listPets", {"X-Trace": "a\r\nEvil: 1"}, "one plain line"),
    ],
    ids=range(8),
)
def test_wrong_arguments_are_explained_and_nothing_is_sent(
    tool, server, function, arguments, words
):
    with pytest.raises(ArgumentsError, match=words):
        tool()(function, arguments)
    assert server.accepted == 0


# -- Credentials ---------------------------------------------------------------------------------


def test_the_key_goes_where_the_document_wants_it(tool, server):
    tool(api_key="secret")("listPets")
    assert server.requests[0].headers["x-api-key"] == "secret"


def test_the_key_goes_where_the_owner_says(tool, server):
    tool(api_key="secret", auth={"type": "bearer"})("listPets")
    assert server.requests[0].headers["authorization"] == "Bearer secret"


def test_the_key_does_not_follow_a_redirect_to_another_server(tool, server, other, settings):
    call = tool(api_key="secret")
    settings.AMBER_TOOL_ALLOWED_HOSTS = ["127.0.0.1"]
    server.routes["/pets"] = send_to(f"http://127.0.0.1:{other.port}/")
    call("listPets", {"session": "private"})
    assert "secret" not in str(other.requests)
    assert "private" not in str(other.requests)


def test_the_key_is_not_sent_to_an_origin_that_the_owner_did_not_choose(settings, server, context):
    """The data is an older discovery's, from before the owner moved the tool."""
    settings.AMBER_TOOL_ALLOWED_HOSTS = ["127.0.0.1"]
    request = {
        "method": "GET",
        "server": f"http://127.0.0.1:{server.port}",
        "path": "/",
        "places": [],
    }
    function = {"name": "f", "description": "", "parameters": {}, "idempotent": True}
    data = {"auth": None, "functions": [function | {"request": request}]}
    connection = Connection("https://elsewhere.example.com/openapi.json", "secret")
    (made,) = OpenAPISource().functions(connection, data)
    asyncio.run(made.call({}, context))
    assert "secret" not in str(server.requests)


def test_what_the_owner_is_shown_holds_no_key(tool, server):
    exchanges: list[Exchange] = []
    server.routes["/pets"] = say(b"you sent secret", headers={"Content-Type": "text/plain"})
    tool(api_key="secret")("listPets", exchanges=exchanges)
    (exchange,) = exchanges
    assert exchange.status == 200
    assert "secret" not in repr(exchange)


# -- Answers -------------------------------------------------------------------------------------


def test_an_error_is_told_with_its_status_and_a_piece_of_its_body(tool, server):
    body = json.dumps({"error": "no such pet", "more": "x" * 5_000}).encode()
    server.routes["/pets/7"] = say(body, status=404, headers={"Content-Type": "application/json"})
    with pytest.raises(ServiceError) as caught:
        tool()("get_pet", {"id": "7"})
    assert str(caught.value).startswith(
        'The service answered 404 Not Found: {"error": "no such pet"'
    )
    assert len(str(caught.value)) < 1_100
    assert caught.value.status == 404


def test_an_error_page_that_is_no_text_is_not_shown(tool, server):
    server.routes["/pets/7"] = say(PNG, status=500, headers={"Content-Type": "image/png"})
    with pytest.raises(ServiceError, match=r"^The service answered 500 Internal Server Error\.$"):
        tool()("get_pet", {"id": "7"})


def test_only_reading_is_repeated(tool, server):
    for path in ("/pets/7", "/orders"):
        server.routes[path] = say(b"", status=503)
    call = tool()
    for function, arguments in (("get_pet", {"id": "7"}), ("delete_pets_id", {"id": "7"})):
        with pytest.raises(ServiceError):
            call(function, arguments)
    assert [request.method for request in server.requests] == ["GET", "GET", "GET", "DELETE"]


def test_an_image_becomes_a_file(tool, server):
    server.routes["/pets/7/photo"] = say(PNG, headers={"Content-Type": "image/png"})
    assert tool()("petPhoto", {"id": "7"}) == ToolOutput(
        "", files=(ProducedFile("petPhoto.png", "image/png", PNG),)
    )


def test_a_file_keeps_the_name_it_is_sent_with(tool, server):
    headers = {
        "Content-Type": "application/zip",
        "Content-Disposition": 'attachment; filename="a.zip"',
    }
    server.routes["/pets"] = say(b"PK", headers=headers)
    assert tool()("listPets").files == (ProducedFile("a.zip", "application/zip", b"PK"),)


@pytest.mark.parametrize(
    ("body", "headers", "text"),
    [
        (b"", {}, "Done: the service answered 200 OK without content."),
        (b"plain", {}, "plain"),
        ("é".encode("latin-1"), {"Content-Type": "text/plain; charset=latin-1"}, "é"),
        (b"<a/>", {"Content-Type": "application/problem+xml"}, "<a/>"),
    ],
    ids=range(4),
)
def test_text_is_the_result(tool, server, body, headers, text):
    server.routes["/pets"] = say(body, headers=headers)
    assert tool()("listPets") == ToolOutput(text)


def test_bytes_of_no_kind_are_a_file(tool, server):
    server.routes["/pets"] = say(b"\xff\xfe\0")
    assert tool()("listPets").files[0].content == b"\xff\xfe\0"


def test_a_service_that_is_away_is_an_error_the_model_reads(tool, server, settings):
    call = tool()
    settings.AMBER_TOOL_ALLOWED_HOSTS = []
    with pytest.raises(ServiceError, match="not one that may be called"):
        call("listPets")
    assert server.accepted == 0
