import django.contrib.postgres.fields
import django.db.models.deletion
from django.db import migrations, models

import amber.lib.ids


class Migration(migrations.Migration):
    """Vectors have their model's size, by a generated column and a reference to the pair."""

    dependencies = [
        ("libraries", "0004_library_deleted_at"),
        ("providers", "0002_embedding_model_size"),
    ]

    operations = [
        migrations.AddField(
            model_name="documentchunk",
            name="dimensions",
            field=models.GeneratedField(
                db_persist=True,
                expression=models.Func(models.F("vector"), function="vector_dims"),
                output_field=models.IntegerField(null=True),
            ),
        ),
        migrations.RunSQL(
            "ALTER TABLE libraries_documentchunk ADD CONSTRAINT chunk_vector_fits_model"
            " FOREIGN KEY (embedding_model_id, dimensions)"
            " REFERENCES providers_embeddingmodel (id, dimensions)",
            "ALTER TABLE libraries_documentchunk DROP CONSTRAINT chunk_vector_fits_model",
        ),
        migrations.CreateModel(
            name="VectorSurvey",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=amber.lib.ids.new_id,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
                ("chunk_count", models.PositiveIntegerField()),
                ("lifts", models.JSONField(default=dict)),
                (
                    "sample",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.UUIDField(), size=None
                    ),
                ),
                (
                    "embedding_model",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="providers.embeddingmodel",
                    ),
                ),
                (
                    "library",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="survey",
                        to="libraries.library",
                    ),
                ),
                (
                    "organization",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="accounts.organization",
                    ),
                ),
            ],
            options={"abstract": False},
        ),
    ]
