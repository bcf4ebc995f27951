from typing import Any

from django.db import migrations, models
from django.db.models.deletion import CASCADE, SET_NULL


def _without_index(
    model: str, name: str, index: str, field: "models.ForeignKey[Any, Any]"
) -> migrations.SeparateDatabaseAndState:
    """Drop a key's own index; Django itself would lock the table for that."""
    return migrations.SeparateDatabaseAndState(
        database_operations=[
            migrations.RunSQL(
                f"DROP INDEX CONCURRENTLY IF EXISTS {index}",
                f"CREATE INDEX CONCURRENTLY {index} ON chats_{model} ({name}_id)",
            )
        ],
        state_operations=[migrations.AlterField(model_name=model, name=name, field=field)],
    )


def _key(to: str, on_delete: Any, related: str = "+", **options: Any) -> Any:
    return models.ForeignKey(
        to, db_index=False, on_delete=on_delete, related_name=related, **options
    )


class Migration(migrations.Migration):
    """Each message is written to four indexes less, and each state of a turn to three.

    Other indexes begin with the same column, or nearly all rows have nothing there: those have an index of the
    few that have.
    """

    atomic = False

    dependencies = [("chats", "0025_indexes_of_the_few"), ("accounts", "0013_trace_content")]

    excused = {"runs_code": "Drops indexes concurrently."}

    operations = [
        _without_index(
            *("chatmessage", "chat", "chats_chatmessage_chat_id_fbfc4c16"),
            _key("chats.chat", CASCADE, "messages"),
        ),
        _without_index(
            *("chatmessage", "turn", "chats_chatmessage_turn_id_67284021"),
            _key("chats.turn", SET_NULL, "messages", null=True, blank=True),
        ),
        _without_index(
            *("chatmessage", "file", "chats_chatmessage_file_id_0afd3611"),
            _key("libraries.file", SET_NULL, null=True, blank=True),
        ),
        _without_index(
            *("chatmessage", "opening", "chats_chatmessage_opening_id_2e8cc6b1"),
            _key("chats.chatmessage", SET_NULL, null=True, blank=True),
        ),
        _without_index(
            *("turn", "chat", "chats_turn_chat_id_42ed7d2b"),
            _key("chats.chat", CASCADE, "turns", null=True, blank=True),
        ),
        _without_index(
            *("turn", "organization", "chats_turn_organization_id_32e52c61"),
            _key("accounts.organization", CASCADE),
        ),
        _without_index(
            *("turn", "api_key", "chats_turn_api_key_id_5df2fcc9"),
            _key("accounts.apikey", SET_NULL, null=True),
        ),
    ]
