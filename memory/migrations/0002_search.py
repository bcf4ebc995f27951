import django.contrib.postgres.indexes
from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models

import amber.lib.search.tsvector


class Migration(migrations.Migration):
    """Memories are found by words, too."""

    atomic = False

    dependencies = [("memory", "0001_initial")]

    operations = [
        migrations.AddField(
            "memory", "search", amber.lib.search.tsvector.TokenVectorField(null=True)
        ),
        AddIndexConcurrently(
            "memory",
            models.Index(
                fields=["organization", "guest_id"],
                condition=models.Q(guest_id__isnull=False),
                name="memory_guest",
            ),
        ),
        AddIndexConcurrently(
            "memory",
            django.contrib.postgres.indexes.GinIndex(fields=["search"], name="memory_search"),
        ),
    ]
