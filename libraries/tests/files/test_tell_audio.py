"""Sound is known by its first bytes."""

import pytest

from libraries.files.audio import audio_kind


@pytest.mark.parametrize(
    ("content", "suffix", "mime_type"),
    [
        (b"RIFF\x24\0\0\0WAVEfmt ", "wav", "audio/wav"),
        (b"ID3\x04\x00", "mp3", "audio/mpeg"),
        (b"\xff\xfb\x90\x64", "mp3", "audio/mpeg"),
        (b"\xff\xf3\x84\xc4", "mp3", "audio/mpeg"),
        (b"\xff\xf1\x50\x80", "aac", "audio/aac"),
        (b"OggS\x00\x02", "ogg", "audio/ogg"),
        (b"fLaC\x00\x00", "flac", "audio/flac"),
        (b"\0\0\0\x20ftypM4A \0\0", "m4a", "audio/mp4"),
    ],
)
def test_audio_is_named_by_its_bytes(content, suffix, mime_type):
    assert audio_kind(content) == (suffix, mime_type)


@pytest.mark.parametrize(
    "content",
    [
        b"\xff\xfe<\0h\0",
        b"\xff\xff\xff\xff",
        b"\0\0\0\x20ftypavif",
        b"\0\0\0\x20ftypisom",
        b"RIFF\0\0\0\0WEBP",
        b"\xff",
    ],
)
def test_other_bytes_are_none(content):
    assert audio_kind(content) is None
