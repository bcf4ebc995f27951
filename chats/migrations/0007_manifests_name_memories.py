from typing import Any

from django.db import migrations

FORGET_TEXTS = """
UPDATE chats_turn SET manifest = jsonb_set(manifest, '{memories}', (
    SELECT jsonb_agg(each.memory - 'content' ORDER BY each.place)
    FROM jsonb_array_elements(manifest->'memories') WITH ORDINALITY AS each (memory, place)
))
WHERE manifest @? '$.memories[*].content'
"""


def forget_texts(apps: Any, schema_editor: Any) -> None:
    schema_editor.execute(FORGET_TEXTS)


class Migration(migrations.Migration):
    """Texts of memories go from the manifests of past turns: a memory can be forgotten."""

    dependencies = [("chats", "0006_guest_chats")]

    operations = [migrations.RunPython(forget_texts, migrations.RunPython.noop)]
