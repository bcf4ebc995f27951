from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    """Lets the admin count what became ready, or failed, lately."""

    atomic = False

    dependencies = [("libraries", "0013_file_reading")]

    operations = [
        AddIndexConcurrently(
            model_name="document",
            index=models.Index(
                fields=["status", "ended_at"],
                condition=models.Q(("ended_at__isnull", False)),
                name="document_ended",
            ),
        ),
    ]
