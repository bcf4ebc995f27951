import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    """A key that is limited to an assistant sees its own files only, so files name their key."""

    dependencies = [
        ("accounts", "0005_organization_deleted_at"),
        ("libraries", "0009_repository_deleted_at"),
    ]

    operations = [
        migrations.AddField(
            model_name="file",
            name="api_key",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to="accounts.apikey",
            ),
        ),
    ]
