"""A file as the engine is given it: its name and kind, the address of its image.

Refuses to judge: what becomes of it in a request is `engine.history.normaliser`'s business.
"""

import base64

import structlog
from django.conf import settings
from django.core.files.storage import default_storage

from engine.messages import Attachment
from libraries.files.links import signed_content_url
from libraries.models import File

logger = structlog.get_logger(__name__)


def attachment_of(file: File, *, vision: bool, text: str | None = None) -> Attachment:
    """For a model that sees images (`vision`) or one that reads their names.

    `text` is as much of the file's text as the model shall read.
    """
    url = _image_url(file) if vision and file.is_image else ""
    return Attachment(name=file.name, mime_type=file.mime_type, url=url, text=text)


def _image_url(file: File) -> str:
    """A signed link where the provider can reach us, else the bytes in a `data:` URL.

    Empty when the bytes are gone: then the model reads the file's name.
    """
    if settings.AMBER_PUBLIC_URL:
        return signed_content_url(file)
    try:
        with default_storage.open(file.path) as stream:
            encoded = base64.b64encode(stream.read()).decode()
    except FileNotFoundError:
        logger.warning("file_bytes_missing", file_id=str(file.pk))
        return ""
    return f"data:{file.mime_type};base64,{encoded}"
