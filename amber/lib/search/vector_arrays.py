"""Define a column of several vectors: pgvector's `halfvec[]`, which Django's ArrayField cannot read.

Postgres sends such an array as text, `{"[1,2]","[3,4]"}`.
"""

import re
from typing import Any, Final

from django.contrib.postgres.fields import ArrayField
from pgvector import HalfVector

_VECTOR: Final = re.compile(r"\[[^\[\]]*\]")


class VectorArrayField(ArrayField[Any, Any]):
    """Holds a list of vectors; None while there are none."""

    def _from_db_value(self, value: Any, expression: Any, connection: Any) -> Any:
        if value is None:
            return None
        return [HalfVector.from_text(text) for text in _VECTOR.findall(value)]
