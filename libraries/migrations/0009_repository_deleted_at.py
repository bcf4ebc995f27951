from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [("libraries", "0008_document_identity")]

    operations = [
        migrations.AddField(
            model_name="repository",
            name="deleted_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
    ]
