"""Give every row a UUIDv7, made here, and the times when it was created and changed."""

from django.db import models

from amber.lib.ids import new_id


class Row(models.Model):
    """A row; abstract. The times are aware; bulk writers set `updated_at` themselves."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        abstract = True
