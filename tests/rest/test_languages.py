"""Pages speak the language of who reads them; REST, its errors and its document are English for everybody."""

import re
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from allauth.socialaccount.models import SocialAccount, SocialApp, SocialToken
from django.contrib.auth import get_user_model
from django.test import Client

from accounts.models import Language
from providers.models import LanguageModel, Provider

GERMAN = {"Accept-Language": "de-AT"}
CHINESE = {"Accept-Language": "zh-CN,zh;q=0.9,en;q=0.8"}


@pytest.mark.parametrize(
    ("headers", "language", "words"),
    [
        (CHINESE, "zh-hans", ("语言模型", "别名", "模型服务")),
        (GERMAN, "de", ("Sprachmodell", "Anbieter", "Kontext-Tokens")),
    ],
    ids=["chinese", "german"],
)
def test_the_admin_is_in_the_language_that_the_browser_says(operator, headers, language, words):
    page = operator.get("/admin/providers/languagemodel/add/", headers=headers)
    text = page.content.decode()
    assert page["Content-Language"] == language
    assert f'<html lang="{language}"' in text
    assert not [word for word in words if word not in text]


def test_what_was_chosen_counts_for_more(operator):
    answer = operator.post("/i18n/setlang/", {"language": "en", "next": "/admin/"}, headers=CHINESE)
    assert answer.status_code == 302
    page = operator.get("/admin/providers/languagemodel/", headers=CHINESE)
    assert '<html lang="en"' in page.content.decode()


@pytest.mark.parametrize("asked", ["", "fr", "nonsense;;q", "x" * 5_000])
def test_whoever_asks_for_no_language_gets_the_installations(operator, settings, asked):
    settings.AMBER_LANGUAGE = "zh-hans"
    page = operator.get("/admin/", HTTP_ACCEPT_LANGUAGE=asked)
    assert page["Content-Language"] == "zh-hans"


def shown_in(page):
    """Return what stands in the page's fields, by their names."""
    fields = re.findall(r"<input[^>]*>", page.content.decode())
    named = [dict(re.findall(r'(name|value)="([^"]*)"', each)) for each in fields]
    return {each["name"]: each["value"] for each in named if {"name", "value"} <= each.keys()}


def test_what_is_searched_is_told_in_german(operator):
    text = operator.get("/admin/accounts/apikey/", headers=GERMAN).content.decode()
    assert "Suchen nach Name, Präfix, ID, Benutzer E-Mail" in text


def test_a_row_is_deleted_in_the_order_of_the_language(operator):
    at = f"/admin/accounts/user/{get_user_model().objects.get().pk}/change/"
    for headers, words in (
        (GERMAN, "Benutzer löschen"),
        (CHINESE, "删除用户"),
        ({}, "Delete user"),
    ):
        assert words in " ".join(operator.get(at, headers=headers).content.decode().split())


def test_a_price_is_shown_and_taken_alike_in_german(operator):
    """In a field for numbers the browser puts the comma; what is sent has a point."""
    provider = Provider.objects.create(name="P", base_url="https://p.example/v1")
    given = {"alias": "m", "upstream_id": "m", "provider": provider}
    model = LanguageModel.objects.create(**given, price_in=Decimal("1234.5"))
    at = f"/admin/providers/languagemodel/{model.pk}/change/"
    fields = shown_in(operator.get(at, headers=GERMAN))
    assert fields["price_in"] == "1234.5"
    chosen = {"tool_dialect": "tools", "system_position": "first", "encoding": model.encoding}
    changed = {"price_out": "0.25", "allowed_parameters": "null"}
    body = fields | {"provider": str(provider.pk)} | chosen | changed
    answer = operator.post(at, body, headers=GERMAN)
    assert answer.status_code == 302, answer.context["adminform"].errors
    model.refresh_from_db()
    assert (model.price_in, model.price_out) == (Decimal("1234.5"), Decimal("0.25"))
    listed = operator.get("/admin/providers/languagemodel/", headers=GERMAN).content.decode()
    assert "1.234,50\u00a0USD / 0,25\u00a0USD" in listed


def test_a_date_is_shown_and_taken_alike_in_german(operator):
    expires_at = datetime(2027, 2, 1, 13, 30, tzinfo=UTC)
    app = SocialApp.objects.create(provider="openid_connect", name="A", client_id="a")
    account = SocialAccount.objects.create(
        user=get_user_model().objects.get(), provider="openid_connect", uid="1"
    )
    row = SocialToken.objects.create(app=app, account=account, token="t", expires_at=expires_at)
    at = f"/admin/socialaccount/socialtoken/{row.pk}/change/"
    fields = shown_in(operator.get(at, headers=GERMAN))
    assert fields["expires_at_0"] == "01.02.2027"
    body = fields | {"app": app.pk, "account": account.pk, "token": "other", "token_secret": ""}
    answer = operator.post(at, body, headers=GERMAN)
    assert answer.status_code == 302, answer.context["adminform"].errors
    row.refresh_from_db()
    assert (row.token, row.expires_at) == ("other", expires_at)


def test_people_choose_among_the_languages_of_pages(settings):
    assert list(Language.choices) == list(settings.LANGUAGES)


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
