"""Encrypted texts decrypt for their row and no other; API keys tell themselves from typing errors."""

import base64
import re
import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amber.lib import secrets
from amber.lib.secrets import DecryptError, SecretKeyError, decrypt, encrypt
from tests.fixtures.secret_keys import new_secret_key

OLD, NEW = new_secret_key(), new_secret_key()
ROW: dict[str, Any] = {"table": "tools", "pk": "1", "organization_id": "a"}


@given(st.text())
def test_what_is_encrypted_decrypts(text: str) -> None:
    encrypted = encrypt(text, **ROW, keys=[OLD])
    assert decrypt(encrypted, **ROW, keys=[OLD]) == text
    assert encrypted.isascii()


def test_the_same_text_is_encrypted_differently_each_time() -> None:
    assert encrypt("x", **ROW, keys=[OLD]) != encrypt("x", **ROW, keys=[OLD])


@pytest.mark.parametrize("other", [{"table": "providers"}, {"pk": "2"}, {"organization_id": "b"}])
def test_it_does_not_decrypt_for_another_row(other: dict[str, str]) -> None:
    encrypted = encrypt("x", **ROW, keys=[OLD])
    with pytest.raises(DecryptError, match="another row"):
        decrypt(encrypted, **(ROW | other), keys=[OLD])


def test_rows_of_the_platform_have_no_organization() -> None:
    row = ROW | {"organization_id": None}
    encrypted = encrypt("x", **row, keys=[OLD])
    assert decrypt(encrypted, **row, keys=[OLD]) == "x"
    with pytest.raises(DecryptError):
        decrypt(encrypted, **(ROW | {"organization_id": "None"}), keys=[OLD])


def test_names_cannot_run_into_each_other() -> None:
    encrypted = encrypt("x", table="a", pk="b", organization_id="c", keys=[OLD])
    with pytest.raises(DecryptError):
        decrypt(encrypted, table="a", pk='b","c', organization_id="", keys=[OLD])


def test_every_key_decrypts_and_the_first_encrypts() -> None:
    encrypted = encrypt("x", **ROW, keys=[OLD])
    assert decrypt(encrypted, **ROW, keys=[NEW, OLD]) == "x"
    assert decrypt(encrypt("x", **ROW, keys=[NEW, OLD]), **ROW, keys=[NEW]) == "x"


def test_a_key_that_was_taken_away_is_said_to_be_missing() -> None:
    with pytest.raises(DecryptError, match="not in AMBER_SECRET_KEYS"):
        decrypt(encrypt("x", **ROW, keys=[OLD]), **ROW, keys=[NEW])


@given(st.data())
def test_a_damaged_text_does_not_decrypt(data: st.DataObject) -> None:
    encrypted = encrypt("some text", **ROW, keys=[OLD])
    body = bytearray(base64.urlsafe_b64decode(encrypted.rpartition(".")[2]))
    position = data.draw(st.integers(0, len(body) - 1))
    body[position] ^= data.draw(st.integers(1, 255))
    damaged = encrypted.rpartition(".")[0] + "." + base64.urlsafe_b64encode(body).decode()
    with pytest.raises(DecryptError):
        decrypt(damaged, **ROW, keys=[OLD])


@pytest.mark.parametrize("text", ["", "plain", "v1", "v1..", "v2.x.y", "v1.{id}.", "v1.{id}.ü"])
def test_what_is_no_encrypted_text_is_refused(text: str) -> None:
    key_id = encrypt("x", **ROW, keys=[OLD]).split(".")[1]
    with pytest.raises(DecryptError):
        decrypt(text.format(id=key_id), **ROW, keys=[OLD])


@pytest.mark.parametrize("keys", [[], [""], ["a passphrase"], [OLD, "c2hvcnQ="], [OLD, "ü"]])
def test_anything_but_keys_is_refused_without_showing_it(keys: list[str]) -> None:
    with pytest.raises(SecretKeyError) as caught:
        secrets.check_keys(keys)
    assert not any(key and key in str(caught.value) for key in keys)


def test_both_alphabets_of_base64_are_taken() -> None:
    text = base64.b64encode(b"\xff" * 32).decode()
    encrypted = encrypt("x", **ROW, keys=[text])
    assert decrypt(encrypted, **ROW, keys=[text.replace("/", "_")]) == "x"


# -- API keys ------------------------------------------------------------------------------------


def test_a_new_key_has_the_documented_form() -> None:
    key = secrets.new_api_key()
    assert re.fullmatch(r"amb_live_[0-9A-Za-z]{36}", key)
    assert secrets.is_well_formed(key)
    digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
    value = 0
    for digit in key[-6:]:
        value = value * 62 + digits.index(digit)
    assert value == zlib.crc32(key[:-6].encode())


def test_the_checksum_is_padded() -> None:
    for number in range(1_000):
        body = f"amb_live_{number:030}"
        assert len(secrets._checksum(body)) == 6
        assert secrets.is_well_formed(body + secrets._checksum(body))


@given(st.text())
def test_any_other_text_is_no_key(text: str) -> None:
    assert not secrets.is_well_formed(text)
    assert len(secrets.sha256_hex(text)) == 64


def test_one_wrong_character_is_noticed() -> None:
    key = secrets.new_api_key()
    for position in range(len("amb_live_"), len(key)):
        wrong = "a" if key[position] != "a" else "b"
        assert not secrets.is_well_formed(key[:position] + wrong + key[position + 1 :])
    assert not secrets.is_well_formed(key + "\n")
    assert not secrets.is_well_formed(key[:-1])


def test_a_key_is_shown_by_its_prefix_only() -> None:
    key = secrets.new_api_key()
    assert secrets.prefix_of(key) == key[:13]
