import amber.lib.ids
import django.db.models.deletion
import django.db.models.functions.text
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    """Groups, whose members are members of the organization: references to pairs hold them to it."""

    dependencies = [
        ('accounts', '0007_audit_log'),
    ]

    operations = [
        migrations.CreateModel(
            name='Group',
            fields=[
                ('id', models.UUIDField(default=amber.lib.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('name', models.CharField(max_length=200)),
                ('description', models.TextField(blank=True, default='')),
                ('organization', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='accounts.organization')),
            ],
        ),
        migrations.CreateModel(
            name='GroupMember',
            fields=[
                ('id', models.UUIDField(default=amber.lib.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('group', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='members', to='accounts.group')),
                ('organization', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='accounts.organization')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
        ),
        migrations.AddConstraint(
            model_name='group',
            constraint=models.UniqueConstraint(models.F('organization'), django.db.models.functions.text.Lower('name'), name='one_group_name'),
        ),
        migrations.AddConstraint(
            model_name='group',
            constraint=models.UniqueConstraint(fields=('organization', 'id'), name='group_of_organization'),
        ),
        migrations.AddConstraint(
            model_name='groupmember',
            constraint=models.UniqueConstraint(fields=('group', 'user'), name='once_in_a_group'),
        ),
        migrations.RunSQL(
            "ALTER TABLE accounts_groupmember ADD CONSTRAINT group_member_is_member"
            " FOREIGN KEY (organization_id, user_id)"
            " REFERENCES accounts_membership (organization_id, user_id) ON DELETE CASCADE",
            "ALTER TABLE accounts_groupmember DROP CONSTRAINT group_member_is_member",
        ),
        migrations.RunSQL(
            "ALTER TABLE accounts_groupmember ADD CONSTRAINT group_member_of_organization"
            " FOREIGN KEY (organization_id, group_id)"
            " REFERENCES accounts_group (organization_id, id) ON DELETE CASCADE",
            "ALTER TABLE accounts_groupmember DROP CONSTRAINT group_member_of_organization",
        ),
    ]
