from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    """Memories without a vector, or with one of another model than the default, are found."""

    atomic = False

    dependencies = [("memory", "0002_search")]

    operations = [
        AddIndexConcurrently(
            "memory",
            models.Index(
                fields=["embedding_model_id"],
                condition=models.Q(valid_until__isnull=True),
                name="memory_embedded_by",
            ),
        ),
    ]
