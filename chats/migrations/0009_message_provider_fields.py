from django.db import migrations, models


class Migration(migrations.Migration):
    """What models sent with their messages beyond OpenAI's form, to be sent back to them."""

    dependencies = [("chats", "0008_chat_api_key")]

    operations = [
        migrations.AddField(
            "chatmessage",
            "provider_fields",
            models.JSONField(blank=True, editable=False, null=True),
        )
    ]
