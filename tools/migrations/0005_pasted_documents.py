import amber.lib.ids
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0001_initial'),
        ('tools', '0004_declined_calls'),
    ]

    operations = [
        migrations.CreateModel(
            name='PastedDocument',
            fields=[
                ('id', models.UUIDField(default=amber.lib.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('text', models.TextField()),
                ('organization', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='accounts.organization')),
                ('tool', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='pasted', to='tools.tool')),
            ],
            options={
                'abstract': False,
            },
        ),
    ]
