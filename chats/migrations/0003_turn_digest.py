from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    """Background work over turns that ended."""

    atomic = False

    dependencies = [("chats", "0002_block_positions")]

    operations = [
        migrations.AddField("turn", "digest_at", models.DateTimeField(blank=True, null=True)),
        AddIndexConcurrently(
            "turn",
            models.Index(
                fields=["digest_at"],
                condition=models.Q(digest_at__isnull=False),
                name="turn_digest",
            ),
        ),
    ]
