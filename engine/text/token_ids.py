"""Turn token ids back into text, by OpenAI's vocabularies beside `engine.text.tokens`.

Only that: a list of byte strings per vocabulary (about 10 MB once loaded), where the tokenizer that
counts costs 74 MB. Some clients send texts as token ids, which mean something to one vocabulary
only.
"""

import base64
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from engine.text.tokens import DEFAULT_ENCODING, ENCODINGS


class UnknownTokenError(ValueError):
    """An id that the vocabulary does not have. `token` is that id."""

    def __init__(self, token: int) -> None:
        super().__init__(f"There is no token {token}.")
        self.token = token


def text_of_tokens(tokens: Sequence[int], encoding: str = DEFAULT_ENCODING) -> str:
    """Return the text. Bytes that are not UTF-8 become U+FFFD; an unknown encoding is the default.

    Raises UnknownTokenError; special tokens are unknown. Costs 0.2 s once per encoding.
    """
    pieces = _pieces(encoding if encoding in ENCODINGS else DEFAULT_ENCODING)
    unknown = next((token for token in tokens if not 0 <= token < len(pieces)), None)
    if unknown is not None:
        raise UnknownTokenError(unknown)
    return b"".join(pieces[token] for token in tokens).decode("utf-8", "replace")


@cache
def _pieces(encoding: str) -> list[bytes]:
    """Return the tokens by id: the files hold one per line, without a gap, in order."""
    lines = Path(__file__).with_name("encodings").joinpath(f"{encoding}.tiktoken").read_bytes()
    pairs = [line.split() for line in lines.splitlines()]
    if [int(rank) for _, rank in pairs] != list(range(len(pairs))):
        raise ValueError(f"The vocabulary {encoding} has gaps.")
    return [base64.b64decode(token) for token, _ in pairs]
