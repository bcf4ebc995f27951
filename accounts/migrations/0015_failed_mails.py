from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    """The admin's front page counts the mails that failed in the last day."""

    atomic = False

    dependencies = [("accounts", "0014_cancelled_mails")]

    operations = [
        AddIndexConcurrently(
            model_name="outgoingmail",
            index=models.Index(
                fields=["ended_at"], condition=models.Q(status="failed"), name="mail_failed"
            ),
        ),
    ]
