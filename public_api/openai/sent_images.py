"""Turn images of a request into files that are saved with its turn.

Those given by address are fetched by the guarded client: a provider would fetch them from its own
network. All are encoded again, as every image, and expire with the turn's input; a stored chat
keeps them.
"""

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Final

from django.conf import settings

from accounts.principal import Principal
from amber.lib.database.connections import release_connections
from amber.lib.egress import FetchLimits, fetch
from amber.lib.errors import AmberError, Invalid
from amber.lib.rest.orderly import leave_entry
from libraries.files.content import read_content
from libraries.files.new_files import unsaved_file
from libraries.files.storage import erasing_unstored
from libraries.models import IMAGE_TYPES, File
from public_api.openai.messages import Image, RemoteImage

FETCH_SECONDS: Final = 10.0
"""The limit for all of a request's addresses together: a thread waits for them."""

NO_IMAGE: Final = "This is not a PNG, JPEG, GIF or WebP image."


@contextmanager
def unsaved_images(
    caller: Principal, images: Mapping[str, Image | RemoteImage], *, expired_at: datetime | None
) -> Iterator[dict[str, File]]:
    """Yield the files by the images' places, to be saved in the block; if that fails, their bytes go.

    Raises Invalid, TooLarge, Unavailable; `fields` names the place.
    """
    files: dict[str, File] = {}
    paths: list[str] = []
    if images:  # a slow server, or a reader of files that is busy, must not hold other questions up
        leave_entry()
    with erasing_unstored(paths):
        for place, data in _bytes_of(images).items():
            files[place] = _build_file(caller, place, data, expired_at)
            paths.append(files[place].path)
        yield files


def keep_images(file_ids: Iterable[str], until: datetime) -> None:
    """Extend the life of these images. One query, none without ids."""
    if ids := list(file_ids):
        File.objects.filter(pk__in=ids, expired_at__lt=until).update(expired_at=until)


def _bytes_of(images: Mapping[str, Image | RemoteImage]) -> dict[str, bytes]:
    """Return the images' bytes, once the slowest address has answered."""
    remote = {place: image.url for place, image in images.items() if isinstance(image, RemoteImage)}
    fetched: dict[str, bytes] = {}
    if remote:
        release_connections()
        fetched = asyncio.run(_fetch_images(remote))
    return {
        place: image.data if isinstance(image, Image) else fetched[place]
        for place, image in images.items()
    }


async def _fetch_images(urls: Mapping[str, str]) -> dict[str, bytes]:
    bodies = await asyncio.gather(*(_body(place, url) for place, url in urls.items()))
    return dict(zip(urls, bodies, strict=True))


async def _body(place: str, url: str) -> bytes:
    limits = FetchLimits(total_seconds=FETCH_SECONDS, max_bytes=settings.AMBER_MAX_UPLOAD_BYTES)
    try:
        response = await fetch("GET", url, limits=limits)
        if not response.is_success:
            raise Invalid(f"The address answered with status {response.status}.")
    except AmberError as error:
        error.fields = {f"{place}.image_url": [error.message]}
        raise
    return response.body


def _build_file(caller: Principal, place: str, data: bytes, expired_at: datetime | None) -> File:
    try:
        content = read_content("image", data)
        if content.mime_type not in IMAGE_TYPES:
            raise Invalid(NO_IMAGE)
    except AmberError as error:
        error.fields = {place: [error.message]}
        raise
    return unsaved_file(
        name=f"image.{content.mime_type.partition('/')[2]}",
        data=content.data,
        mime_type=content.mime_type,
        text=None,
        organization_id=caller.organization_id,
        user_id=caller.user_id,
        guest_id=caller.guest_id,
        api_key_id=caller.key.pk if caller.key else None,
        expired_at=expired_at,
    )
