import io
import random
import struct
import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, PngImagePlugin

from libraries.files.images import UnusableImage, detect_format, reencode
from libraries.tests.stored_files import opened, picture

FORMATS = ["JPEG", "PNG", "GIF", "WEBP"]
EVERY_FORMAT = pytest.mark.parametrize("name", FORMATS)


def made(image: Image.Image, name: str, **options: Any) -> bytes:
    stream = io.BytesIO()
    image.save(stream, format=name, **options)
    return stream.getvalue()


def anew(data: bytes) -> Image.Image:
    name = detect_format(data)
    assert name is not None
    return opened(reencode(data, name))


def png(width: int, height: int, body: bytes) -> bytes:
    """One with any header over any pixels."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        checksum = zlib.crc32(kind + data)
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", checksum)

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(body))
        + chunk(b"IEND", b"")
    )


def at(image: Image.Image, x: int, y: int) -> tuple[int, int, int, int]:
    """(red, green, blue, opacity)."""
    pixel: Any = image.convert("RGBA").getpixel((x, y))
    return pixel  # type: ignore[no-any-return]


def exif(orientation: int) -> Image.Exif:
    tags = Image.Exif()
    tags[0x0112] = orientation
    tags[0x010F] = "Maker of cameras"
    tags.get_ifd(0x8825)[2] = (52.0, 31.0, 0.0)
    return tags


@EVERY_FORMAT
def test_keeps_format_size_and_colours(name):
    image = anew(picture(name, (60, 40)))
    assert (image.format, image.size) == (name, (60, 40))
    assert at(image, 30, 5)[0] > 240
    assert at(image, 30, 35)[2] > 240


@EVERY_FORMAT
def test_limits_the_longer_side(settings, name):
    settings.AMBER_IMAGE_MAX_SIDE_PIXELS = 64
    assert anew(picture(name, (640, 320))).size == (64, 32)
    assert anew(picture(name, (1, 640))).size == (1, 64)
    assert anew(picture(name, (64, 64))).size == (64, 64)


@pytest.mark.parametrize("name", ["JPEG", "PNG", "WEBP"])
def test_drops_all_metadata(name):
    sent = picture(
        name,
        exif=exif(1),
        icc_profile=b"profile of a camera" * 10,
        xmp=b"<x:xmpmeta>somewhere</x:xmpmeta>",
    )
    assert b"Maker of cameras" in sent
    kept = reencode(sent, name)
    for word in (b"Maker", b"profile", b"somewhere", b"Exif", b"ICC", b"xmp"):
        assert word not in kept
    assert not opened(kept).getexif()


def test_drops_comments_and_texts():
    gif = reencode(picture("GIF", comment=b"a comment"), "GIF")
    assert b"a comment" not in gif
    info = PngImagePlugin.PngInfo()
    info.add_text("Author", "somebody")
    png_text = made(Image.new("RGB", (2, 2)), "PNG", pnginfo=info)
    assert b"somebody" in png_text
    assert b"somebody" not in reencode(png_text, "PNG")


@pytest.mark.parametrize("name", ["JPEG", "PNG", "WEBP"])
@pytest.mark.parametrize(
    ("orientation", "red_at"),
    [(1, "top"), (3, "bottom"), (6, "right"), (8, "left"), (4, "bottom"), (5, "left"), (99, "top")],
)
def test_applies_the_turn_that_exif_asks_for(name, orientation, red_at):
    image = anew(picture(name, (64, 32), exif=exif(orientation)))
    is_turned = red_at in ("left", "right")
    assert image.size == ((32, 64) if is_turned else (64, 32))
    width, height = image.size
    edges = {
        "top": (width // 2, 2),
        "bottom": (width // 2, height - 3),
        "left": (2, height // 2),
        "right": (width - 3, height // 2),
    }
    assert at(image, *edges[red_at])[0] > 240


@pytest.mark.parametrize("name", ["PNG", "GIF", "WEBP"])
def test_keeps_the_first_frame_of_an_animation(name):
    frames = [Image.new("RGB", (8, 8), colour) for colour in ("red", "blue", "green")]
    sent = made(frames[0], name, save_all=True, append_images=frames[1:], duration=100)
    assert getattr(opened(sent), "n_frames", 1) == 3
    image = anew(sent)
    assert getattr(image, "n_frames", 1) == 1
    assert at(image, 4, 4)[0] > 240


@pytest.mark.parametrize("name", ["PNG", "GIF", "WEBP"])
def test_keeps_transparency(settings, name):
    image = Image.new("RGBA", (128, 128), (255, 0, 0, 255))
    image.paste((0, 0, 0, 0), (0, 64, 128, 128))
    sent = made(image, name)
    for longest in (2_048, 64):
        settings.AMBER_IMAGE_MAX_SIDE_PIXELS = longest
        kept = anew(sent)
        assert at(kept, kept.width // 2, 4)[3] == 255
        assert at(kept, kept.width // 2, kept.height - 4)[3] == 0


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "I;16"])
@pytest.mark.parametrize("longest", [64, 2_048])
def test_takes_every_mode_of_png(settings, mode, longest):
    settings.AMBER_IMAGE_MAX_SIDE_PIXELS = longest
    image = anew(made(Image.new(mode, (100, 100)), "PNG"))
    assert image.size == (min(100, longest),) * 2


def test_sixteen_bit_grey_stays_grey():
    image = anew(made(Image.new("I;16", (4, 4), 32_768), "PNG"))
    assert image.convert("L").getpixel((1, 1)) == pytest.approx(128, abs=1)


@pytest.mark.parametrize("mode", ["L", "CMYK", "YCbCr"])
def test_takes_every_mode_of_jpeg(mode):
    assert anew(made(Image.new(mode, (4, 4)), "JPEG")).mode in ("L", "RGB")


@pytest.mark.parametrize(
    ("width", "height"),
    [(50_000, 50_000), (6_400, 6_400), (10_000, 10_000), (70_000, 8), (2**31 - 1, 2)],
)
def test_refuses_bombs_before_decoding(width, height):
    with pytest.raises(UnusableImage, match="40 million"):
        reencode(png(width, height, b"\0" * 10_000), "PNG")


def test_refuses_a_text_that_swells():
    text = zlib.compress(b"A" * 200_000_000)
    sent = picture("PNG")
    data = b"Comment\0\0" + text
    chunk = struct.pack(">I", len(data)) + b"zTXt" + data
    chunk += struct.pack(">I", zlib.crc32(b"zTXt" + data))
    with pytest.raises(UnusableImage):
        reencode(sent[:33] + chunk + sent[33:], "PNG")


def test_a_format_is_what_the_bytes_say():
    assert [detect_format(picture(name)) for name in FORMATS] == FORMATS
    for other in (b"", b"RIFF1234WAVE", b"<svg>", b"BM", picture("BMP"), picture("TIFF")):
        assert detect_format(other) is None


def test_an_announced_format_is_the_only_one_tried():
    with pytest.raises(UnusableImage):
        reencode(picture("BMP"), "PNG")
    with pytest.raises(UnusableImage):
        reencode(picture("GIF"), "JPEG")


@pytest.mark.filterwarnings("ignore::UserWarning")
@EVERY_FORMAT
@given(seed=st.integers(0, 2**32), cut=st.booleans())
def test_broken_images_are_refused_or_repaired(name, seed, cut):
    """Nothing but UnusableImage comes out."""
    chance = random.Random(seed)
    sent = bytearray(picture(name, (20, 20), **({} if name == "GIF" else {"exif": exif(6)})))
    for _ in range(chance.randint(1, 8)):
        sent[chance.randrange(12, len(sent))] = chance.randrange(256)
    if cut:
        del sent[chance.randrange(12, len(sent)) :]
    try:
        opened(reencode(bytes(sent), name))
    except UnusableImage:
        pass
