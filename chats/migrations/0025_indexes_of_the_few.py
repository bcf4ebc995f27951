from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    """Few messages have a file or an opening, few turns a key: they are in indexes without the others."""

    atomic = False

    dependencies = [("chats", "0024_search_by_person")]

    operations = [
        AddIndexConcurrently(
            model_name="chatmessage",
            index=models.Index(
                fields=["file"], condition=models.Q(file__isnull=False), name="message_file"
            ),
        ),
        AddIndexConcurrently(
            model_name="chatmessage",
            index=models.Index(
                fields=["opening"],
                condition=models.Q(opening__isnull=False),
                name="message_opening",
            ),
        ),
        AddIndexConcurrently(
            model_name="turn",
            index=models.Index(
                fields=["api_key"], condition=models.Q(api_key__isnull=False), name="turn_key"
            ),
        ),
    ]
