import amber.lib.ids
from django.db import migrations, models


class Migration(migrations.Migration):
    """Remembers when backups were made, for the admin's front page."""

    dependencies = [("operations", "0001_from_chats")]

    operations = [
        migrations.CreateModel(
            name="BackupRecord",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=amber.lib.ids.new_id,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
                ("elsewhere", models.BooleanField(default=False)),
            ],
            options={
                "indexes": [models.Index(fields=["created_at"], name="backup_time")],
            },
        ),
    ]
