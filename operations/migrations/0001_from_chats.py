"""Takes over three models of `chats` with their tables: only Django's state changes."""

import amber.lib.ids
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('accounts', '0006_trust_existing_addresses'),
        ('chats', '0010_workers_count_held_interpreters'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.CreateModel(
                    name='PeriodicJob',
                    fields=[
                        ('id', models.UUIDField(default=amber.lib.ids.new_id, editable=False, primary_key=True, serialize=False)),
                        ('created_at', models.DateTimeField(auto_now_add=True)),
                        ('updated_at', models.DateTimeField(auto_now=True)),
                        ('name', models.CharField(max_length=80, unique=True)),
                        ('enqueued_at', models.DateTimeField(blank=True, db_column='rung_at', null=True)),
                    ],
                    options={
                        'db_table': 'chats_chore',
                    },
                ),
                migrations.CreateModel(
                    name='WorkerHeartbeat',
                    fields=[
                        ('id', models.UUIDField(default=amber.lib.ids.new_id, editable=False, primary_key=True, serialize=False)),
                        ('created_at', models.DateTimeField(auto_now_add=True)),
                        ('updated_at', models.DateTimeField(auto_now=True)),
                        ('worker', models.CharField(max_length=120, unique=True)),
                        ('queue', models.CharField(max_length=40)),
                        ('beat_at', models.DateTimeField()),
                        ('held_count', models.PositiveIntegerField(db_default=0, default=0)),
                    ],
                    options={
                        'db_table': 'chats_workerheartbeat',
                    },
                ),
                migrations.CreateModel(
                    name='Erasure',
                    fields=[
                        ('id', models.UUIDField(default=amber.lib.ids.new_id, editable=False, primary_key=True, serialize=False)),
                        ('created_at', models.DateTimeField(auto_now_add=True)),
                        ('updated_at', models.DateTimeField(auto_now=True)),
                        ('account', models.BooleanField(default=False)),
                        ('doomed', models.JSONField(blank=True, default=dict)),
                        ('ended_at', models.DateTimeField(blank=True, null=True)),
                        ('organization', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='accounts.organization')),
                        ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ],
                    options={
                        'db_table': 'chats_erasure',
                        'indexes': [models.Index(condition=models.Q(('ended_at__isnull', True)), fields=['created_at'], name='erasure_open')],
                    },
                ),
            ],
        ),
    ]
