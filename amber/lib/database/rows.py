"""What every row has: a UUIDv7 made here, and when it was made and changed."""

from django.db import models

from amber.lib.ids import new_id


class Row(models.Model):
    """Abstract. `created_at` and `updated_at` are aware; bulk writers set `updated_at` themselves."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        abstract = True
