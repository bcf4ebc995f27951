from django.db import migrations, models


class Migration(migrations.Migration):
    """Lets workers say which key they encrypt with, for who rotates keys."""

    dependencies = [("operations", "0002_backup_records")]

    operations = [
        migrations.AddField(
            model_name="workerheartbeat",
            name="secret_key_id",
            field=models.CharField(db_default="", default="", max_length=8),
        ),
    ]
