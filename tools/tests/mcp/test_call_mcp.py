"""Call a server written with the official SDK, in the newest version of the protocol and in the one
before, which has sessions."""

import asyncio
from dataclasses import replace

import orjson
import pytest

from engine.tools import ToolSpec
from tools.mcp.source import MCPFunction
from tools.outgoing.requests import ServiceError
from tools.protocol import ProducedFile, ToolError, ToolOutput
from tools.source import Connection
from tools.tests.mcp.service import PIXEL, Running, Seen, make_server

NEWEST, BEFORE = "2026-07-28", "2025-11-25"
both = pytest.mark.parametrize("version", [NEWEST, BEFORE])


@pytest.fixture(scope="module")
def seen():
    return Seen()


@pytest.fixture(scope="module")
def service(seen):
    running = Running(lambda: make_server(seen).streamable_http_app())
    yield running
    running.stop()


@pytest.fixture
def connection(service, settings):
    settings.AMBER_TOOL_ALLOWED_HOSTS = [f"127.0.0.1:{service.port}"]
    return Connection(service.url, api_key="sesame-key", name="Test service")


@pytest.fixture
def call(connection, context):
    def make_call(name, version=NEWEST, **arguments):
        return asyncio.run(function(connection, name, version).call(arguments, context))

    return make_call


def function(connection, name, version=NEWEST, **more):
    spec = ToolSpec(name, "…", {"type": "object"})
    made = MCPFunction(connection, version, spec=spec)
    return replace(made, **more)


@both
def test_a_tool_is_called_and_its_text_returned(call, version):
    assert call("add", version, a=9.0, b=6.0) == ToolOutput("15.0")


@both
def test_the_key_and_the_calls_own_key_go_along(connection, context, seen, version):
    given = replace(context, call_id="call_7")
    asyncio.run(function(connection, "add", version).call({"a": 1, "b": 2}, given))
    assert seen.headers[-1]["authorization"] == "Bearer sesame-key"
    assert seen.headers[-1]["idempotency-key"] == given.call_key


@pytest.mark.parametrize(
    ("auth", "name", "value"),
    [
        ({"type": "header", "name": "X-Api-Key"}, "x-api-key", "user:ü"),
        ({"type": "basic"}, "authorization", "Basic dXNlcjrDvA=="),
    ],
    ids=["header", "basic"],
)
def test_the_key_goes_where_the_options_say(connection, context, seen, auth, name, value):
    given = replace(connection, api_key="user:ü", options={"auth": auth})
    asyncio.run(function(given, "add").call({"a": 1, "b": 2}, context))
    assert seen.headers[-1][name].encode("latin-1").decode() == value
    assert "user" not in seen.headers[-1].get("authorization", "")


@both
def test_structured_content_is_said_once(call, version):
    assert orjson.loads(call("weather", version, city="Rome").text) == {
        "city": "Rome",
        "celsius": 21.5,
    }


@both
def test_arguments_that_are_wanted_in_headers_are_sent_there(connection, context, version):
    given = replace(context, exchanges=[])
    output = asyncio.run(function(connection, "locate", version).call({"region": "eu"}, given))
    assert output == ToolOutput("It is in eu.")
    if version == NEWEST:  # refused unread, the listing says which headers, called again
        assert [each.status for each in given.exchanges] == [200, 400, 200, 200]


@both
def test_an_image_becomes_a_file(call, version):
    file = ProducedFile("draw-2.png", "image/png", PIXEL)
    assert call("draw", version) == ToolOutput("Here it is.", (file,))


@both
def test_every_kind_of_content_arrives(call, version):
    output = call("everything", version)
    assert output.text.splitlines() == [
        *("First.", "note://one:", "A note.", "[more](https://example.com/more)"),
        '{"pages":2}',
    ]
    assert output.files == (
        ProducedFile("everything-2.wav", "audio/wav", b"RIFF"),
        ProducedFile("report.pdf", "application/pdf", b"%PDF"),
    )


@both
def test_what_the_tool_reports_as_an_error_is_told_to_the_model(call, version):
    with pytest.raises(ToolError, match="The moon is in the wrong phase"):
        call("fail", version)


@both
def test_a_tool_that_is_gone_is_an_error_in_the_servers_words(call, version):
    with pytest.raises(ToolError, match="Unknown tool: vanish"):
        call("vanish", version)


@both
def test_a_server_that_restarts_between_calls_is_called_again(call, service, version):
    call("add", version, a=1, b=1)
    service.stop()
    service.start()
    assert call("add", version, a=1, b=2) == ToolOutput("3.0")


def test_a_server_that_is_away_is_said_to_be(call, service):
    service.stop()
    try:
        with pytest.raises(ServiceError, match="cannot be reached") as caught:
            call("forget", what="it")
    finally:
        service.start()
    assert "not known" not in str(caught.value)


@both
def test_a_cancelled_call_is_over_at_once_and_the_server_learns_it(
    connection, context, seen, version
):
    seen.slow_has_begun.clear()
    seen.slow_was_cancelled.clear()

    async def cancel_in_the_middle():
        calling = asyncio.ensure_future(function(connection, "wait", version).call({}, context))
        assert await asyncio.to_thread(seen.slow_has_begun.wait, 10)
        calling.cancel()
        await asyncio.wait({calling})
        assert calling.cancelled()
        assert asyncio.all_tasks() == {asyncio.current_task()}, "the session has ended, too"
        assert await asyncio.to_thread(seen.slow_was_cancelled.wait, 10)

    asyncio.run(cancel_in_the_middle())


@both
def test_a_deadline_of_the_caller_ends_the_call(connection, context, version):
    async def call_briefly():
        async with asyncio.timeout(0.5):
            await function(connection, "wait", version).call({}, context)

    with pytest.raises(TimeoutError):
        asyncio.run(call_briefly())


@both
def test_calls_of_one_reply_run_side_by_side(connection, context, version):
    async def call_three():
        add = function(connection, "add", version)
        calls = [add.call({"a": n, "b": 0}, context) for n in range(3)]
        return [output.text for output in await asyncio.gather(*calls)]

    assert asyncio.run(call_three()) == ["0.0", "1.0", "2.0"]


@both
def test_an_answer_that_is_too_large_is_refused(call, version):
    with pytest.raises(ServiceError, match="The answer is too large"):
        call("much", version, megabytes=11)


@both
def test_an_answer_of_a_few_megabytes_arrives(call, version):
    assert len(call("much", version, megabytes=3).text) == 3_000_000


@both
def test_the_owner_can_see_the_messages_and_no_credentials(connection, context, version):
    given = replace(context, exchanges=[])
    asyncio.run(function(connection, "add", version).call({"a": 1, "b": 2}, given))

    asked = given.exchanges[-1]
    assert (asked.method, asked.url, asked.status) == ("POST", connection.url, 200)
    assert orjson.loads(asked.request_body)["params"]["arguments"] == {"a": 1, "b": 2}
    assert '"text":"3.0"' in asked.response_body
    assert "sesame-key" not in repr(given.exchanges)
    assert not {"authorization", "mcp-session-id"} & {
        name.lower() for each in given.exchanges for name in each.request_headers
    }


def test_a_key_that_no_header_can_hold_is_the_owners_business(connection, context):
    broken = replace(connection, api_key="line\nbreak")
    with pytest.raises(ServiceError, match="its key is not usable") as caught:
        asyncio.run(function(broken, "add").call({}, context))
    assert "line" not in str(caught.value)
