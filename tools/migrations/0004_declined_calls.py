from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('tools', '0003_refresh_attempts'),
    ]

    operations = [
        migrations.AlterField(
            model_name='toolcallrecord',
            name='outcome',
            field=models.CharField(choices=[('ok', 'Ok'), ('refused', 'Refused'), ('failed', 'Failed'), ('timeout', 'Timeout'), ('declined', 'Declined')], max_length=10),
        ),
    ]
