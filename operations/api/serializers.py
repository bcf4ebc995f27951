"""Define the shapes of a person's requests about their own data."""

from typing import Any

from rest_framework import serializers


class ErasureInput(serializers.Serializer[Any]):
    """`confirm` repeats your email address.

    `account` deletes your data everywhere, and the account.
    """

    confirm = serializers.CharField(max_length=320)
    account = serializers.BooleanField(default=False)


class ErasureSerializer(serializers.Serializer[Any]):
    state = serializers.ChoiceField(choices=["none", "running", "done"])
    account = serializers.BooleanField()
    asked_at = serializers.DateTimeField(allow_null=True)
    ended_at = serializers.DateTimeField(allow_null=True)
