from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    """Find the messages that do not have their person's word yet."""

    atomic = False

    dependencies = [("chats", "0021_person_words")]

    operations = [
        AddIndexConcurrently(
            model_name="chatmessage",
            index=models.Index(
                fields=["id"],
                condition=models.Q(("words_version", 0)),
                name="message_words_waiting",
            ),
        )
    ]
