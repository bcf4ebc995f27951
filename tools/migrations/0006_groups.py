import amber.lib.ids
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    """Grants to groups. References to pairs keep a tool and a group of one organization."""

    dependencies = [
        ('accounts', '0008_groups'),
        ('tools', '0005_pasted_documents'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='ToolGrant',
            fields=[
                ('id', models.UUIDField(default=amber.lib.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('right', models.CharField(choices=[('use', 'Use'), ('edit', 'Use and edit')], default='use', max_length=4)),
            ],
        ),
        migrations.AddConstraint(
            model_name='tool',
            constraint=models.UniqueConstraint(fields=('organization', 'id'), name='tool_of_organization'),
        ),
        migrations.AddField(
            model_name='toolgrant',
            name='group',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='accounts.group'),
        ),
        migrations.AddField(
            model_name='toolgrant',
            name='organization',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='accounts.organization'),
        ),
        migrations.AddField(
            model_name='toolgrant',
            name='tool',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='grants', to='tools.tool'),
        ),
        migrations.AddConstraint(
            model_name='toolgrant',
            constraint=models.UniqueConstraint(fields=('tool', 'group'), name='one_tool_grant'),
        ),
        migrations.RunSQL(
            "ALTER TABLE tools_toolgrant ADD CONSTRAINT tool_grant_of_row"
            " FOREIGN KEY (organization_id, tool_id)"
            " REFERENCES tools_tool (organization_id, id) ON DELETE CASCADE",
            "ALTER TABLE tools_toolgrant DROP CONSTRAINT tool_grant_of_row",
        ),
        migrations.RunSQL(
            "ALTER TABLE tools_toolgrant ADD CONSTRAINT tool_grant_of_group"
            " FOREIGN KEY (organization_id, group_id)"
            " REFERENCES accounts_group (organization_id, id) ON DELETE CASCADE",
            "ALTER TABLE tools_toolgrant DROP CONSTRAINT tool_grant_of_group",
        ),
    ]
