import django.utils.timezone
from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    """Where blocks lie on their path. No block has been sealed yet: the table is empty."""

    dependencies = [("chats", "0001_initial")]

    operations = [
        migrations.RemoveIndex("messageblock", "block_chat_active"),
        migrations.AddField(
            "messageblock",
            "first_position",
            models.PositiveIntegerField(default=0),
            preserve_default=False,
        ),
        migrations.AddField(
            "messageblock",
            "last_position",
            models.PositiveIntegerField(default=0),
            preserve_default=False,
        ),
        migrations.AddField(
            "messageblock",
            "tokens_before",
            models.PositiveBigIntegerField(default=0),
            preserve_default=False,
        ),
        migrations.AddField(
            "messageblock",
            "from_at",
            models.DateTimeField(default=django.utils.timezone.now),
            preserve_default=False,
        ),
        migrations.AddField(
            "messageblock",
            "until_at",
            models.DateTimeField(default=django.utils.timezone.now),
            preserve_default=False,
        ),
        migrations.AddIndex(
            "messageblock",
            models.Index(
                fields=["chat", "last_position"],
                condition=Q(on_active_path=True),
                name="block_active_path",
            ),
        ),
        migrations.AddIndex(
            "messageblock",
            models.Index(
                fields=["created_at"],
                condition=Q(embedding_model_id__isnull=True),
                name="block_not_embedded",
            ),
        ),
    ]
