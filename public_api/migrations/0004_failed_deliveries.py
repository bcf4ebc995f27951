from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    """Lets the admin's front page find what failed lately."""

    atomic = False

    dependencies = [("public_api", "0003_row_security")]

    operations = [
        AddIndexConcurrently(
            model_name="webhookdelivery",
            index=models.Index(
                fields=["created_at"], condition=models.Q(("status", "failed")), name="delivery_failed"
            ),
        ),
    ]
