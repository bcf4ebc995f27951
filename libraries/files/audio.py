"""Recognise sound by its first bytes, in the formats that are recorded and shared."""

from typing import Final

_M4A: Final = b"ftypM4A "
"""MP4's other brands may hold video as well."""


def audio_kind(content: bytes) -> tuple[str, str] | None:
    """Return (suffix without a dot, MIME type), or None for what is no known kind of sound."""
    if content.startswith(b"RIFF") and content[8:12] == b"WAVE":
        return "wav", "audio/wav"
    if content.startswith(b"ID3"):
        return "mp3", "audio/mpeg"
    if content.startswith(b"OggS"):
        return "ogg", "audio/ogg"
    if content.startswith(b"fLaC"):
        return "flac", "audio/flac"
    if content[4:12] == _M4A:
        return "m4a", "audio/mp4"
    return _mpeg_frame(content)


def _mpeg_frame(content: bytes) -> tuple[str, str] | None:
    """Recognise MP3 and AAC by the header of a frame.

    Eleven set bits open a frame (ISO 11172-3); layer bits 01 are MP3's, 00 AAC's (ADTS).
    """
    if len(content) < 4 or content[0] != 0xFF or content[1] & 0xE0 != 0xE0:
        return None
    if content[1] & 0xF6 == 0xF0:
        return "aac", "audio/aac"
    is_layer_3 = content[1] & 0x06 == 0x02
    has_bit_rate = content[2] & 0xF0 != 0xF0
    return ("mp3", "audio/mpeg") if is_layer_3 and has_bit_rate else None
