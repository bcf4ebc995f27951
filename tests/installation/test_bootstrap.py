import json
from contextlib import nullcontext
from io import StringIO
from typing import Any
from unittest.mock import Mock

import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError

from accounts.models import ApiKey, Membership, Organization, Role, User
from amber.lib.secrets import new_api_key, sha256_hex
from assistants.models import Assistant
from providers.models import LanguageModel

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _nothing_in_the_environment(monkeypatch):
    for name in ("AMBER_ADMIN_EMAIL", "AMBER_ADMIN_PASSWORD", "AMBER_BOOTSTRAP_API_KEY"):
        monkeypatch.delenv(name, raising=False)


def test_makes_what_a_first_start_needs(capsys):
    call_command("bootstrap")

    admin = User.objects.get(is_superuser=True)
    said = capsys.readouterr().out
    password = said.split("Password, shown only once: ")[1].split()[0]
    secret = said.split("API key of Demo, shown only once: ")[1].split()[0]
    assert admin.check_password(password)
    key = ApiKey.objects.get(sha256=sha256_hex(secret))
    assert (key.user, key.organization.name) == (admin, "Demo")
    assistant = Assistant.objects.get()
    assert (assistant.organization, assistant.shared) == (key.organization, True)
    assert LanguageModel.objects.filter(default=True).exists()


def test_changes_nothing_the_second_time(capsys):
    call_command("bootstrap")
    capsys.readouterr()

    call_command("bootstrap")

    assert capsys.readouterr().out == ""
    assert (User.objects.count(), ApiKey.objects.count(), Assistant.objects.count()) == (1, 1, 1)


def test_does_not_bring_back_what_was_renamed():
    call_command("bootstrap")
    Organization.objects.filter(personal=False).update(name="Acme")
    Assistant.objects.update(name="Helper", slug="helper")

    call_command("bootstrap")

    assert Organization.objects.get(personal=False).name == "Acme"
    assert Assistant.objects.get().slug == "helper"


def test_uses_what_the_environment_names_and_prints_no_secret(monkeypatch, capsys):
    secret = new_api_key()
    monkeypatch.setenv("AMBER_ADMIN_EMAIL", "Root@Example.com")
    monkeypatch.setenv("AMBER_ADMIN_PASSWORD", "correct horse battery")
    monkeypatch.setenv("AMBER_BOOTSTRAP_API_KEY", secret)

    call_command("bootstrap")
    call_command("bootstrap")

    said = capsys.readouterr().out
    admin = User.objects.get(is_superuser=True)
    assert admin.email == "root@example.com"
    assert admin.check_password("correct horse battery")
    assert ApiKey.objects.get().sha256 == sha256_hex(secret)
    assert secret not in said
    assert "correct horse battery" not in said


def test_a_key_of_the_environment_is_added_to_an_old_installation(monkeypatch):
    call_command("bootstrap")
    secret = new_api_key()
    monkeypatch.setenv("AMBER_BOOTSTRAP_API_KEY", secret)

    call_command("bootstrap")

    assert ApiKey.objects.filter(sha256=sha256_hex(secret)).exists()


def test_refuses_a_key_that_is_none(monkeypatch):
    monkeypatch.setenv("AMBER_BOOTSTRAP_API_KEY", "amb_live_guessed")
    with pytest.raises(CommandError, match="not an API key"):
        call_command("bootstrap")


def test_refuses_an_address_that_is_none(monkeypatch):
    monkeypatch.setenv("AMBER_ADMIN_EMAIL", "root")
    with pytest.raises(CommandError, match="email"):
        call_command("bootstrap")


def create_account(capsys: Any, *arguments: str, password: str = "") -> Any:
    """With what somebody pipes into it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stdin", StringIO(f"{password}\n"))
        call_command("create_account", *arguments, *(["--password-stdin"] if password else []))
    line = capsys.readouterr().out
    assert line.count("\n") == 1
    return json.loads(line)


def test_a_full_disk_is_told_in_a_sentence(monkeypatch):
    full = OperationalError(
        "could not extend file: No space left on device\nHINT: Check free space."
    )
    monkeypatch.setattr("amber.management.commands.bootstrap.migrate", Mock(side_effect=full))
    with pytest.raises(
        CommandError, match=r"says: could not extend.* left on device\. What was done"
    ):
        call_command("bootstrap")


def test_an_account_starts_in_its_personal_organization(capsys):
    made = create_account(capsys, "--email", "eve@example.com", password="a long password")

    user = User.objects.get(pk=made["user_id"])
    assert user.check_password("a long password")
    assert Organization.objects.get(pk=made["organization_id"]).personal
    assert made["api_key"] is None


def test_an_account_founds_the_organization_and_the_next_one_joins_it(capsys):
    founder = create_account(
        capsys, "--email", "eve@example.com", "--organization", "Acme", "--api-key"
    )
    joiner = create_account(capsys, "--email", "finn@example.com", "--organization", "Acme")

    assert founder["organization_id"] == joiner["organization_id"]
    roles = Membership.objects.filter(organization_id=founder["organization_id"])
    assert dict(roles.values_list("user__email", "role")) == {
        "eve@example.com": Role.OWNER,
        "finn@example.com": Role.MEMBER,
    }
    key = ApiKey.objects.get(sha256=sha256_hex(founder["api_key"]))
    assert str(key.organization_id) == founder["organization_id"]


def test_an_account_that_exists_is_used_as_it_is(capsys):
    first = create_account(capsys, "--email", "eve@example.com", password="a long password")
    again = create_account(capsys, "--email", "Eve@example.com", password="another one")

    assert first == again
    assert User.objects.get().check_password("a long password")


@pytest.mark.django_db
def test_an_address_that_looks_alike_is_of_somebody_else(capsys):
    stranger = create_account(capsys, "--email", "bıll@wıen.example")
    made = create_account(capsys, "--email", "Bill@wien.example", "--organization", "Acme")
    assert made["user_id"] != stranger["user_id"]
    again = create_account(capsys, "--email", " bill@WIEN.example", "--organization", "Acme")
    assert again["user_id"] == made["user_id"]


def test_a_password_is_never_an_argument():
    with pytest.raises(CommandError, match="unrecognized arguments"):
        call_command("create_account", "--email", "eve@example.com", "--password", "in the history")
    assert not User.objects.exists()


def test_an_empty_password_is_refused(monkeypatch):
    monkeypatch.setattr("sys.stdin", StringIO("\n"))
    with pytest.raises(CommandError, match="empty"):
        call_command("create_account", "--email", "eve@example.com", "--password-stdin")
    assert not User.objects.exists()


@pytest.mark.parametrize(
    ("typed", "is_made"), [(["a long password"] * 2, True), (["a long password", "other"], False)]
)
def test_at_a_terminal_a_password_is_asked_for_twice(monkeypatch, typed, is_made):
    terminal = StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr("sys.stdin", terminal)
    asked = iter(typed)
    command = "amber.management.commands.create_account"
    monkeypatch.setattr(f"{command}.getpass", lambda *_: next(asked))
    with nullcontext() if is_made else pytest.raises(CommandError, match="different"):
        call_command("create_account", "--email", "eve@example.com", "--password-stdin")
    made = [user.check_password("a long password") for user in User.objects.all()]
    assert made == ([True] if is_made else [])


def test_refuses_an_account_without_an_address():
    with pytest.raises(CommandError, match=r"\Aemail: Enter a valid email address.\Z"):
        call_command("create_account", "--email", "eve")
