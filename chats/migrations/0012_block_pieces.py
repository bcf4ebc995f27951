import pgvector.django.halfvec
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models

from amber.lib.search.vector_arrays import VectorArrayField


class Migration(migrations.Migration):
    """What is ranked and shown of a block: single messages. Blocks there are get theirs in the
    background."""

    atomic = False

    dependencies = [("chats", "0011_operations_moved_out")]

    operations = [
        migrations.AddField(
            "messageblock",
            "pieces",
            ArrayField(base_field=models.BigIntegerField(), null=True, size=None),
        ),
        migrations.AddField(
            "messageblock",
            "piece_vectors",
            VectorArrayField(
                base_field=pgvector.django.halfvec.HalfVectorField(), null=True, size=None
            ),
        ),
        migrations.AddField(
            "messageblock",
            "index_version",
            models.PositiveSmallIntegerField(db_default=0, default=0),
        ),
        AddIndexConcurrently(
            "messageblock",
            models.Index(fields=["index_version"], name="block_index_version"),
        ),
    ]
