from typing import Any

from django.db import migrations

from accounts.tenancy.wall import build_wall


def build(apps: object, schema_editor: Any) -> None:
    build_wall(schema_editor.connection)


class Migration(migrations.Migration):
    """The policies of the outbox of mails. Here, where the functions are that other policies call."""

    dependencies = [
        ('accounts', '0012_outgoing_mail'),
        ('chats', '0016_feedback'),
        ('public_api', '0004_failed_deliveries'),
    ]

    operations = [
        migrations.RunPython(build, migrations.RunPython.noop),
    ]
