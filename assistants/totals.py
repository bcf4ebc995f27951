"""The tokens all turns of an assistant have used, counted in its row."""

from typing import Final
from uuid import UUID

from django.db import connection

_COUNT_SQL: Final = """
UPDATE assistants_assistant SET total_token_usage = total_token_usage + %s WHERE id = %s
"""


def count_tokens(assistant_id: UUID, tokens: int) -> None:
    """One query. The row stays locked until the transaction ends: count last."""
    with connection.cursor() as cursor:
        cursor.execute(_COUNT_SQL, [tokens, assistant_id])
