import django.db.models.deletion
from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    """Whether a library has a content is asked at each upload. Three indexes go that others begin with."""

    atomic = False

    dependencies = [("libraries", "0007_search_storage")]

    operations = [
        AddIndexConcurrently(
            model_name="document",
            index=models.Index(fields=["library", "content_hash"], name="document_library_hash"),
        ),
        migrations.AlterField(
            model_name="document",
            name="library",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="documents",
                to="libraries.library",
            ),
        ),
        migrations.AlterField(
            model_name="documentchunk",
            name="document",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="chunks",
                to="libraries.document",
            ),
        ),
        migrations.AlterField(
            model_name="documentchunk",
            name="library",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="+",
                to="libraries.library",
            ),
        ),
    ]
