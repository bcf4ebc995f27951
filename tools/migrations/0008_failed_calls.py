from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    """Lets the admin's front page find what failed lately."""

    atomic = False

    dependencies = [("tools", "0007_tool_tokens")]

    operations = [
        AddIndexConcurrently(
            model_name="toolcallrecord",
            index=models.Index(
                fields=["created_at"],
                condition=models.Q(("outcome__in", ["refused", "failed", "timeout"])),
                name="toolcall_failed",
            ),
        ),
    ]
