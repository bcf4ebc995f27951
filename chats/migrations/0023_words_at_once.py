import django.contrib.postgres.indexes
from django.db import migrations


class Migration(migrations.Migration):
    """Put words into the index at once: each search would read what is pending, up to 4 MB."""

    dependencies = [("chats", "0022_waiting_person_words")]
    excused = {"runs_code": "Changes an option of an index, and empties a list of 4 MB at most."}

    operations = [
        migrations.RunSQL(
            "ALTER INDEX message_search SET (fastupdate = off)",
            "ALTER INDEX message_search RESET (fastupdate)",
            state_operations=[
                migrations.RemoveIndex(model_name="chatmessage", name="message_search"),
                migrations.AddIndex(
                    model_name="chatmessage",
                    index=django.contrib.postgres.indexes.GinIndex(
                        fastupdate=False, fields=["search"], name="message_search"
                    ),
                ),
            ],
        ),
        migrations.RunSQL(
            "SELECT gin_clean_pending_list('message_search')", migrations.RunSQL.noop
        ),
    ]
