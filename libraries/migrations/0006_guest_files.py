from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    """The files of one guest: counted when another comes, and handed over."""

    atomic = False

    dependencies = [("libraries", "0005_vector_sizes")]

    operations = [
        AddIndexConcurrently(
            model_name="file",
            index=models.Index(
                fields=["organization", "guest_id"],
                condition=models.Q(("guest_id__isnull", False)),
                name="file_guest",
            ),
        ),
    ]
