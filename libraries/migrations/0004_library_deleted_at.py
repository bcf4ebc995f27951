from django.db import migrations, models


class Migration(migrations.Migration):
    """A deleted library disappears at once; its rows go in batches afterwards."""

    dependencies = [("libraries", "0003_document_queue")]

    operations = [
        migrations.AddField(
            model_name="library",
            name="deleted_at",
            field=models.DateTimeField(blank=True, editable=False, null=True),
        ),
    ]
