from django.db import migrations, models


class Migration(migrations.Migration):
    """Turns know whether budgets hold something for them: those without ask nobody."""

    dependencies = [("chats", "0004_erasing")]

    operations = [
        migrations.AddField(
            model_name="turn",
            name="is_budgeted",
            field=models.BooleanField(default=False, db_default=False),
        ),
    ]
