import django.db.models.deletion
from django.conf import settings
from django.contrib.postgres.operations import AddIndexConcurrently, RemoveIndexConcurrently
from django.db import migrations, models

import amber.lib.ids


class Migration(migrations.Migration):
    """What is kept for a time only, what a person wants deleted, and vectors of former models."""

    atomic = False

    dependencies = [
        ("accounts", "0002_key_origins"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("chats", "0003_turn_digest"),
    ]

    operations = [
        migrations.CreateModel(
            name="Erasure",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=amber.lib.ids.new_id,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
                ("account", models.BooleanField(default=False)),
                ("doomed", models.JSONField(blank=True, default=dict)),
                ("ended_at", models.DateTimeField(blank=True, null=True)),
                (
                    "organization",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="accounts.organization",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("ended_at__isnull", True)),
                        fields=["created_at"],
                        name="erasure_open",
                    )
                ],
            },
        ),
        AddIndexConcurrently(
            "chat", models.Index(fields=["organization", "updated_at"], name="chat_org_activity")
        ),
        AddIndexConcurrently(
            "messageblock", models.Index(fields=["embedding_model_id"], name="block_embedded_by")
        ),
        RemoveIndexConcurrently("messageblock", "block_not_embedded"),
    ]
