"""Define the shapes of a person's requests about their own data."""

from typing import Any, Literal, TypedDict

from rest_framework import serializers

from amber.lib.rest.wire_serializers import serializer_of
from amber.lib.wire_fields import Time


class ErasureInput(serializers.Serializer[Any]):
    """`confirm` repeats your email address.

    `account` deletes your data everywhere, and the account.
    """

    confirm = serializers.CharField(max_length=320)
    account = serializers.BooleanField(default=False)


class ErasureWire(TypedDict):
    state: Literal["none", "running", "done"]
    account: bool
    asked_at: Time | None
    ended_at: Time | None


ErasureSerializer = serializer_of(ErasureWire)
