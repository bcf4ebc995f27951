from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    """Lets the admin's front page find what failed lately."""

    atomic = False

    dependencies = [("chats", "0017_lists_of_chats")]

    operations = [
        AddIndexConcurrently(
            model_name="turn",
            index=models.Index(
                fields=["ended_at"], condition=models.Q(("status", "failed")), name="turn_failed"
            ),
        ),
    ]
