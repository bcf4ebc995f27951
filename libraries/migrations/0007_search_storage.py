import django.contrib.postgres.indexes
from django.db import migrations


class Migration(migrations.Migration):
    """Vectors lie in the row: comparing a library's chunks need not fetch each from elsewhere.

    Words are put into their index at once: with a list of pending ones each word of each question
    would read that list.
    """

    dependencies = [("libraries", "0006_guest_files")]

    operations = [
        migrations.RunSQL(
            "ALTER TABLE libraries_documentchunk ALTER COLUMN vector SET STORAGE MAIN",
            "ALTER TABLE libraries_documentchunk ALTER COLUMN vector SET STORAGE EXTERNAL",
        ),
        migrations.RunSQL(
            "ALTER INDEX chunk_search SET (fastupdate = off)",
            "ALTER INDEX chunk_search RESET (fastupdate)",
            state_operations=[
                migrations.RemoveIndex(model_name="documentchunk", name="chunk_search"),
                migrations.AddIndex(
                    model_name="documentchunk",
                    index=django.contrib.postgres.indexes.GinIndex(
                        fastupdate=False, fields=["search"], name="chunk_search"
                    ),
                ),
            ],
        ),
    ]
