"""Follow a foreign key from a row that one may read to a row that one may not read by itself.

A chat names its assistant also after that was closed to the person: it is still shown, and an answer
under way is finished. So the assistant is read with the rights of the whole organization, in a
statement of its own where a join did not find it.
"""

from typing import Any

from django.core.exceptions import ObjectDoesNotExist
from django.db import models
from django.db.models.fields.related_descriptors import ForwardManyToOneDescriptor

from amber.lib.database.tenant import for_whole_organization


class _ReferenceAccessor(ForwardManyToOneDescriptor):  # type: ignore[type-arg]  # none at run time
    def __get__(self, instance: Any, cls: Any = None) -> Any:
        if instance is None:
            return super().__get__(instance, cls)
        known = self.field.get_cached_value(instance, default=None)
        # Without Django's checks: a long chat asks for the author of each answer.
        if known is not None:
            return known
        is_named = instance.__dict__.get(self.field.attname) is not None
        if is_named and self.is_cached(instance):  # a join, or a prefetch, did not find it
            self.field.delete_cached_value(instance)
        try:
            return super().__get__(instance, cls)
        except ObjectDoesNotExist:
            if not self.field.null:
                raise
            return None  # deleted since the row was read

    def get_object(self, instance: Any) -> Any:
        with for_whole_organization():
            return super().get_object(instance)


class ReferenceKey(models.ForeignKey[Any, Any]):
    """A foreign key to a row that is read, through it, with the rights of the whole organization."""

    forward_related_accessor_class = _ReferenceAccessor

    def deconstruct(self) -> Any:
        """Return what migrations note: for the database it is a foreign key like others."""
        name, _, args, kwargs = super().deconstruct()
        return name, "django.db.models.ForeignKey", args, kwargs
