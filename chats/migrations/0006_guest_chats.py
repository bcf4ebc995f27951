from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    """The chats of one guest: counted when another is opened, listed, and handed over."""

    atomic = False

    dependencies = [("chats", "0005_turn_budgeted")]

    operations = [
        AddIndexConcurrently(
            model_name="chat",
            index=models.Index(
                fields=["organization", "guest_id", "-created_at"],
                condition=models.Q(("guest_id__isnull", False)),
                name="chat_guest_time",
            ),
        ),
    ]
