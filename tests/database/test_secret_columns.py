"""Secrets are encrypted for the table, column, row and organization that stored ones were encrypted for."""

from uuid import uuid4

import pytest

from accounts.models import OutgoingMail
from amber.lib.secrets import (
    DecryptError,
    cell_of,
    decrypt,
    decrypt_column,
    encrypt,
    encrypt_column,
)
from libraries.models import Repository
from providers.models import Provider
from public_api.models import Webhook
from tools.models import Tool

CELLS = [
    (Provider, "api_key", "providers_provider.api_key"),
    (Provider, "environment", "providers_provider.environment"),
    (Tool, "api_key", "tools_tool.api_key"),
    (Tool, "oauth", "tools_tool.oauth"),
    (Repository, "token", "libraries_repository.token"),
    (Webhook, "secret", "public_api_webhook.secret"),
    (OutgoingMail, "details", "accounts_outgoingmail.details"),
]


def new_row(model):
    return model() if model is Provider else model(organization_id=uuid4())


@pytest.mark.parametrize(("model", "column", "place"), CELLS)
def test_what_is_stored_can_be_read(model, column, place):
    row = new_row(model)
    organization_id = getattr(row, "organization_id", None)
    stored = encrypt("s3cret", table=place, pk=row.pk, organization_id=organization_id)
    setattr(row, f"{column}_sealed", stored)
    assert decrypt_column(row, column) == "s3cret"


@pytest.mark.parametrize(("model", "column", "place"), CELLS)
def test_a_secret_is_of_no_use_in_another_row(model, column, place):
    row, other = new_row(model), new_row(model)
    encrypt_column(row, column, "s3cret")
    setattr(other, f"{column}_sealed", getattr(row, f"{column}_sealed"))
    with pytest.raises(DecryptError):
        decrypt_column(other, column)


def test_no_secret_is_stored_as_nothing():
    tool = new_row(Tool)
    encrypt_column(tool, "api_key", "k")
    encrypt_column(tool, "api_key", "")
    assert (tool.api_key_sealed, decrypt_column(tool, "api_key")) == ("", "")


def test_where_a_secret_must_be_none_is_an_error():
    webhook = new_row(Webhook)
    with pytest.raises(DecryptError):
        decrypt(webhook.secret_sealed, **cell_of(webhook, "secret"))
