"""Pages speak the language of who reads them; REST, its errors and its document are English for everybody."""

import pytest
from django.test import Client

from accounts.models import Language

CHINESE = {"Accept-Language": "zh-CN,zh;q=0.9,en;q=0.8"}


def test_the_admin_is_chinese_for_whom_the_browser_says_so(operator):
    page = operator.get("/admin/providers/languagemodel/add/", headers=CHINESE)
    text = page.content.decode()
    assert page["Content-Language"] == "zh-hans"
    assert '<html lang="zh-hans"' in text
    for words in ("语言模型", "别名", "模型服务"):
        assert words in text


def test_what_was_chosen_counts_for_more(operator):
    answer = operator.post("/i18n/setlang/", {"language": "en", "next": "/admin/"}, headers=CHINESE)
    assert answer.status_code == 302
    page = operator.get("/admin/providers/languagemodel/", headers=CHINESE)
    assert '<html lang="en"' in page.content.decode()


@pytest.mark.parametrize("asked", ["", "de", "nonsense;;q", "x" * 5_000])
def test_whoever_asks_for_no_language_gets_the_installations(operator, settings, asked):
    settings.AMBER_LANGUAGE = "zh-hans"
    page = operator.get("/admin/", HTTP_ACCEPT_LANGUAGE=asked)
    assert page["Content-Language"] == "zh-hans"


def test_operators_pages_are_not_german_by_halves(operator, settings):
    settings.AMBER_LANGUAGE = "de"
    page = operator.get("/admin/", headers={"Accept-Language": "de"})
    assert page["Content-Language"] == "en"


def test_people_choose_among_the_languages_of_mails(settings):
    assert set(Language.values) == set(settings.MAIL_LANGUAGES)


@pytest.mark.parametrize(("asked", "said"), [("de-AT", "E-Mail"), ("en", "email"), ("", "E-Mail")])
def test_signing_in_is_answered_in_german(db, settings, asked, said):
    settings.AMBER_LANGUAGE = "de"
    answer = Client().post(
        "/_allauth/browser/v1/auth/login",
        {"email": "nobody", "password": "x"},
        content_type="application/json",
        HTTP_ACCEPT_LANGUAGE=asked,
    )
    assert said in answer.json()["errors"][0]["message"]


def test_the_sign_in_page_is_chinese(db):
    text = Client().get("/identity/sign-in", headers=CHINESE).content.decode()
    assert "<h1>登录</h1>" in text
    assert "无法连接 Amber" in text


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/v1/assistants/", {"name": "x" * 999, "model": ""}),
        ("/api/v1/libraries/", {"name": "", "chunk_tokens": "many"}),
        ("/api/v1/api-keys/", {"expires_at": "yesterday"}),
        ("/v1/chat/completions", {"messages": "none"}),
    ],
)
def test_errors_of_rest_are_english(operator, path, body):
    """Also right after a page was shown in Chinese by the same thread."""
    english = operator.post(path, body, content_type="application/json")
    operator.get("/admin/", headers=CHINESE)
    asked = operator.post(path, body, content_type="application/json", headers=CHINESE)
    assert asked.status_code in (400, 401)
    assert strip_id(asked) == strip_id(english)
    assert asked.content.isascii()


def strip_id(answer):
    error = answer.json()["error"]
    return {name: said for name, said in error.items() if name != "request_id"}


def test_the_document_of_the_api_is_english(client):
    english = client.get("/api/schema/").content
    assert client.get("/api/schema/", headers=CHINESE).content == english
    assert "助手" not in english.decode()
