"""Test the built-in tool `text_to_speech` with a local form service and a local provider."""

from urllib.parse import parse_qs

import pytest

from amber.lib.secrets import encrypt_column
from amber.lib.tests.local_server import say, send_to
from providers.models import OFFLINE_URL, Provider, UsageRecord
from tests.fixtures.provider import fake_provider
from tools.calling.registry import offer_builtin_tools
from tools.protocol import Circumstances, ProducedFile, ToolContext, ToolError
from tools.tests.services import call, say_json, url_of

__all__ = ["fake_provider"]

WAV = b"RIFF\x24\x00\x00\x00WAVEfmt " + b"\0" * 20
GONE = "The speech service is not available at the moment. Go on without it."


def is_offered(**circumstances):
    return "text_to_speech" in {
        tool.name for tool in offer_builtin_tools(Circumstances(**circumstances))
    }


@pytest.fixture
def form_service(settings, server):
    settings.AMBER_TTS_URL = url_of(server, "/tts")
    server.routes["/tts"] = say_json({"code": 0, "msg": "ok", "url": "/static/a.wav"})
    server.routes["/static/a.wav"] = say(WAV, headers={"Content-Type": "text/html"})
    return server


# -- When it is offered ----------------------------------------------------------------------------


def test_is_not_offered_without_a_service():
    assert not is_offered()


@pytest.mark.parametrize("setting", ["AMBER_TTS_URL", "AMBER_TTS_MODEL"])
def test_is_offered_with_a_service_whether_or_not_the_web_is(settings, setting):
    setattr(settings, setting, "http://tts")
    assert is_offered()
    assert is_offered(disable_web_browsing=True)
    names = [t.name for t in offer_builtin_tools(Circumstances(), disabled={"text_to_speech"})]
    assert "text_to_speech" not in names


# -- The form service ------------------------------------------------------------------------------


def test_the_form_goes_out_and_the_audio_comes_back(form_service, context):
    output = call("text_to_speech", {"text": " Good morning, 世界 "}, context)
    assert output.text == "The speech is in the file speech.wav."
    assert output.files == (ProducedFile("speech.wav", "audio/wav", WAV),)
    posted, fetched = form_service.requests
    assert (posted.method, posted.target) == ("POST", "/tts")
    assert posted.headers["content-type"] == "application/x-www-form-urlencoded"
    assert parse_qs(posted.body.decode(), keep_blank_values=True) == {
        "text": ["Good morning, 世界"],
        "prompt": [""],
        "voice": ["3333"],
        "speed": ["5"],
        "temperature": ["0.00001"],
        "top_p": ["0.7"],
        "top_k": ["20"],
        "refine_max_new_token": ["384"],
        "infer_max_new_token": ["2048"],
        "text_seed": ["42"],
        "skip_refine": ["0"],
        "custom_voice": ["0"],
    }
    assert (fetched.method, fetched.target) == ("GET", "/static/a.wav")


@pytest.mark.parametrize(
    "answer",
    [
        {"url": "{here}/static/a.wav"},
        {"url": "static/a.wav"},
        {"audio_files": [{"filename": "/wavs/a.wav", "url": "{here}/static/a.wav"}]},
        {"code": 0, "audio_files": [{"url": "/static/a.wav"}, {"url": "/static/b.wav"}]},
    ],
)
def test_the_address_may_stand_where_services_put_it(form_service, context, answer):
    written = repr(answer).replace("{here}", url_of(form_service)).replace("'", '"')
    form_service.routes["/tts"] = say(written.encode())
    assert call("text_to_speech", {"text": "Hi"}, context).files[0].content == WAV


@pytest.mark.parametrize(
    "answer",
    [
        say_json({"code": 1, "msg": "no voice"}),
        say_json({"msg": "ok"}),
        say_json({"url": None, "audio_files": []}),
        say_json({"audio_files": [{"filename": "/wavs/a.wav"}]}),
        say_json(["url"]),
        say(b"<html>"),
        say(b"", status=500),
        say_json({"url": "/gone.wav"}),
        say_json({"url": "http://["}),
    ],
)
def test_a_service_that_fails_is_unavailable(form_service, context, answer):
    form_service.routes["/tts"] = answer
    form_service.routes["/gone.wav"] = say(b"", status=404)
    with pytest.raises(ToolError) as caught:
        call("text_to_speech", {"text": "Hi"}, context)
    assert str(caught.value) == GONE


@pytest.mark.parametrize("content", [b"", b"<html>not found</html>", b"\x89PNG\r\n\x1a\n", b"RIFF"])
def test_what_is_no_audio_is_no_file(form_service, context, content):
    form_service.routes["/static/a.wav"] = say(content, headers={"Content-Type": "audio/wav"})
    with pytest.raises(ToolError, match="not audio"):
        call("text_to_speech", {"text": "Hi"}, context)


def test_too_much_audio_is_refused(settings, form_service, context):
    settings.AMBER_MAX_UPLOAD_BYTES = len(WAV) - 1
    with pytest.raises(ToolError) as caught:
        call("text_to_speech", {"text": "Hi"}, context)
    assert str(caught.value) == GONE


@pytest.mark.parametrize("text", ["", " \n", "x" * 4_001])
def test_a_text_has_its_limits(form_service, context, text):
    with pytest.raises(ToolError, match="A text has 1 to 4,000 characters"):
        call("text_to_speech", {"text": text}, context)
    assert not form_service.requests


def test_an_address_in_the_answer_opens_no_door(form_service, other, context):
    form_service.routes["/tts"] = say_json({"url": url_of(other, "/a.wav")})
    with pytest.raises(ToolError):
        call("text_to_speech", {"text": "Hi"}, context)
    assert other.accepted == 0


def test_a_redirect_of_the_audio_opens_no_door(form_service, other, context):
    form_service.routes["/static/a.wav"] = send_to(url_of(other, "/a.wav"))
    with pytest.raises(ToolError):
        call("text_to_speech", {"text": "Hi"}, context)
    assert other.accepted == 0


# -- The provider ----------------------------------------------------------------------------------


@pytest.fixture
def provider(settings, fake_provider):
    """The offline provider and one made by hand are older, but the environment's is meant."""
    settings.AMBER_TTS_MODEL = "fake-model"
    Provider.objects.create(name="Offline", base_url=OFFLINE_URL)
    Provider.objects.create(name="By hand", base_url="http://127.0.0.1:9/v1")
    row = Provider(name="First", base_url=fake_provider.base_url, environment_sealed="x")
    encrypt_column(row, "api_key", fake_provider.api_key)
    row.save()
    return row


@pytest.fixture
def alices(alice):
    return ToolContext(organization_id=alice.organization.pk, user_id=alice.user.pk)


@pytest.mark.django_db(transaction=True)
def test_the_provider_speaks_and_the_ledger_knows(provider, alices):
    output = call("text_to_speech", {"text": "Good morning"}, alices)
    assert output.files == (ProducedFile("speech.mp3", "audio/mpeg", b"ID3Good morning"),)
    row = UsageRecord.objects.get()
    assert (row.kind, row.model, row.outcome, row.user_id) == (
        "speech",
        "fake-model",
        "ok",
        alices.user_id,
    )
    assert (row.estimated, row.prompt_tokens) == (True, 2)


@pytest.mark.django_db(transaction=True)
def test_a_refusal_is_in_the_ledger_and_its_reason_is_not_told(settings, provider, alices):
    settings.AMBER_TTS_MODEL = "fake-401"
    with pytest.raises(ToolError) as caught:
        call("text_to_speech", {"text": "Hi"}, alices)
    assert str(caught.value) == GONE
    assert UsageRecord.objects.get().outcome == "provider_auth"


@pytest.mark.django_db(transaction=True)
def test_without_a_provider_there_is_no_speech(settings, alices):
    settings.AMBER_TTS_MODEL = "tts-1"
    with pytest.raises(ToolError) as caught:
        call("text_to_speech", {"text": "Hi"}, alices)
    assert str(caught.value) == GONE


def test_the_form_service_comes_first(settings, form_service, context):
    settings.AMBER_TTS_MODEL = "tts-1"
    assert call("text_to_speech", {"text": "Hi"}, context).files[0].content == WAV
