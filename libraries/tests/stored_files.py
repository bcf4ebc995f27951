"""Make files and send them."""

import io
from typing import Any

from django.core.files.uploadedfile import SimpleUploadedFile
from PIL import Image

from libraries.files import services
from libraries.models import File
from tests.fixtures.personas import Persona, api

FILES = "/api/v1/files/"
SVG = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'
HTML = b"<!doctype html><script>alert(1)</script><p>Hello</p>"


def picture(image_format: str = "PNG", size: tuple[int, int] = (6, 4), **options: Any) -> bytes:
    """Red above, blue below."""
    image = Image.new("RGB", size, "red")
    image.paste("blue", (0, size[1] // 2, *size))
    made = io.BytesIO()
    image.save(made, format=image_format, **options)
    return made.getvalue()


def opened(data: bytes) -> Image.Image:
    image = Image.open(io.BytesIO(data))
    image.load()
    return image


def upload(persona: Persona, name: str, data: bytes, **headers: str) -> Any:
    form = {"file": SimpleUploadedFile("x", data)}
    form["file"]._name = name  # type: ignore[attr-defined]  # what a client may send: no basename
    return api(persona).post(FILES, form, format="multipart", headers=headers)


def send(persona: Persona, body: bytes, content_type: str) -> Any:
    """Exactly these bytes."""
    client: Any = api(persona)
    return client.generic("POST", FILES, body, content_type=content_type)


def stored(persona: Persona, name: str = "notes.txt", data: bytes = b"Milk and honey") -> File:
    return services.store_upload(persona.principal, name=name, data=data)


def address(file: File) -> str:
    return f"{FILES}{file.pk}/"


def content(file: File) -> str:
    return f"{FILES}{file.pk}/content/"


def body_of(answer: Any) -> bytes:
    return b"".join(answer.streaming_content)
