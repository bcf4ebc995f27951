"""Count tokens, offline, with OpenAI's vocabularies beside this file.

It counts only; nobody needs the tokens themselves. Counts of models with another tokenizer are
estimates. tiktoken's own loader is not used: it would look into a cache directory named by the
environment and, when that fails, into the network. tiktoken is imported on the first count
(a loaded vocabulary costs 74 MB; processes that never count never pay).
"""

import base64
import hashlib
from collections.abc import Callable, Iterable
from functools import cache, lru_cache
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

from engine.messages import Part, ProviderMessage, calls_in, is_plain
from engine.provider_fields import texts_of

if TYPE_CHECKING:
    import tiktoken

DEFAULT_ENCODING = "o200k_base"
SAFE_BYTES_PER_TOKEN = 3
"""To estimate without a tokenizer what may be spent: safe for English (4.5), about right for Chinese."""
USUAL_BYTES_PER_TOKEN = 4
"""To cut texts without a tokenizer: about right for English and Chinese."""
IMAGE_TOKENS = 765
"""OpenAI's price of a 1024 x 1024 image: 85 + 4 tiles x 170
(https://platform.openai.com/docs/guides/images-vision)."""

MESSAGE_TOKENS = 4
"""What a message costs beside its content: three separators and the role.
Source: "How to count tokens with tiktoken" in the OpenAI cookbook, also for the next two."""

CALL_TOKENS = 3
"""What a tool call costs beside its id, name and arguments: its separators."""

REPLY_TOKENS = 3
"""Every request ends with the opening of the reply."""

_CACHED_CHARS = 2_000
"""Longer texts are rarely counted twice; 4,096 entries of this size are at most 32 MB."""

_PIECE_CHARS = 100_000
"""Longer texts are counted in pieces. The tokenizer's regular expression overflows its stack on
about a million spaces in a row (tiktoken 0.14), and that panic is not even an Exception; a cut
costs at most a token or two."""


class _Vocabulary(NamedTuple):
    """Hash of the file, and how a text is split into words before the words become tokens."""

    sha256: str
    pattern: str


# From tiktoken_ext/openai_public.py of tiktoken 0.14; a test compares them.
_VOCABULARIES = {
    "o200k_base": _Vocabulary(
        "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
        "|".join(
            [
                r"""[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?""",
                r"""[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?""",
                r"""\p{N}{1,3}""",
                r""" ?[^\s\p{L}\p{N}]+[\r\n/]*""",
                r"""\s*[\r\n]+""",
                r"""\s+(?!\S)""",
                r"""\s+""",
            ]
        ),
    ),
    "cl100k_base": _Vocabulary(
        "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
        r"""'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s""",
    ),
}
ENCODINGS = frozenset(_VOCABULARIES)
_loading = Lock()


def count_text(text: str, encoding: str = DEFAULT_ENCODING) -> int:
    """Count the tokens of a text; what looks like a special token is plain text.

    An unknown encoding counts as DEFAULT_ENCODING. Costs about 1 ms per 10,000 characters, and
    0.3 s once per encoding to load it.
    """
    if encoding not in _VOCABULARIES:
        encoding = DEFAULT_ENCODING
    if len(text) <= _CACHED_CHARS:
        return _count_short(text, encoding)
    return sum(_count(piece, encoding) for piece in _pieces(text))


def beginning(text: str, limit_tokens: int, encoding: str = DEFAULT_ENCODING) -> str:
    """Return as much of the text as surely fits, for embedders that refuse what is longer.

    Counts nothing for a text that fits anyway, else two or three times.
    """
    while at_most_tokens(text) > limit_tokens:
        counted = count_text(text, encoding)
        if counted <= limit_tokens:
            break
        text = text[: int(len(text) * limit_tokens / counted * 0.98)]
    return text


def count_message(
    message: ProviderMessage, encoding: str = DEFAULT_ENCODING, image_tokens: int = IMAGE_TOKENS
) -> int:
    """Count the tokens of one message. Every image counts `image_tokens`, whatever its address."""
    return _weigh(message, lambda text: count_text(text, encoding), image_tokens)


def count_messages(
    messages: Iterable[ProviderMessage],
    encoding: str = DEFAULT_ENCODING,
    image_tokens: int = IMAGE_TOKENS,
) -> int:
    """Count the tokens of a request's messages, with the opening of the reply."""
    return REPLY_TOKENS + sum(count_message(m, encoding, image_tokens) for m in messages)


def at_most_tokens(text: str) -> int:
    """Return a bound that no encoding exceeds: a token has at least one byte. Loads nothing."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def estimate_tokens(text: str) -> int:
    """Return a safe estimate. Loads nothing: a vocabulary would cost a web process 74 MB."""
    return at_most_tokens(text) // SAFE_BYTES_PER_TOKEN + 1


def at_most_message_tokens(message: ProviderMessage, image_tokens: int = IMAGE_TOKENS) -> int:
    """Return a bound for a message: exact counting is needless where this already fits."""
    return _weigh(message, at_most_tokens, image_tokens)


def _weigh(message: ProviderMessage, count: Callable[[str], int], image_tokens: int) -> int:
    tokens = MESSAGE_TOKENS
    content = message.get("content") or ""
    if isinstance(content, str):
        tokens += count(content)
    else:
        tokens += sum(_weigh_part(part, count, image_tokens) for part in content)
    if not is_plain(message):
        tokens += _weigh_calls(message, count) + sum(map(count, texts_of(message)))
    return tokens


def _weigh_calls(message: ProviderMessage, count: Callable[[str], int]) -> int:
    tokens = count(message["tool_call_id"]) if message["role"] == "tool" else 0
    for call in calls_in(message):
        function = call["function"]
        tokens += CALL_TOKENS + count(call["id"])
        tokens += count(function["name"]) + count(function["arguments"])
    return tokens


def _weigh_part(part: Part, count: Callable[[str], int], image_tokens: int) -> int:
    return image_tokens if part["type"] == "image_url" else count(part["text"])


@lru_cache(maxsize=4_096)
def _count_short(text: str, encoding: str) -> int:
    return _count(text, encoding) if text else 0


def _count(text: str, encoding: str) -> int:
    return len(_encoder(encoding).encode_ordinary(text))


def _pieces(text: str) -> Iterable[str]:
    """Cut the text into pieces, behind a newline where there is one."""
    start = 0
    while len(text) - start > _PIECE_CHARS:
        end = text.rfind("\n", start, start + _PIECE_CHARS) + 1 or start + _PIECE_CHARS
        yield text[start:end]
        start = end
    yield text[start:]


def _encoder(name: str) -> "tiktoken.Encoding":
    with _loading:  # two threads that count first at the same time would load it twice
        return _load(name)


@cache
def _load(name: str) -> "tiktoken.Encoding":
    import tiktoken

    vocabulary = _VOCABULARIES[name]
    path = Path(__file__).with_name("encodings") / f"{name}.tiktoken"
    data = path.read_bytes()
    if hashlib.sha256(data).hexdigest() != vocabulary.sha256:
        raise ValueError(f"{path.name} is not the vocabulary OpenAI published.")
    ranks = {
        base64.b64decode(token): int(rank) for token, rank in map(bytes.split, data.splitlines())
    }
    return tiktoken.Encoding(
        name, pat_str=vocabulary.pattern, mergeable_ranks=ranks, special_tokens={}
    )
