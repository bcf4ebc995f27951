from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [("accounts", "0004_page_words")]

    operations = [
        migrations.AddField(
            model_name="organization",
            name="deleted_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
    ]
