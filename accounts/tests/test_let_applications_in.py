"""OAuth for applications: they register, a person lets them in, tokens act as a key until it ends."""

import base64
import hashlib
import json
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from allauth.idp.oidc.models import Client, Token
from django.http import HttpRequest
from django.test import Client as Browser
from django.utils import timezone

from accounts import services
from accounts.auth_pages.oauth_adapter import is_fit_to_return_to
from accounts.models import ApiKey, AuditEvent, Membership
from accounts.sign_in.applications import forget_unused, key_hash_of_token
from tests.fixtures.personas import Persona, api

pytestmark = pytest.mark.django_db(transaction=True)

VERIFIER = "v" * 64
CHALLENGE = (
    base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).decode().rstrip("=")
)
RETURN = "http://127.0.0.1:7777/callback"
ROOT = "http://testserver"


@pytest.fixture(autouse=True)
def no_rates(settings: Any) -> None:
    settings.IDP_OIDC_RATE_LIMITS = False


def register(**said: Any) -> Any:
    body = {
        "client_name": "Reader",
        "redirect_uris": [RETURN],
        "grant_types": ["authorization_code", "refresh_token"],
        "token_endpoint_auth_method": "none",
    } | said
    return Browser().post("/identity/o/api/clients", json.dumps(body), "application/json")


@pytest.fixture
def client_id() -> str:
    answer = register()
    assert answer.status_code == 201, answer.content
    return str(answer.json()["client_id"])


def asked(client_id: str, /, **others: str) -> dict[str, str]:
    return {
        "response_type": "code",
        "client_id": client_id,
        "redirect_uri": RETURN,
        "scope": "mcp",
        "state": "s1",
        "code_challenge": CHALLENGE,
        "code_challenge_method": "S256",
        "resource": f"{ROOT}/mcp",
    } | others


def browser_of(persona: Persona) -> Browser:
    browser = Browser(enforce_csrf_checks=True)
    browser.cookies.update(api(persona).cookies)
    return browser


def consent(browser: Browser, page: Any, **answer: str) -> Any:
    form = page.context["form"]
    fields = {
        "request": form.initial["request"],
        "scopes": "mcp",
        "organization": form.initial["organization"],
        "action": "grant",
        "csrfmiddlewaretoken": browser.cookies["csrftoken"].value,
    }
    return browser.post("/identity/o/authorize", fields | answer)


def code_for(persona: Persona, client_id: str, **answer: str) -> str:
    browser = browser_of(persona)
    page = browser.get("/identity/o/authorize", asked(client_id))
    assert page.status_code == 200, page.content
    done = consent(browser, page, **answer)
    assert done.status_code == 302, done.content
    said = parse_qs(urlsplit(done["Location"]).query)
    assert done["Location"].startswith(RETURN)
    assert said["state"] == ["s1"]
    return str(said["code"][0])


def exchange(client_id: str, **fields: str) -> Any:
    return Browser().post("/identity/o/api/token", {"client_id": client_id, **fields})


def tokens_for(persona: Persona, client_id: str, **answer: str) -> dict[str, Any]:
    done = exchange(
        client_id,
        grant_type="authorization_code",
        code=code_for(persona, client_id, **answer),
        redirect_uri=RETURN,
        code_verifier=VERIFIER,
        resource=f"{ROOT}/mcp",
    )
    assert done.status_code == 200, done.content
    told: dict[str, Any] = done.json()
    return told


def test_an_app_cannot_pass_for_a_site(alice):
    """Behind an app's scheme may stand any name of a host, and the app is what gets the code."""
    place = "evil-app://accounts.example.com/callback"
    app = str(register(redirect_uris=[place]).json()["client_id"])
    page = browser_of(alice).get("/identity/o/authorize", asked(app, redirect_uri=place))
    assert page.status_code == 200, page.content
    told = page.content.decode()
    assert "<strong>an app on this device (evil-app:)</strong>" in told
    assert "accounts.example.com" not in told.split("<form")[0]


def ping(token: str) -> Any:
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    return Browser().post(
        "/mcp",
        json.dumps(message),
        "application/json",
        headers={"Authorization": f"Bearer {token}"},
    )


def is_let_in(token: str) -> bool:
    """Whether the view was reached: Django's test client does not wait for its answer."""
    status = ping(token).status_code
    assert status in (202, 401), status
    return bool(status == 202)


def test_the_server_says_where_everything_is():
    about = Browser().get("/.well-known/oauth-authorization-server").json()
    assert about["issuer"] == ROOT
    assert about["registration_endpoint"] == f"{ROOT}/identity/o/api/clients"
    assert about["authorization_endpoint"] == f"{ROOT}/identity/o/authorize"
    assert about["code_challenge_methods_supported"] == ["S256"]
    resource = Browser().get("/.well-known/oauth-protected-resource/mcp")
    assert resource.json()["authorization_servers"] == [about["issuer"]]
    assert resource["Access-Control-Allow-Origin"] == "*"


def test_an_application_acts_as_a_key_of_whoever_let_it_in(alice, client_id):
    told = tokens_for(alice, client_id)
    assert told["token_type"] == "Bearer"
    assert told["scope"] == "mcp"
    assert is_let_in(told["access_token"])
    key = ApiKey.objects.get(oauth_client=client_id)
    assert (key.user, key.organization) == (alice.user, alice.organization)
    assert (key.name, key.scopes) == ("Reader", ["mcp"])
    assert AuditEvent.objects.filter(action="key.made", target_id=key.pk).exists()
    listed = api(alice).get("/api/v1/api-keys/").json()["results"]
    assert [each["oauth_client"] for each in listed] == [client_id]
    assert not Token.objects.filter(hash__in=told.values()).exists()


def test_a_token_opens_nothing_but_the_mcp_server(alice, client_id):
    token = tokens_for(alice, client_id)["access_token"]
    for address in ("/api/v1/chats/", "/v1/models", "/api/v1/me/", "/api/v1/libraries/"):
        answer = Browser().get(address, headers={"Authorization": f"Bearer {token}"})
        assert answer.status_code == 401, address


def test_a_refreshed_token_replaces_the_older_one(alice, client_id):
    first = tokens_for(alice, client_id)
    again = exchange(client_id, grant_type="refresh_token", refresh_token=first["refresh_token"])
    assert again.status_code == 200, again.content
    assert is_let_in(again.json()["access_token"])
    twice = exchange(client_id, grant_type="refresh_token", refresh_token=first["refresh_token"])
    assert twice.status_code == 400


def test_revoking_the_key_ends_the_application(alice, client_id):
    told = tokens_for(alice, client_id)
    key = ApiKey.objects.get(oauth_client=client_id)
    assert api(alice).delete(f"/api/v1/api-keys/{key.pk}/").status_code == 204
    assert not is_let_in(told["access_token"])
    fields = {"grant_type": "refresh_token", "refresh_token": told["refresh_token"]}
    assert exchange(client_id, **fields).status_code == 400
    assert is_let_in(tokens_for(alice, client_id)["access_token"])


@pytest.mark.parametrize("end", ["membership", "user", "expiry", "scope", "resource", "revoked"])
def test_a_token_ends_with_what_it_rests_on(alice, bob, client_id, end):
    told = tokens_for(bob, client_id)
    token = told["access_token"]
    assert is_let_in(token)
    match end:
        case "membership":
            mine = Membership.objects.get(user=bob.user, organization=bob.organization)
            services.remove_member(mine, by=alice.principal)
        case "user":
            bob.user.is_active = False
            bob.user.save()
        case "expiry":
            Token.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
        case "scope":
            Token.objects.update(scopes="")
        case "resource":
            Token.objects.update(data={"resources": ["https://other.example/mcp"]})
        case "revoked":
            Browser().post("/identity/o/api/revoke", {"token": token, "client_id": client_id})
    assert not is_let_in(token)


def test_the_person_chooses_the_organization(alice, client_id):
    other = services.create_organization(alice.user, name="Other")
    tokens_for(alice, client_id, organization=str(other.pk))
    assert ApiKey.objects.get(oauth_client=client_id).organization == other
    moved = tokens_for(alice, client_id)
    live = ApiKey.objects.live().get(oauth_client=client_id)
    assert live.organization == alice.organization
    assert is_let_in(moved["access_token"])


def test_nobody_lets_an_application_into_an_organization_of_others(alice, mallory, client_id):
    browser = browser_of(mallory)
    page = browser.get("/identity/o/authorize", asked(client_id))
    done = consent(browser, page, organization=str(alice.organization.pk))
    assert done.status_code == 200
    assert not ApiKey.objects.filter(oauth_client=client_id).exists()


def test_another_application_cannot_use_a_code_or_a_refresh_token(alice, client_id):
    other = register(client_name="Thief").json()["client_id"]
    code = code_for(alice, client_id)
    fields = {"grant_type": "authorization_code", "redirect_uri": RETURN, "code_verifier": VERIFIER}
    assert exchange(other, code=code, **fields).status_code == 400
    wrong = fields | {"code_verifier": "w" * 64}
    assert exchange(client_id, code=code, **wrong).status_code == 400
    refresh = tokens_for(alice, client_id)["refresh_token"]
    stolen = exchange(other, grant_type="refresh_token", refresh_token=refresh)
    assert stolen.status_code == 400
    assert not ApiKey.objects.filter(oauth_client=other).exists()


def test_whoever_is_not_signed_in_is_led_to_a_page_for_it(client_id):
    answer = Browser().get("/identity/o/authorize", asked(client_id))
    assert answer.status_code == 302
    assert answer["Location"].startswith("/identity/sign-in?next=/identity/o/authorize")
    page = Browser().get(answer["Location"])
    assert b'data-next="/identity/o/authorize?' in page.content
    for away in ("https://evil.example/", "//evil.example", "javascript:alert(1)"):
        page = Browser().get("/identity/sign-in", {"next": away})
        assert b'data-next="/"' in page.content


def test_the_page_names_the_application_and_cannot_be_framed(alice, client_id):
    page = browser_of(alice).get("/identity/o/authorize", asked(client_id))
    said = page.content.decode()
    assert "Reader" in said
    assert "127.0.0.1" in said
    assert alice.user.email in said
    policy = page["Content-Security-Policy"]
    assert "frame-ancestors 'none'" in policy
    assert "form-action 'self' http://127.0.0.1:7777" in policy
    assert page["X-Frame-Options"] == "DENY"


def test_a_name_of_an_application_is_what_it_looks_like():
    assert register(client_name="\u202eRea\u200bder").json()["client_name"] == "Reader"
    assert "without a name" in register(client_name="\u200b").json()["client_name"]


def test_words_of_an_application_are_no_markup(alice):
    answer = register(client_name='"><img src=x onerror=alert(1)>')
    assert answer.status_code == 400
    quoted = register(client_name='" onload="alert(1)').json()["client_id"]
    page = browser_of(alice).get("/identity/o/authorize", asked(quoted))
    assert b'" onload=' not in page.content


def test_declining_gives_nothing(alice, client_id):
    browser = browser_of(alice)
    page = browser.get("/identity/o/authorize", asked(client_id))
    done = consent(browser, page, action="cancel")
    assert "error=access_denied" in done["Location"]
    assert not ApiKey.objects.filter(oauth_client=client_id).exists()


def test_consent_needs_the_pages_own_token(alice, client_id):
    browser = browser_of(alice)
    page = browser.get("/identity/o/authorize", asked(client_id))
    done = consent(browser, page, csrfmiddlewaretoken="wrong")
    assert done.status_code == 403
    assert not ApiKey.objects.filter(oauth_client=client_id).exists()


@pytest.mark.parametrize(
    "others",
    [
        {"code_challenge_method": "plain"},
        {"code_challenge": ""},
        {"redirect_uri": "https://evil.example/"},
        {"redirect_uri": RETURN + "/../x"},
        {"client_id": "nobody"},
        {"resource": "https://other.example/mcp"},
        {"prompt": "none"},
    ],
    ids=str,
)
def test_what_is_asked_wrongly_is_told_on_the_page_and_led_nowhere(alice, client_id, others):
    answer = browser_of(alice).get("/identity/o/authorize", asked(client_id, **others))
    assert answer.status_code in (200, 400)
    assert "This did not work" in answer.content.decode()


@pytest.mark.parametrize(
    "others", [{"scope": "openid"}, {"scope": "mcp read"}, {"response_type": "token"}]
)
def test_other_scopes_and_flows_are_refused(alice, client_id, others):
    answer = browser_of(alice).get("/identity/o/authorize", asked(client_id, **others))
    assert answer.status_code in (200, 302, 400)
    if answer.status_code == 302:
        assert "error=" in answer["Location"]
    assert not ApiKey.objects.filter(oauth_client=client_id).exists()


@pytest.mark.parametrize(
    "said",
    [
        {"redirect_uris": []},
        {"redirect_uris": ["javascript:alert(1)"]},
        {"redirect_uris": ["http://example.com/callback"]},
        {"redirect_uris": ["https://a.example/#x"]},
        {"redirect_uris": [RETURN] * 21},
        {"redirect_uris": "https://a.example"},
        {"redirect_uris": [5]},
        {"grant_types": ["client_credentials"]},
        {"grant_types": ["password"]},
        {"client_name": "a\0b"},
        {"client_name": "x" * 101},
        {"more": "x" * 70_000},
    ],
    ids=range(12),
)
def test_odd_applications_are_not_registered(said):
    assert register(**said).status_code in (400, 413)
    assert not Client.objects.exists()


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"[" * 50_000, b'{"a":' * 2_000], ids=range(5))
def test_rubbish_is_not_registered(body):
    answer = Browser().post("/identity/o/api/clients", body, "application/json")
    assert answer.status_code == 400
    assert answer.json()["error"] == "invalid_client_metadata"


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"grant_type": "password"},
        {"grant_type": "client_credentials"},
        {"code": "a\0b"},
        {"resource": "x"},
    ],
    ids=range(5),
)
def test_rubbish_gets_no_token(client_id, fields):
    answer = exchange(client_id, **fields)
    assert answer.status_code in (400, 401)
    assert answer.json()["error"]


def test_registration_is_limited(settings):
    settings.IDP_OIDC_RATE_LIMITS = {"client_registration": "2/m/ip"}
    assert [register().status_code for _ in range(3)][-1] == 429


def test_applications_get_one_scope_whatever_they_say():
    told = register(scope="openid email mcp", response_types=["code", "token"]).json()
    assert told["scope"] == "mcp"
    assert told["response_types"] == ["code"]


def test_what_nobody_uses_is_forgotten(alice, client_id):
    used = register().json()["client_id"]
    tokens_for(alice, used)
    forget_unused()
    assert Client.objects.count() == 2
    Client.objects.update(created_at=timezone.now() - timedelta(days=8))
    Token.objects.filter(type=Token.Type.ACCESS_TOKEN).update(
        expires_at=timezone.now() - timedelta(seconds=1)
    )
    forget_unused()
    assert list(Client.objects.values_list("pk", flat=True)) == [used]
    assert not Token.objects.filter(type=Token.Type.ACCESS_TOKEN).exists()


def test_a_key_of_an_application_is_not_rotated(alice, client_id):
    tokens_for(alice, client_id)
    key = ApiKey.objects.get(oauth_client=client_id)
    answer = api(alice).post(f"/api/v1/api-keys/{key.pk}/rotate/", {})
    assert answer.status_code == 409


def test_no_token_is_no_key(db):
    assert key_hash_of_token("", HttpRequest()) == ""
    assert key_hash_of_token("nobody's", HttpRequest()) == ""


@pytest.mark.parametrize(
    ("uri", "is_fit"),
    [
        ("https://claude.ai/api/mcp/auth_callback", True),
        ("http://localhost:3334/oauth/callback", True),
        ("http://[::1]:80/", True),
        ("cursor://anysphere.cursor-retrieval/oauth/callback", True),
        ("com.example.app:/callback", True),
        ("http://localhost.evil.example/", False),
        ("http://user@localhost/", False),
        ("https://user@a.example/", False),
        ("JavaScript:alert(1)", False),
        ("data:text/html,x", False),
        ("file:///etc/passwd", False),
        ("https:///x", False),
        ("//a.example/", False),
        ("https://a.example/*", False),
        ("https://a.example/ x", False),
        ("https://a.example\\@b.example/", False),
        ("http://[bad", False),
        ("https://é.example/", False),
        ("", False),
    ],
)
def test_addresses_to_return_to(uri, is_fit):
    assert is_fit_to_return_to(uri) is is_fit
