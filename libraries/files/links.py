"""Sign links to images for model providers, who have no session; valid for one to two hours.

The time in a link is that of the hour's beginning, so that a link stays the same for an hour: a
provider's prefix cache then recognises the conversation that the link is part of.
"""

import time
from datetime import timedelta
from typing import Final, cast
from urllib.parse import urlencode
from uuid import UUID

from django.conf import settings
from django.core import signing

from amber.lib.database.tenant import across_tenants
from amber.lib.errors import Missing
from libraries.models import IMAGE_TYPES, File

STEP_SECONDS: Final = 3_600
# Spelled out: `reverse` would load every page of the web process into a chat worker.
CONTENT_ADDRESS: Final = "/api/v1/files/{}/content/"
LIFETIME: Final = timedelta(seconds=2 * STEP_SECONDS)


class _Signer(signing.TimestampSigner):
    def timestamp(self) -> str:
        return signing.b62_encode(int(time.time()) // STEP_SECONDS * STEP_SECONDS)


def signed_content_url(file: File) -> str:
    """Return the signed link of an image.

    Raises ValueError for other files, and where AMBER_PUBLIC_URL is not set.
    """
    if not settings.AMBER_PUBLIC_URL or not file.is_image:
        raise ValueError("Links are for images, and need AMBER_PUBLIC_URL.")
    signature = _signer().sign(str(file.pk)).partition(":")[2]
    address = CONTENT_ADDRESS.format(file.pk)
    return f"{settings.AMBER_PUBLIC_URL}{address}?{urlencode({'signature': signature})}"


def file_of_link(file_id: UUID, signature: str) -> File:
    """Return the image that a link is for, by one query.

    Raises Missing alike for a forged or old link and for a file that is gone or no image.
    """
    try:
        _signer().unsign(f"{file_id}:{signature}", max_age=LIFETIME)
    except signing.BadSignature:
        raise Missing from None
    images = File.objects.before_expiry().filter(mime_type__in=IMAGE_TYPES)
    with across_tenants():  # the signature is all that its bearer needs
        file = images.filter(pk=file_id).first()
    if file is None:
        raise Missing
    return cast(File, file)


def _signer() -> _Signer:
    return _Signer(salt="libraries.files.links")
