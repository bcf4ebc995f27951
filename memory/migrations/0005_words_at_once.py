import django.contrib.postgres.indexes
from django.db import migrations


class Migration(migrations.Migration):
    """Put words into their index at once, as those of chunks and blocks (chats/migrations/0015)."""

    dependencies = [("memory", "0004_counts")]

    operations = [
        migrations.RunSQL(
            "ALTER INDEX memory_search SET (fastupdate = off)",
            "ALTER INDEX memory_search RESET (fastupdate)",
            state_operations=[
                migrations.RemoveIndex(model_name="memory", name="memory_search"),
                migrations.AddIndex(
                    model_name="memory",
                    index=django.contrib.postgres.indexes.GinIndex(
                        fastupdate=False, fields=["search"], name="memory_search"
                    ),
                ),
            ],
        ),
        migrations.RunSQL("SELECT gin_clean_pending_list('memory_search')", migrations.RunSQL.noop),
    ]
