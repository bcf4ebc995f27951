"""Turn files into the engine's attachments: name, type, and the address of an image.

What becomes of an attachment in a request is decided by `engine.history.normaliser`.
"""

import base64
from typing import Final

import structlog
from django.conf import settings

from amber.lib.storage.files import file_storage
from engine.messages import Attachment
from libraries.files.links import signed_content_url
from libraries.files.storage import faults_as_unavailable, read_bytes
from libraries.models import File

logger = structlog.get_logger(__name__)


UNREADABLE: Final = "(Its content could not be read: {})"


def attachment_of(file: File, *, vision: bool, text: str | None = None) -> Attachment:
    """Return the attachment, for a model that sees images (`vision`) or one that reads names.

    `text` is as much of the file's text as the model shall read.
    """
    url = _image_url(file) if vision and file.is_image else ""
    return Attachment(name=file.name, mime_type=file.mime_type, url=url, text=text)


def _image_url(file: File) -> str:
    """Return a signed link where the provider can reach the bucket or Amber, else a `data:` URL.

    Empty when the bytes are gone: then the model reads the file's name. Raises Unavailable if the
    storage cannot be reached.
    """
    with faults_as_unavailable():
        link = file_storage().link(file.path, mime_type=file.mime_type)
    if link:
        return link
    if settings.AMBER_PUBLIC_URL:
        return signed_content_url(file)
    try:
        encoded = base64.b64encode(read_bytes(file.path)).decode()
    except FileNotFoundError:
        logger.warning("file_bytes_missing", file_id=str(file.pk))
        return ""
    return f"data:{file.mime_type};base64,{encoded}"
