"""Find the texts that people read, and keep the files with their translations.

`python -m tests.house.messages` brings `amber/locale/*/LC_MESSAGES/django.po` up to date, which a person then fills in,
and compiles it. Nothing but Python is needed: templates are read by Django's own `templatize`, code by Babel.
Django and allauth bring translations of most of their own texts; what they lack is ours, and so are all of Unfold's.
"""

import ast
import base64
import io
import os
import re
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import allauth
import django
import unfold
from babel.messages.catalog import Catalog, Message
from babel.messages.extract import extract
from babel.messages.mofile import read_mo, write_mo
from babel.messages.pofile import read_po, write_po
from django.apps import AppConfig, apps
from django.contrib import admin
from django.urls import get_resolver
from django.utils import translation
from django.utils.translation.template import templatize

from amber.apps import is_own, is_shown

ROOT: Final = Path(__file__).resolve().parents[2]
APPS: Final = (
    *("accounts", "amber", "assistants", "chats", "libraries", "memory"),
    *("operations", "providers", "public_api", "tools"),
)
LOCALES: Final = {
    name: ROOT / "amber" / "locale" / name / "LC_MESSAGES" / "django.po"
    for name in ("zh_Hans", "de")
}
_ENVIRONMENT: Final = {
    "DJANGO_SETTINGS_MODULE": "amber.settings",
    "DATABASE_URL": "postgresql:///none",
    "AMBER_SECRET_KEYS": base64.b64encode(bytes(32)).decode(),
}
"""Enough to know the models; nothing is asked of a database."""
_OF_DJANGO: Final = ("conf", "contrib/admin", "contrib/auth")
_NOT_SHOWN: Final = {"tests", "migrations"}
_KEYWORDS: Final = {
    **dict.fromkeys(("_", "_l", "gettext", "gettext_lazy", "gettext_noop")),
    **dict.fromkeys(("ngettext", "ngettext_lazy"), (1, 2)),
}
_CALL: Final = re.compile(
    r"\b(?:_|n?gettext)\(((?:u?'(?:\\.|[^'\\])*'|u?\"(?:\\.|[^\"\\])*\"|[\s,]|count)+)\)"
)
Text = str | tuple[str, ...]
"""What is translated: a text, or its singular and plural."""


def texts() -> set[Text]:
    """Every text of ours, and of Unfold's and Django's what nobody else translates."""
    ours = {text for app in APPS for text in _texts_under(ROOT / app)}
    ours |= set(_names(is_own))
    others = _texts_of_unfold() | _texts_of_django() | set(_names(is_shown))
    return {text for text in ours | (others - _translated_elsewhere()) if text}


def catalogue_of(path: Path) -> Catalog:
    with path.open("rb") as file:
        return read_po(file, locale=path.parts[-3])


def compiled(catalogue: Catalog) -> bytes:
    written = io.BytesIO()
    write_mo(written, catalogue)
    return written.getvalue()


def compiled_path(path: Path) -> Path:
    return path.with_suffix(".mo")


def write(path: Path, translated: dict[Text, Text]) -> None:
    """Write the catalogue of all texts with these translations, sorted and without places: they move too often."""
    catalogue = Catalog(path.parts[-3], header_comment="# Amber's texts.", fuzzy=False)
    catalogue.creation_date = catalogue.revision_date = datetime(
        2026, 11, 23, tzinfo=UTC
    )  # or each run differs
    for text in texts():
        catalogue.add(text, translated.get(text, ""))
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        write_po(file, catalogue, sort_output=True, width=110, omit_header=False, no_location=True)
    compiled_path(path).write_bytes(compiled(catalogue_of(path)))


def translations_of(path: Path) -> dict[Text, Text]:
    if not path.exists():
        return {}
    said = {_text_of(each): each.string or "" for each in catalogue_of(path) if each.id}
    return {text: form if isinstance(form, str) else tuple(form) for text, form in said.items()}


def _text_of(message: Message) -> Text:
    return message.id if isinstance(message.id, str) else tuple(message.id)


def _texts_under(folder: Path) -> Iterator[Text]:
    for path in sorted(folder.rglob("*")):
        if _NOT_SHOWN & set(path.relative_to(folder).parts):
            continue
        if path.suffix == ".py":
            yield from _texts_of_code(path)
        elif "templates" in path.parts and path.suffix in (".html", ".txt"):
            yield from _texts_of_template(path.read_text())


def _texts_of_code(path: Path) -> Iterator[Text]:
    with path.open("rb") as file:
        for _, message, _, _ in extract("python", file, _KEYWORDS):
            yield message


def _texts_of_template(text: str) -> Iterator[Text]:
    for found in _CALL.finditer(templatize(text)):
        said = ast.literal_eval(f"[{found[1].removesuffix('count)').removesuffix('count')}]")
        yield tuple(said) if len(said) > 1 else said[0]


def _names(is_meant: Callable[[AppConfig], bool]) -> Iterator[str]:
    """The names of these apps, of their tables that the admin shows, and of their columns and choices."""
    assert get_resolver().url_patterns, "the URLconf registers the pages"
    shown: set[Any] = set()
    for model, pages in admin.site._registry.items():
        shown |= {model, *(inline.model for inline in pages.inlines)}
    named = [app for app in apps.get_app_configs() if is_meant(app)]
    with translation.override("en"):
        yield from (str(app.verbose_name) for app in named)
        for model in shown.intersection(model for app in named for model in app.get_models(True)):
            yield from _names_in(model._meta)


def _names_in(meta: Any) -> Iterator[str]:
    """What `amber.languages.model_names` lets be translated of one table."""
    yield from map(str, (meta.verbose_name, meta.verbose_name_plural))
    for field in (*meta.local_fields, *meta.local_many_to_many):
        yield from map(str, (field.verbose_name, field.help_text))
        yield str(field.verbose_name).removesuffix(" id")  # as columns are headed
        yield from (str(label) for _, label in field.flatchoices)


def _texts_of_unfold() -> set[Text]:
    """Those of its pages; of its extensions only that for filters is installed."""
    folder = Path(unfold.__file__).parent
    templates = (folder / "templates").rglob("*.html")
    extensions, filters = folder / "contrib", folder / "contrib" / "filters"
    modules = {*folder.rglob("*.py")} - {*extensions.rglob("*.py")} | {*filters.rglob("*.py")}
    found = {text for path in templates for text in _texts_of_template(path.read_text())}
    return found | {text for path in modules for text in _texts_of_code(path)}


def _texts_of_django() -> set[Text]:
    """Those of forms, of the admin and of accounts."""
    folder = Path(django.__file__).parent
    files = (folder / part / "locale/en/LC_MESSAGES/django.po" for part in _OF_DJANGO)
    return {_text_of(each) for path in files for each in catalogue_of(path) if each.id}


def _translated_elsewhere() -> set[Text]:
    """What Django and allauth translate into each of our languages."""
    packages = [Path(str(package.__file__)).parent for package in (django, allauth)]
    return set.intersection(*(_translated_by(packages, name) for name in LOCALES))


def _translated_by(packages: list[Path], locale: str) -> set[Text]:
    files = (path for at in packages for path in at.rglob(f"{locale}/LC_MESSAGES/django.mo"))
    return {_text_of(each) for path in files for each in _messages_in(path) if each.string}


def _messages_in(path: Path) -> Catalog:
    with path.open("rb") as file:
        return read_mo(file)


def main() -> None:
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    django.setup()
    for path in LOCALES.values():
        write(path, translations_of(path))
        missing = [text for text, said in translations_of(path).items() if not "".join(said)]
        lines = [f"{path.relative_to(ROOT)}: {len(missing)} texts without a translation"]
        sys.stdout.write("\n  ".join([*lines, *map(repr, missing)]) + "\n")


if __name__ == "__main__":
    main()
