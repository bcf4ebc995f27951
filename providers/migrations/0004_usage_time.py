from django.contrib.postgres.indexes import BrinIndex
from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations


class Migration(migrations.Migration):
    """Operators look at a span of time of all organizations."""

    atomic = False

    dependencies = [("providers", "0003_budget_counters")]

    operations = [
        AddIndexConcurrently(
            model_name="usagerecord",
            index=BrinIndex(fields=["created_at"], name="usage_time"),
        ),
    ]
