from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    """Documents that wait, by organization: one organization's many must not hide another's one."""

    atomic = False

    dependencies = [("libraries", "0002_ingestion")]

    operations = [
        AddIndexConcurrently(
            model_name='document',
            index=models.Index(condition=models.Q(('status', 'queued')), fields=['organization', 'created_at'], name='document_queue'),
        ),
    ]
