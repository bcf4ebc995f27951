"""Let the names of tables, columns and choices be translated.

They are written once, in English, where models are defined; most are the column's own name. Here each is
replaced by one that is looked up when it is shown. Migrations do not see it: they go by what is written.
"""

from typing import Any

from django.apps import AppConfig
from django.db import models
from django.utils.translation import gettext_lazy


def translate_names(apps: list[AppConfig]) -> None:
    for app in apps:
        app.verbose_name = gettext_lazy(str(app.verbose_name))
        for model in _models(app):
            meta = model._meta
            meta.verbose_name = gettext_lazy(str(meta.verbose_name))
            meta.verbose_name_plural = gettext_lazy(str(meta.verbose_name_plural))
            for field in _fields(model):
                _translate(field)


def _models(app: AppConfig) -> list[Any]:
    return list(app.get_models(include_auto_created=True))


def _fields(model: Any) -> list[Any]:
    return [*model._meta.local_fields, *model._meta.local_many_to_many]


def _translate(field: "models.Field[Any, Any]") -> None:
    field.verbose_name = gettext_lazy(str(field.verbose_name))
    if field.help_text:
        field.help_text = gettext_lazy(str(field.help_text))
    if field.choices:
        field.choices = [(value, gettext_lazy(str(label))) for value, label in field.flatchoices]
