"""Convert vectors to and from pgvector's `halfvec`: its text, and what `halfvec_send` gives.

Binary form: two big-endian 16-bit integers (dimensions, 0), then big-endian halves.
https://github.com/pgvector/pgvector/blob/master/src/halfvec.c
"""

import struct
from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def halfvec_text(vector: "NDArray[Any]") -> str:
    """Return the text form, for `%s::halfvec`: that of JSON."""
    return orjson.dumps(vector, option=orjson.OPT_SERIALIZE_NUMPY).decode()


def halfvec_bytes(vector: "NDArray[Any]") -> bytes:
    """Return the binary form, for COPY."""
    return struct.pack(">HH", len(vector), 0) + vector.astype(">f2").tobytes()


def vector_of(sent: bytes) -> "NDArray[np.float32]":
    """Read what `halfvec_send(column)` gave, as (dimensions,) float32."""
    import numpy as np

    return np.frombuffer(sent, dtype=">f2", offset=4).astype(np.float32)
