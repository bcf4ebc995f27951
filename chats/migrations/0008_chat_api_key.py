from typing import Any

import django.db.models.deletion
from django.db import migrations, models

NAME_THE_KEY_OF_CHATS = """
UPDATE chats_chat SET api_key_id = first_turn.api_key_id
FROM (
    SELECT DISTINCT ON (chat_id) chat_id, api_key_id FROM chats_turn
    WHERE chat_id IS NOT NULL ORDER BY chat_id, created_at
) first_turn
WHERE first_turn.chat_id = chats_chat.id AND owner <> 'user'
"""

NAME_THE_KEY_OF_THEIR_FILES = """
UPDATE libraries_file SET api_key_id = sent.api_key_id
FROM (
    SELECT DISTINCT ON (file_id) file_id, chats_chat.api_key_id FROM chats_chatmessage
    JOIN chats_chat ON chats_chat.id = chat_id
    WHERE file_id IS NOT NULL AND chats_chat.api_key_id IS NOT NULL
    ORDER BY file_id, chats_chatmessage.created_at
) sent
WHERE sent.file_id = libraries_file.id
"""


def name_keys(apps: Any, schema_editor: Any) -> None:
    schema_editor.execute(NAME_THE_KEY_OF_CHATS)
    schema_editor.execute(NAME_THE_KEY_OF_THEIR_FILES)


class Migration(migrations.Migration):
    """A key that is limited to an assistant sees only the chats it began, so chats name their key.

    Those that keys made before are taken to be of the key that asked first, and so are their files.
    """

    dependencies = [
        ("chats", "0007_manifests_name_memories"),
        ("libraries", "0010_file_api_key"),
    ]

    operations = [
        migrations.AddField(
            model_name="chat",
            name="api_key",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to="accounts.apikey",
            ),
        ),
        migrations.RunPython(name_keys, migrations.RunPython.noop),
    ]
