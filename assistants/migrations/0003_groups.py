import amber.lib.ids
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    """Grants to groups. References to pairs keep an assistant and a group of one organization."""

    dependencies = [
        ('accounts', '0008_groups'),
        ('assistants', '0002_guests'),
        ('libraries', '0010_file_api_key'),
        ('tools', '0005_pasted_documents'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='AssistantGrant',
            fields=[
                ('id', models.UUIDField(default=amber.lib.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('right', models.CharField(choices=[('use', 'Use'), ('edit', 'Use and edit')], default='use', max_length=4)),
            ],
        ),
        migrations.AddConstraint(
            model_name='assistant',
            constraint=models.UniqueConstraint(fields=('organization', 'id'), name='assistant_of_organization'),
        ),
        migrations.AddField(
            model_name='assistantgrant',
            name='assistant',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='grants', to='assistants.assistant'),
        ),
        migrations.AddField(
            model_name='assistantgrant',
            name='group',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='accounts.group'),
        ),
        migrations.AddField(
            model_name='assistantgrant',
            name='organization',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='accounts.organization'),
        ),
        migrations.AddConstraint(
            model_name='assistantgrant',
            constraint=models.UniqueConstraint(fields=('assistant', 'group'), name='one_assistant_grant'),
        ),
        migrations.RunSQL(
            "ALTER TABLE assistants_assistantgrant ADD CONSTRAINT assistant_grant_of_row"
            " FOREIGN KEY (organization_id, assistant_id)"
            " REFERENCES assistants_assistant (organization_id, id) ON DELETE CASCADE",
            "ALTER TABLE assistants_assistantgrant DROP CONSTRAINT assistant_grant_of_row",
        ),
        migrations.RunSQL(
            "ALTER TABLE assistants_assistantgrant ADD CONSTRAINT assistant_grant_of_group"
            " FOREIGN KEY (organization_id, group_id)"
            " REFERENCES accounts_group (organization_id, id) ON DELETE CASCADE",
            "ALTER TABLE assistants_assistantgrant DROP CONSTRAINT assistant_grant_of_group",
        ),
    ]
