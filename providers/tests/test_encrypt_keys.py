import pytest

from amber.lib.secrets import DecryptError, decrypt_column, encrypt_column
from providers.models import Provider


def new_provider() -> Provider:
    return Provider(name="p", base_url="https://provider.example/v1")


def test_an_encrypted_key_decrypts_for_its_row():
    provider = new_provider()
    encrypt_column(provider, "api_key", "sk-secret")
    assert "sk-secret" not in provider.api_key_sealed
    assert decrypt_column(provider, "api_key") == "sk-secret"


def test_a_copied_key_does_not_decrypt():
    provider, other = new_provider(), new_provider()
    encrypt_column(provider, "api_key", "sk-secret")
    other.api_key_sealed = provider.api_key_sealed
    with pytest.raises(DecryptError):
        decrypt_column(other, "api_key")


def test_one_column_does_not_decrypt_as_the_other():
    provider = new_provider()
    encrypt_column(provider, "environment", "said")
    provider.api_key_sealed = provider.environment_sealed
    with pytest.raises(DecryptError):
        decrypt_column(provider, "api_key")


def test_no_key_is_no_secret():
    provider = new_provider()
    encrypt_column(provider, "api_key", "sk-secret")
    encrypt_column(provider, "api_key", "")
    assert provider.api_key_sealed == ""
    assert decrypt_column(provider, "api_key") == ""
