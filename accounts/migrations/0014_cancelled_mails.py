from django.db import migrations, models


class Migration(migrations.Migration):
    """A mail that nobody needs any more is cancelled: it has not failed."""

    dependencies = [("accounts", "0013_trace_content")]

    operations = [
        migrations.AlterField(
            model_name="outgoingmail",
            name="status",
            field=models.CharField(
                choices=[
                    ("queued", "Queued"),
                    ("running", "Running"),
                    ("sent", "Sent"),
                    ("failed", "Failed"),
                    ("cancelled", "Cancelled"),
                ],
                default="queued",
                max_length=10,
            ),
        ),
    ]
