import amber.lib.ids
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    """Grants to groups. References to pairs keep a library and a group of one organization."""

    dependencies = [
        ('accounts', '0008_groups'),
        ('libraries', '0010_file_api_key'),
        ('providers', '0004_usage_time'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='LibraryGrant',
            fields=[
                ('id', models.UUIDField(default=amber.lib.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('right', models.CharField(choices=[('use', 'Use'), ('edit', 'Use and edit')], default='use', max_length=4)),
            ],
        ),
        migrations.AddConstraint(
            model_name='library',
            constraint=models.UniqueConstraint(fields=('organization', 'id'), name='library_of_organization'),
        ),
        migrations.AddField(
            model_name='librarygrant',
            name='group',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='accounts.group'),
        ),
        migrations.AddField(
            model_name='librarygrant',
            name='library',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='grants', to='libraries.library'),
        ),
        migrations.AddField(
            model_name='librarygrant',
            name='organization',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='accounts.organization'),
        ),
        migrations.AddConstraint(
            model_name='librarygrant',
            constraint=models.UniqueConstraint(fields=('library', 'group'), name='one_library_grant'),
        ),
        migrations.RunSQL(
            "ALTER TABLE libraries_librarygrant ADD CONSTRAINT library_grant_of_row"
            " FOREIGN KEY (organization_id, library_id)"
            " REFERENCES libraries_library (organization_id, id) ON DELETE CASCADE",
            "ALTER TABLE libraries_librarygrant DROP CONSTRAINT library_grant_of_row",
        ),
        migrations.RunSQL(
            "ALTER TABLE libraries_librarygrant ADD CONSTRAINT library_grant_of_group"
            " FOREIGN KEY (organization_id, group_id)"
            " REFERENCES accounts_group (organization_id, id) ON DELETE CASCADE",
            "ALTER TABLE libraries_librarygrant DROP CONSTRAINT library_grant_of_group",
        ),
    ]
