"""Let Postgres keep tenants apart. Here, since this app's tables are the last that exist."""

from typing import Any

from django.db import migrations

from accounts.tenancy.wall import build_wall
from accounts.tenancy.wall_functions import build_functions


def build(apps: object, schema_editor: Any) -> None:
    with schema_editor.connection.cursor() as cursor:
        build_functions(cursor)  # policies call some
    build_wall(schema_editor.connection)


class Migration(migrations.Migration):
    dependencies = [
        ("operations", "0001_from_chats"),
        ("chats", "0011_operations_moved_out"),
        ("assistants", "0004_untrusted_calls"),
        ("tools", "0006_groups"),
        ("libraries", "0011_groups"),
        ("memory", "0004_counts"),
        ("providers", "0004_usage_time"),
        ("accounts", "0009_audit_of_groups"),
        ("public_api", "0002_page_words"),
    ]
    operations = [migrations.RunPython(build, migrations.RunPython.noop)]
