from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("accounts", "0015_failed_mails")]

    operations = [
        migrations.AlterField(
            model_name="user",
            name="language",
            field=models.CharField(
                blank=True,
                choices=[("en", "English"), ("de", "Deutsch"), ("zh-hans", "简体中文")],
                db_default="",
                default="",
                max_length=10,
            ),
        ),
    ]
