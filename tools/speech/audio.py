"""What audio bytes are, decided from the bytes: the formats that speech services answer with."""

from tools.protocol import ProducedFile

_FTYP_BRANDS = (b"M4A ", b"mp42", b"isom", b"iso5", b"dash")


def audio_file(content: bytes) -> ProducedFile | None:
    """A file named after its format; None for what is no audio of a known kind."""
    kind = _kind(content)
    if kind is None:
        return None
    suffix, mime_type = kind
    return ProducedFile(name=f"speech.{suffix}", mime_type=mime_type, content=content)


def _kind(content: bytes) -> tuple[str, str] | None:
    """(suffix, type) by the formats' own first bytes."""
    if content.startswith(b"RIFF") and content[8:12] == b"WAVE":
        return "wav", "audio/wav"
    if content.startswith(b"ID3"):
        return "mp3", "audio/mpeg"
    if content.startswith(b"OggS"):
        return "ogg", "audio/ogg"
    if content.startswith(b"fLaC"):
        return "flac", "audio/flac"
    if content[4:8] == b"ftyp" and content[8:12] in _FTYP_BRANDS:
        return "m4a", "audio/mp4"
    return _mpeg_frame(content)


def _mpeg_frame(content: bytes) -> tuple[str, str] | None:
    """Eleven set bits open a frame (ISO 11172-3); layer bits 01 are MP3's, 00 AAC's (ADTS)."""
    if len(content) < 4 or content[0] != 0xFF or content[1] & 0xE0 != 0xE0:
        return None
    if content[1] & 0xF6 == 0xF0:
        return "aac", "audio/aac"
    is_layer_3 = content[1] & 0x06 == 0x02
    has_bit_rate = content[2] & 0xF0 != 0xF0
    return ("mp3", "audio/mpeg") if is_layer_3 and has_bit_rate else None
