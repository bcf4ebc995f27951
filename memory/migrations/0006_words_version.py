from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    """Memories tell which release chose their words: `reindex_waiting_memories` chooses them anew."""

    atomic = False

    dependencies = [("memory", "0005_words_at_once")]

    operations = [
        migrations.AddField(
            "memory",
            "words_version",
            models.PositiveSmallIntegerField(db_default=0, default=0),
        ),
        AddIndexConcurrently(
            "memory",
            models.Index(fields=["words_version"], name="memory_words_version"),
        ),
    ]
