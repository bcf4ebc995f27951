import django.contrib.postgres.fields
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [("assistants", "0001_initial")]

    operations = [
        migrations.AddField(
            model_name="assistant",
            name="public_origins",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.CharField(max_length=300),
                blank=True,
                default=list,
                size=None,
            ),
        ),
        migrations.AddField(
            model_name="assistant",
            name="guest_files",
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.AddField(
            model_name="assistant",
            name="guest_epoch",
            field=models.PositiveIntegerField(db_default=0, default=0, editable=False),
        ),
    ]
