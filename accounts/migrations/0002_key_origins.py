from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations


class Migration(migrations.Migration):
    """Which origins are registered: asked before every request of a web page."""

    atomic = False

    dependencies = [("accounts", "0001_initial")]

    operations = [
        AddIndexConcurrently(
            model_name="apikey",
            index=GinIndex(fields=["origins"], name="api_key_origins"),
        ),
    ]
