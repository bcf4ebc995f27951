from django.db import migrations, models


class Migration(migrations.Migration):
    """What models sent with their messages beyond OpenAI's form, to be sent back to them."""

    dependencies = [("chats", "0007_manifests_name_memories")]

    operations = [
        migrations.AddField(
            "chatmessage",
            "provider_fields",
            models.JSONField(blank=True, editable=False, null=True),
        )
    ]
