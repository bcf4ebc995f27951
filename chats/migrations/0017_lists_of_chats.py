from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    """What lists of chats want: which are pinned or archived, and an index to list them by activity."""

    atomic = False

    dependencies = [("chats", "0016_feedback")]

    operations = [
        migrations.AddField(
            model_name="chat",
            name="archived",
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.AddField(
            model_name="chat",
            name="pinned",
            field=models.BooleanField(db_default=False, default=False),
        ),
        AddIndexConcurrently(
            model_name="chat",
            index=models.Index(
                fields=["organization", "user", "owner", "-updated_at"], name="chat_user_activity"
            ),
        ),
    ]
