"""Erasures, heartbeats and periodic jobs are models of `operations` now; their tables stay."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("chats", "0010_workers_count_held_interpreters"),
        ("operations", "0001_from_chats"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.DeleteModel("Chore"),
                migrations.DeleteModel("WorkerHeartbeat"),
                migrations.DeleteModel("Erasure"),
            ],
        ),
    ]
