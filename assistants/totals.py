"""Count in an assistant's row the tokens that all its turns have used."""

from typing import Final
from uuid import UUID

from django.db import connection

from amber.lib.database.tenant import for_whole_organization

_COUNT_SQL: Final = """
UPDATE assistants_assistant SET total_token_usage = total_token_usage + %s WHERE id = %s
"""


def count_tokens(assistant_id: UUID, tokens: int) -> None:
    """Add to the assistant's total. One query.

    The row stays locked until the transaction ends, so call this last: every other turn of the
    assistant waits for it.
    """
    # Whoever asked may only read the assistant, or not even that any more.
    with for_whole_organization(), connection.cursor() as cursor:
        cursor.execute(_COUNT_SQL, [tokens, assistant_id])
