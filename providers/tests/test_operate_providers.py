"""Test the admin's pages of providers and models."""

import pytest
from django.test import Client

from amber.lib.operator_pages import CappedPaginator
from amber.lib.secrets import decrypt_column, encrypt_column
from engine.provider.model import Usage
from providers.models import LanguageModel, Provider, UsageRecord
from providers.usage import ledger

PROVIDERS = "/admin/providers/provider/"
MODELS = "/admin/providers/languagemodel/"


def saved_key() -> str:
    return decrypt_column(Provider.objects.get(), "api_key")


def test_a_key_goes_in_and_never_comes_out(operator):
    body = {"name": "P", "base_url": "https://p.example/v1/", "api_key": " sk-secret "}
    answer = operator.post(f"{PROVIDERS}add/", body)
    assert answer.status_code == 302
    provider = Provider.objects.get()
    assert (provider.base_url, saved_key()) == ("https://p.example/v1", "sk-secret")
    page = operator.get(f"{PROVIDERS}{provider.pk}/change/").content.decode()
    assert "sk-secret" not in page
    assert provider.api_key_sealed not in page


def test_an_empty_key_keeps_the_old_one_and_the_box_forgets_it(operator, provider):
    encrypt_column(provider, "api_key", "sk-secret")
    provider.save()
    change = f"{PROVIDERS}{provider.pk}/change/"
    body = {"name": "Renamed", "base_url": provider.base_url, "api_key": ""}
    assert operator.post(change, body).status_code == 302
    assert (Provider.objects.get().name, saved_key()) == ("Renamed", "sk-secret")
    assert operator.post(change, body | {"forget_api_key": "on"}).status_code == 302
    assert saved_key() == ""


def test_an_address_must_be_one(operator):
    answer = operator.post(f"{PROVIDERS}add/", {"name": "P", "base_url": "p.example"})
    assert answer.status_code == 200
    assert not Provider.objects.exists()


def test_the_default_model_is_chosen_by_an_action(operator, new_model):
    old, new = new_model("old", default=True), new_model("new")
    body = {"action": "make_default", "_selected_action": [str(new.pk)]}
    page = operator.post(MODELS, body, follow=True).content.decode()
    assert "new is now the default" in page
    assert LanguageModel.objects.get(default=True) == new
    body["_selected_action"] = [str(old.pk), str(new.pk)]
    assert "exactly one" in operator.post(MODELS, body, follow=True).content.decode()
    assert LanguageModel.objects.get(default=True) == new


def test_a_refused_action_says_why(operator, new_model):
    blind = new_model("blind")
    body = {"action": "make_default_vision", "_selected_action": [str(blind.pk)]}
    assert "must accept images" in operator.post(MODELS, body, follow=True).content.decode()


def test_the_length_of_vectors_is_fixed(operator, new_embedding_model):
    model = new_embedding_model("e", dimensions=64)
    page = operator.get(f"/admin/providers/embeddingmodel/{model.pk}/change/").content.decode()
    assert 'name="dimensions"' not in page
    add = operator.get("/admin/providers/embeddingmodel/add/").content.decode()
    assert 'name="dimensions"' in add


def test_usage_is_read_only(operator, alice, new_model):
    row = ledger.record(new_model("m"), Usage(1, 1), organization_id=alice.organization.pk)
    usage = "/admin/providers/usagerecord/"
    assert "m" in operator.get(usage).content.decode()
    assert operator.get(f"{usage}{row.pk}/change/").status_code == 200
    assert operator.post(f"{usage}{row.pk}/change/", {"model": "x"}).status_code == 403
    assert operator.get(f"{usage}add/").status_code == 403
    assert operator.post(f"{usage}{row.pk}/delete/", {"post": "yes"}).status_code == 403


@pytest.mark.parametrize("page", ["provider", "languagemodel", "embeddingmodel", "budget"])
def test_every_page_opens(operator, new_model, new_embedding_model, page):
    new_model("m")
    new_embedding_model("e")
    assert operator.get(f"/admin/providers/{page}/").status_code == 200
    assert operator.get(f"/admin/providers/{page}/add/").status_code == 200


def test_only_operators_get_in(alice):
    client = Client()
    client.force_login(alice.user)
    assert client.get(PROVIDERS).status_code == 302


def test_large_tables_are_counted_up_to_a_bound(alice, new_model, monkeypatch):
    monkeypatch.setattr("amber.lib.operator_pages.pages.MAX_COUNTED_ROWS", 3)
    model = new_model("m")
    for _ in range(5):
        ledger.record(model, Usage(1, 1), organization_id=alice.organization.pk)
    pages = CappedPaginator(UsageRecord.objects.order_by("-pk"), 2)
    assert (pages.count, pages.num_pages) == (3, 2)
