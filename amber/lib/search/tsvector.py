"""Define a tsvector column whose text and queries are tokenised by `amber.lib.search.words`.

Postgres' own parser is not asked: `to_tsvector` would turn C++ into c and cut part numbers.
"""

from typing import Any

from django.contrib.postgres.search import SearchVectorField
from django.db import models


class TokenVectorField(SearchVectorField[Any, Any]):
    """Holds what `words.tsvector_literal(text)` returns; null while nothing was indexed."""

    def get_placeholder(self, value: Any, compiler: Any, connection: Any) -> str:
        return "%s" if hasattr(value, "as_sql") else "%s::tsvector"


@TokenVectorField.register_lookup
class TsvectorMatch(models.Lookup[bool]):
    """`column__matches=words.tsquery_literal(query)`: the GIN index answers."""

    lookup_name = "matches"
    prepare_rhs = False

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, tuple[Any, ...]]:
        left, left_params = self.process_lhs(compiler, connection)
        return f"{left} @@ %s::tsquery", (*left_params, self.rhs)
