"""The verbs of the public API. What a client sends along as images becomes files that expire."""

from collections.abc import Mapping, Sequence
from datetime import timedelta

from django.conf import settings
from django.utils import timezone

from accounts.models import IdempotencyRecord
from accounts.principal import Principal
from amber.lib.errors import AmberError, Invalid
from chats.models import Turn
from chats.services import start_stateless_turn
from libraries.file_bytes import erase_bytes
from libraries.file_content import read_content
from libraries.models import IMAGE_TYPES, File
from libraries.new_files import unsaved_file
from providers.registry import is_known_alias
from public_api.openai_messages import GivenMessage, images_of, to_input


def start_chat(
    principal: Principal,
    *,
    messages: Sequence[GivenMessage],
    model: str = "",
    claim: IdempotencyRecord | None = None,
) -> Turn:
    """A stateless turn of a bare model with all built-in tools.

    Raises Invalid (unknown_model, or an image that is none), TooLarge, Unavailable.
    """
    if not is_known_alias(model):
        text = "No enabled model has this alias."
        raise Invalid(text, code="unknown_model", fields={"model": [text]})
    files: dict[str, File] = {}
    try:
        for place, data in images_of(messages).items():
            files[place] = _unsaved_image(principal, place, data)
        return start_stateless_turn(
            principal,
            messages=to_input(messages, _ids(files)),
            model=model,
            files=list(files.values()),
            claim=claim,
        )
    except BaseException:
        for file in files.values():
            erase_bytes(file.path)
        raise


def _ids(files: Mapping[str, File]) -> dict[str, str]:
    return {place: str(file.pk) for place, file in files.items()}


def _unsaved_image(principal: Principal, place: str, data: bytes) -> File:
    """Encoded anew, as every image. It goes with the turn's input."""
    try:
        content = read_content("image", data)
        if content.mime_type not in IMAGE_TYPES:
            raise Invalid("This is no PNG, JPEG, GIF or WebP image.")
    except AmberError as error:
        error.fields = {place: [error.message]}
        raise
    return unsaved_file(
        name=f"image.{content.mime_type.partition('/')[2]}",
        data=content.data,
        mime_type=content.mime_type,
        text=None,
        organization_id=principal.organization_id,
        user_id=principal.user_id,
        guest_id=principal.guest_id,
        expired_at=timezone.now() + timedelta(seconds=settings.AMBER_STATELESS_KEEP_SECONDS),
    )
