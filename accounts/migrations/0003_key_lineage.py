from django.db import migrations, models

# Of keys that were rotated before, each names the first of its line.
FILL = """
WITH RECURSIVE line AS (
    SELECT id, id AS first_id FROM accounts_apikey WHERE rotated_from_id IS NULL
    UNION ALL
    SELECT k.id, line.first_id FROM accounts_apikey k JOIN line ON k.rotated_from_id = line.id
)
UPDATE accounts_apikey k SET lineage_id = line.first_id
FROM line WHERE line.id = k.id AND line.first_id <> k.id
"""


class Migration(migrations.Migration):
    """Keys know the first they were rotated from: budgets of a key outlive its rotation."""

    dependencies = [("accounts", "0002_key_origins")]

    operations = [
        migrations.AddField(
            model_name="apikey",
            name="lineage_id",
            field=models.UUIDField(null=True, blank=True),
        ),
        migrations.RunSQL(FILL, migrations.RunSQL.noop),
    ]
