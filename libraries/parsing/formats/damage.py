"""Translate what libraries raise when an Office file is broken, apart from a lack of memory."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final
from zipfile import BadZipFile

from lxml.etree import ErrorTypes, LxmlError, ParseError

from libraries.parsing.result import Unreadable

# What the libraries run into while they follow relations that a broken file has made up.
_BROKEN: Final = (AttributeError, BadZipFile, LookupError, LxmlError, TypeError, ValueError)


@contextmanager
def damage_means(message: str, *errors: type[Exception]) -> Iterator[None]:
    """Raise Unreadable with the message for damage found inside, or MemoryError.

    `errors` are the library's own.
    """
    try:
        yield
    except ParseError as error:
        # lxml's way of saying so; its message is "unknown error".
        if error.code == ErrorTypes.ERR_NO_MEMORY:
            raise MemoryError from None
        raise Unreadable(message) from None
    except (*errors, *_BROKEN):
        raise Unreadable(message) from None
