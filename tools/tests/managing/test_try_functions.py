"""Make test calls over REST: each is really made, shown without the key and logged as a test."""

import base64
import threading
from typing import Any

import pytest

from amber.lib.tests.local_server import say
from tests.fixtures.personas import api
from tools.models import Tool, ToolCallRecord
from tools.services import create_tool
from tools.tests.services import say_json
from tools.tests.tool_service import function

# Calls are recorded on threads of their own.
pytestmark = pytest.mark.django_db(transaction=True)

KEY = "key-of-the-weather"


@pytest.fixture
def tool(bob, weather):
    given = {"kind": "discovery", "discovery_url": weather.url, "api_key": KEY}
    return create_tool(bob.principal, given=given)


def of(tool: Tool, verb: str = "call/") -> str:
    return f"/api/v1/tools/{tool.pk}/{verb}"


def attempt(persona: Any, tool: Tool, name: str = "forecast", **arguments: Any) -> Any:
    answer = api(persona).post(of(tool), {"function": name, "arguments": arguments})
    assert answer.status_code == 200, answer.json()
    return answer.json()


def log_of(persona: Any, tool: Tool, **query: str) -> list[dict[str, Any]]:
    return list(api(persona).get(of(tool, "calls/"), query).json()["results"])


def test_the_function_is_called_and_its_answer_shown(bob, tool, weather):
    weather.reply = lambda body: {"content": f"Sunny in {body['arguments']['city']}."}
    shown = attempt(bob, tool, city="Rome")
    assert shown["result"] == {
        "ok": True,
        "content": "Sunny in Rome.",
        "detail": "",
        "files": [],
    }
    (body,), (request,) = weather.called, weather.calls
    assert (body["function"], body["arguments"]) == ("forecast", {"city": "Rome"})
    assert body["context"] == {
        "organization_id": str(bob.organization.pk),
        "user_id": str(bob.user.pk),
        "chat_id": None,
        "assistant_id": None,
        "turn_id": None,
    }
    assert request.headers["idempotency-key"] == body["call_id"] != ""
    assert request.headers["authorization"] == f"Bearer {KEY}"


def test_the_exchange_is_shown_without_the_key(bob, tool, weather):
    weather.reply = lambda body: {"content": "Sunny.", "echo": weather.calls[-1].headers}
    answer = api(bob).post(of(tool), {"function": "forecast"})
    assert KEY not in answer.content.decode()
    (exchange,) = answer.json()["exchanges"]
    assert (exchange["method"], exchange["url"]) == ("POST", weather.address("/call"))
    assert '"function":"forecast"' in exchange["request_body"]
    assert "Sunny." in exchange["response_body"]
    assert (exchange["status"], exchange["fault"]) == (200, "")
    assert "authorization" not in {name.lower() for name in exchange["request_headers"]}
    assert answer.json()["latency_ms"] >= exchange["latency_ms"] >= 0


def test_a_key_that_the_service_repeats_is_not_read_by_the_model(bob, tool, weather):
    weather.reply = lambda body: {"content": f"I was sent {KEY}"}
    assert attempt(bob, tool)["result"]["content"] == "I was sent •••"
    weather.route("/call", say_json({"error": KEY}, status=400))
    assert KEY not in str(attempt(bob, tool))
    assert KEY not in str(log_of(bob, tool))


def test_two_calls_have_keys_of_their_own(bob, tool, weather):
    attempt(bob, tool)
    attempt(bob, tool)
    first, second = weather.called
    assert first["call_id"] != second["call_id"]


@pytest.mark.parametrize(
    ("answer", "content"),
    [
        (say_json({"content": "text"}), "text"),
        (say_json({"content": ""}), ""),
        (say_json({"temperature": 21}), '{"temperature": 21}'),
        (say_json({"content": 21}), '{"content": 21}'),
        (say_json([1, 2]), "[1, 2]"),
        (say_json("text"), '"text"'),
        (say(b"plain text", headers={"Content-Type": "text/plain"}), "plain text"),
        (say(b'{"content": "unlabelled"}'), "unlabelled"),
        (say(b'{"content": "cut'), '{"content": "cut'),
        (say(b"", status=204), ""),
    ],
    ids=[
        "content",
        "empty",
        "object",
        "number",
        "list",
        "string",
        "text",
        "unlabelled",
        "cut",
        "no",
    ],
)
def test_what_the_service_answers_is_what_the_model_reads(bob, tool, weather, answer, content):
    weather.route("/call", answer)
    result = attempt(bob, tool)["result"]
    assert (result["ok"], result["content"]) == (True, content)


def test_a_service_may_send_files(bob, tool, weather):
    def entry(**fields: Any) -> dict[str, Any]:
        content = base64.b64encode(b"abc").decode()
        return {"name": "../../etc/x.png", "mime_type": "image/png", "base64": content} | fields

    files = [entry(), entry(base64="!"), entry(base64=5), "x", entry(name=5, mime_type=None)]
    weather.reply = lambda _: {"content": "Here.", "files": files}
    result = attempt(bob, tool)["result"]
    assert result["files"] == [
        {"name": "../../etc/x.png", "mime_type": "image/png", "size": 3},
        {"name": "", "mime_type": "", "size": 3},
    ]
    assert (
        result["content"] == "Here.\n[3 file(s) of the answer could not be read, or were too many.]"
    )


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (say_json({"error": "No such city."}, status=404), "status 404: No such city."),
        (say_json({"error": {"message": "Bad."}}, status=400), "status 400: Bad."),
        (say_json({"detail": "Slow down."}, status=429), "status 429: Slow down."),
        (say(b"plain reason", status=500), "status 500: plain reason"),
        (
            say(b"<html>trace</html>", status=500, headers={"Content-Type": "text/html"}),
            "status 500.",
        ),
    ],
    ids=["error", "nested", "detail", "plain", "page"],
)
def test_an_error_says_what_the_model_can_act_on(bob, tool, weather, answer, words):
    weather.route("/call", answer)
    result = attempt(bob, tool)["result"]
    assert not result["ok"]
    assert result["content"] == f"The tool's service answered with {words}"
    (line,) = log_of(bob, tool)
    assert line["outcome"] == "failed"
    assert line["http_status"] >= 400


def test_arguments_that_do_not_fit_are_not_sent(bob, tool, weather):
    shown = attempt(bob, tool, city=5)
    assert shown["result"]["content"] == "city: 5 is not of type 'string'"
    assert (shown["result"]["ok"], shown["exchanges"], weather.calls) == (False, [], [])
    (line,) = log_of(bob, tool)
    assert (line["outcome"], line["detail"]) == ("refused", "city: 5 is not of type 'string'")


def test_a_service_that_is_away_is_said_to_be(bob, tool, weather):
    weather.route("/call", lambda connection, _: connection.close())
    shown = attempt(bob, tool)
    assert not shown["result"]["ok"]
    assert shown["exchanges"][0]["status"] is None
    assert shown["exchanges"][0]["fault"]
    assert log_of(bob, tool)[0]["outcome"] == "failed"


def test_a_service_that_does_not_answer_is_waited_for_no_longer(bob, tool, weather, settings):
    settings.AMBER_TOOL_TIMEOUT_SECONDS = 0.2
    ended = threading.Event()
    weather.route("/call", lambda connection, _: ended.wait(10))
    shown = attempt(bob, tool)
    ended.set()
    assert shown["result"]["content"] == "forecast did not answer within 0.2 seconds."
    (line,) = log_of(bob, tool)
    assert (line["outcome"], line["detail"]) == ("timeout", "No answer within 0.2 seconds.")
    assert line["latency_ms"] >= 150


def test_a_function_may_have_less_time_than_the_installation_gives(bob, tool, weather):
    weather.functions = [function(timeout_seconds=0.2)]
    api(bob).post(of(tool, "refresh/"))
    ended = threading.Event()
    weather.route("/call", lambda connection, _: ended.wait(10))
    assert "within 0.2 seconds" in attempt(bob, tool)["result"]["content"]
    ended.set()


@pytest.mark.parametrize(("idempotent", "tries"), [(True, 3), (False, 1)])
def test_only_what_says_it_is_safe_is_tried_again(bob, tool, weather, idempotent, tries):
    weather.functions = [function(idempotent=idempotent)]
    api(bob).post(of(tool, "refresh/"))
    weather.route("/call", say_json({"error": "Busy."}, status=503))
    shown = attempt(bob, tool)
    assert len(weather.calls) == len(shown["exchanges"]) == tries
    assert len({body["call_id"] for body in weather.called}) == 1


def test_an_unknown_function_is_named(bob, tool):
    answer = api(bob).post(of(tool), {"function": "tornado"})
    assert answer.status_code == 400
    (said,) = answer.json()["error"]["fields"]["function"]
    assert "tornado" in said
    assert "forecast" in said


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "function"),
        ({"function": ""}, "function"),
        ({"function": "forecast", "arguments": "x"}, "arguments"),
        ({"function": "forecast", "arguments": {"city": "x" * 200_001}}, "arguments"),
    ],
    ids=["none", "empty", "text", "long"],
)
def test_a_wrong_field_is_named(bob, tool, body, field):
    answer = api(bob).post(of(tool), body)
    assert (answer.status_code, list(answer.json()["error"]["fields"])) == (400, [field])


# -- The key and the callback --------------------------------------------------------------------


def test_the_key_goes_to_no_other_origin(bob, weather, other, settings):
    settings.AMBER_TOOL_ALLOWED_HOSTS = [weather.host, f"127.0.0.1:{other.port}"]
    weather.fields = {"callback_url": f"http://127.0.0.1:{other.port}/call"}
    other.routes["/call"] = say_json({"content": "elsewhere"})
    given = {"kind": "discovery", "discovery_url": weather.url, "api_key": KEY}
    tool = create_tool(bob.principal, given=given)
    assert attempt(bob, tool)["result"]["content"] == "elsewhere"
    (request,) = other.requests
    assert "authorization" not in request.headers
    assert KEY not in str(request)


def test_a_callback_that_redirects_keeps_key_and_body(bob, tool, weather, other, settings):
    settings.AMBER_TOOL_ALLOWED_HOSTS = [weather.host, f"127.0.0.1:{other.port}"]
    elsewhere = f"http://127.0.0.1:{other.port}/call"
    weather.route("/call", say(b"", status=307, headers={"Location": elsewhere}))
    assert not attempt(bob, tool)["result"]["ok"]
    assert not other.accepted


# -- The log -------------------------------------------------------------------------------------


def test_the_log_says_how_it_went_and_never_what_was_said(bob, tool, weather):
    weather.reply = lambda _: {"content": "a private answer"}
    attempt(bob, tool, city="a private question")
    answer = api(bob).get(of(tool, "calls/"))
    assert "private" not in answer.content.decode()
    (line,) = answer.json()["results"]
    assert (line["function"], line["outcome"], line["detail"]) == ("forecast", "ok", "")
    assert (line["is_test"], line["user_id"]) == (True, str(bob.user.pk))
    assert line["turn_id"] is line["assistant_id"] is None
    assert line["call_id"] == weather.called[0]["call_id"]
    assert "private" not in str(ToolCallRecord.objects.values())


def test_the_log_is_newest_first_and_can_be_narrowed(bob, tool):
    attempt(bob, tool)
    attempt(bob, tool, city=5)
    assert [line["outcome"] for line in log_of(bob, tool)] == ["refused", "ok"]
    assert [line["outcome"] for line in log_of(bob, tool, outcome="ok")] == ["ok"]


def test_a_key_that_cannot_be_read_is_503_and_sends_nothing(bob, tool, weather):
    Tool.objects.update(api_key_sealed="v1.lost.key")
    answer = api(bob).post(of(tool), {"function": "forecast"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "unavailable")
    assert not weather.calls
