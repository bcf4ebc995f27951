from django.db import migrations, models


class Migration(migrations.Migration):
    """The pair that vectors refer to, so that they have their model's size."""

    dependencies = [("providers", "0001_initial")]

    operations = [
        migrations.AddConstraint(
            model_name="embeddingmodel",
            constraint=models.UniqueConstraint(
                fields=["id", "dimensions"], name="embedding_model_size"
            ),
        ),
    ]
