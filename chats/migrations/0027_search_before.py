from typing import Any

from django.db import migrations

from accounts.tenancy.wall_functions import build_functions


def build(apps: Any, editor: Any) -> None:
    with editor.connection.cursor() as cursor:
        build_functions(cursor)


class Migration(migrations.Migration):
    """Make the function that searches a chat's blocks before a position."""

    excused = {"runs_code": "Declares functions; the release before calls the one that stays."}

    dependencies = [("chats", "0026_fewer_indexes")]

    operations = [migrations.RunPython(build, migrations.RunPython.noop)]
