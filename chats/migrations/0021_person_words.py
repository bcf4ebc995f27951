from django.db import migrations, models


class Migration(migrations.Migration):
    """Say which messages have their person's word in their index."""

    dependencies = [("chats", "0020_trace_parent")]

    operations = [
        migrations.AddField(
            model_name="chatmessage",
            name="words_version",
            field=models.PositiveSmallIntegerField(db_default=0, default=0, editable=False),
        )
    ]
