"""Re-encode images: what somebody sent is decoded to pixels and encoded again.

Nothing else gets through: no metadata (EXIF with its places and dates, XMP, colour profiles,
comments), no second frame, no bytes after the end. The turn that EXIF asks for is applied first.
JPEG, PNG, GIF and WebP keep their format; other formats are not images here, SVG least of all.

Refuses what cannot be decoded, and more pixels than MAX_PIXELS before decoding any.
"""

import io
import struct
import threading
import zlib
from typing import Any, Final

from django.conf import settings

# The plugins are named so that Pillow never loads its forty others.
from PIL import ExifTags, GifImagePlugin, Image, JpegImagePlugin, PngImagePlugin, WebPImagePlugin

from amber.lib.errors import Invalid

# More than a screen of 8K has, or a photograph of 36 megapixels. The decoder of WebP needs the
# most memory, 16 bytes for a pixel.
MAX_PIXELS: Final = 40_000_000
# The most that a JPEG can have; longer strips take seconds to shrink.
MAX_SIDE_PIXELS: Final = 65_535

MIME_TYPES: Final = {
    JpegImagePlugin.JpegImageFile.format: "image/jpeg",
    PngImagePlugin.PngImageFile.format: "image/png",
    GifImagePlugin.GifImageFile.format: "image/gif",
    WebPImagePlugin.WebPImageFile.format: "image/webp",
}

_OPTIONS: Final[dict[str, dict[str, Any]]] = {"JPEG": {"quality": 90}, "WEBP": {"quality": 90}}
_TURNS: Final = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
# Modes that every format but JPEG stores; of these, those that shrink without artefacts.
_STORED_MODES: Final = frozenset({"1", "L", "LA", "P", "RGB", "RGBA"})
_SMOOTH_MODES: Final = {"1": "L", "P": "RGBA"}
# What Pillow's decoders raise for files made to break them (some of it by mistake).
_FAULTS: Final = (
    OSError,
    SyntaxError,
    ValueError,
    TypeError,
    LookupError,
    NameError,
    AttributeError,
    ArithmeticError,
    EOFError,
    RuntimeError,
    MemoryError,
    struct.error,
    zlib.error,
)
# So that many uploads at once take no more memory than one.
_one_at_a_time = threading.Lock()


class UnusableImage(Invalid):
    """The file begins like an image and is none, or is too large to decode."""


def detect_format(data: bytes) -> str | None:
    """Return Pillow's name of the format that the first bytes announce; None for anything else."""
    if data.startswith(b"\xff\xd8\xff"):
        return "JPEG"
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "PNG"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "GIF"
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return "WEBP"
    return None


def reencode(data: bytes, image_format: str) -> bytes:
    """Re-encode the first frame, upright, with no side over AMBER_IMAGE_MAX_SIDE_PIXELS.

    Cost: up to a second of CPU. Raises UnusableImage.
    """
    with _one_at_a_time:
        try:
            return _reencode(data, image_format)
        except (Image.DecompressionBombError, Image.DecompressionBombWarning):
            raise _too_many_pixels() from None
        except _FAULTS:
            raise UnusableImage("The image is damaged, or of a kind Amber cannot read.") from None


def _reencode(data: bytes, image_format: str) -> bytes:
    longest = settings.AMBER_IMAGE_MAX_SIDE_PIXELS
    sent = Image.open(io.BytesIO(data), formats=[image_format])
    if sent.width * sent.height > MAX_PIXELS or max(sent.size) > MAX_SIDE_PIXELS:
        raise _too_many_pixels()
    sent.draft(None, (longest, longest))
    sent.load()
    turn = _TURNS.get(sent.getexif().get(ExifTags.Base.Orientation, 1))
    image = _convert_mode(sent if turn is None else sent.transpose(turn), image_format)
    if max(image.size) > longest:
        image = image.convert(_SMOOTH_MODES.get(image.mode, image.mode))
        image.thumbnail((longest, longest), Image.Resampling.LANCZOS)
    # Encoders take comments and profiles from here; a palette's transparency is no metadata.
    image.info = {key: image.info[key] for key in ("transparency",) if key in image.info}
    made = io.BytesIO()
    image.save(made, format=image_format, **_OPTIONS.get(image_format, {}))
    return made.getvalue()


def _convert_mode(image: Image.Image, image_format: str) -> Image.Image:
    if image_format == "JPEG":
        return image if image.mode in ("L", "RGB") else image.convert("RGB")
    if image.mode in _STORED_MODES:
        return image
    if image.mode.startswith("I"):  # 16 bits; `convert` alone would make all of it white
        return image.point(lambda grey: grey / 256).convert("L")
    return image.convert("RGBA" if image.has_transparency_data else "RGB")


def _too_many_pixels() -> UnusableImage:
    return UnusableImage(
        f"The image has more than {MAX_PIXELS // 1_000_000} million pixels, "
        f"or more than {MAX_SIDE_PIXELS:,} on a side."
    )
