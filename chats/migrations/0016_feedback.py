
from typing import Any

import amber.lib.ids
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

from accounts.tenancy.wall import build_wall


def build(apps: object, schema_editor: Any) -> None:
    build_wall(schema_editor.connection)


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0009_audit_of_groups'),
        ('assistants', '0004_untrusted_calls'),
        ('chats', '0015_block_words_at_once'),
        ('public_api', '0003_row_security'),  # the functions that policies call
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='Feedback',
            fields=[
                ('id', models.UUIDField(default=amber.lib.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('value', models.CharField(choices=[('up', 'Up'), ('down', 'Down')], max_length=4)),
                ('reason', models.CharField(blank=True, choices=[('correct', 'It is correct'), ('clear', 'It is easy to understand'), ('complete', 'It covers everything'), ('wrong', 'It is wrong'), ('incomplete', 'Something is missing'), ('off_topic', 'It does not answer the question'), ('sources', 'Its sources are missing, or do not say so'), ('style', 'It is badly written, or in the wrong language'), ('harmful', 'It is harmful or offensive'), ('other', 'Something else')], default='', max_length=10)),
                ('comment', models.TextField(blank=True, default='')),
                ('assistant', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='assistants.assistant')),
                ('chat', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='chats.chat')),
                ('message', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='chats.chatmessage')),
                ('organization', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='accounts.organization')),
                ('user', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'indexes': [models.Index(fields=['organization', '-created_at', '-id'], name='feedback_org_time')],
                'constraints': [models.UniqueConstraint(fields=('message', 'user'), name='one_feedback_per_user'), models.UniqueConstraint(condition=models.Q(('user__isnull', True)), fields=('message',), name='one_feedback_per_guest')],
            },
        ),
        migrations.RunPython(build, migrations.RunPython.noop),
    ]
