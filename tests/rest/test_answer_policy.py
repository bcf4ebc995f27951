"""What answers say to browsers: who may keep them, and what their pages may load and run."""

import re

import pytest
from django.test import Client

from tests.fixtures.personas import api


@pytest.mark.parametrize(
    "path",
    [
        *(
            "/api/v1/me/",
            "/api/v1/chats/",
            "/api/v1/api-keys/",
            "/api/v1/nowhere/",
            "/api/v1/usage/",
        ),
        *("/_allauth/browser/v1/auth/session", "/_allauth/browser/v1/account/email"),
    ],
)
def test_personal_answers_are_kept_by_nobody(alice, path):
    for client in (api(alice), api()):
        assert "no-store" in client.get(path)["Cache-Control"]


@pytest.mark.parametrize("path", ["/v1/models", "/v1/responses/resp_x", "/api/v1/me/export/"])
def test_so_are_those_to_keys(alice, path):
    assert api(key=alice.new_key()[1]).get(path)["Cache-Control"] == "no-store"


def test_so_are_refusals_and_what_is_written(alice):
    made = api(alice).post("/api/v1/chats/", {})
    assert (made.status_code, made["Cache-Control"]) == (201, "no-store")
    refused = api(alice, check_csrf=True).post("/api/v1/chats/", {})
    assert (refused.status_code, refused["Cache-Control"]) == (403, "no-store")


@pytest.mark.parametrize("path", ["/admin/", "/admin/login/", "/admin/accounts/user/"])
def test_so_are_the_admins_pages(operator, path):
    for client in (operator, Client()):
        assert "no-store" in client.get(path)["Cache-Control"]


@pytest.mark.parametrize("path", ["/api/schema/", "/api/docs/", "/api/docs/?script="])
def test_the_apis_description_may_be_kept(db, path):
    assert "no-store" not in Client().get(path).get("Cache-Control", "")


@pytest.mark.parametrize("path", ["/static/amber-widget.js", "/static/amber/docs.css"])
def test_so_may_static_files(db, path):
    answer = Client().get(path)
    answer.close()
    assert "max-age" in answer["Cache-Control"]


def policy(client: Client, path: str) -> dict[str, list[str]]:
    answer = client.get(path)
    directives = [part.split() for part in answer["Content-Security-Policy"].split(";") if part]
    return {name: sources for name, *sources in directives}


@pytest.mark.parametrize("path", ["/api/docs/", "/nowhere", "/api/v1/me/"])
def test_pages_run_no_code_that_stands_in_them(db, path):
    said = policy(Client(), path)
    assert said["default-src"] == ["'none'"]
    assert said["script-src"] == said["style-src"] == ["'self'"]
    assert "unsafe" not in str(said)


@pytest.mark.parametrize("path", ["/admin/", "/admin/login/", "/admin/accounts/user/add/"])
def test_the_admin_alone_evaluates_expressions(operator, path):
    for client in (operator, Client()):
        page = client.get(path, follow=False)
        said = policy(client, path)
        assert said["script-src"] == ["'self'", "'unsafe-eval'"], page.status_code
        assert said["style-src"] == ["'self'", "'unsafe-inline'"]
        assert said["default-src"] == said["frame-ancestors"] == ["'none'"]


def test_the_docs_hold_neither_style_nor_script(db):
    page = Client().get("/api/docs/").content.decode()
    assert not re.search(r"<style|<script(?![^>]* src=)| style=| on\\w+=", page)
    script = Client().get("/api/docs/?script=")
    assert script["Content-Type"].startswith("application/javascript")
    assert b"SwaggerUIBundle({" in script.content


@pytest.mark.parametrize("path", ["/", "/admin/", "/api/v1/me/"])
def test_who_comes_by_another_host_learns_what_its_operator_must_do(path):
    answer = Client().get(path, HTTP_HOST="192.168.1.5:8000")
    assert answer.status_code == 400
    assert "AMBER_ALLOWED_HOSTS" in answer.json()["error"]["message"]
