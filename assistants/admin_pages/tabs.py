"""Say what lies on which tab of an assistant's page, and count the mistakes on each."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from django.utils.translation import gettext_lazy as _l


@dataclass(frozen=True, slots=True)
class Tab:
    """One tab: `fields` of the form, and the models of the inner rows that follow them."""

    slug: str
    title: Any
    fields: Sequence[str | tuple[str, ...]]
    inner: Sequence[str] = ()
    words: Any = ""


TABS: Final = (
    Tab(
        "basics",
        _l("Basics"),
        (
            *("organization", "user", "name", "slug", "description"),
            *("greeting", "suggested_questions", "prompt", "disable_default_prompt"),
        ),
    ),
    Tab("model", _l("Model"), ("model", ("temperature", "top_p"), "hide_reasoning")),
    Tab(
        "tools",
        _l("Tools"),
        ("builtin_tools", "disable_web_browsing", "untrusted_calls"),
        ("AssistantTool",),
    ),
    Tab(
        "library",
        _l("Library"),
        ("library", "disable_memory", "enable_memory_for_assistant_api"),
    ),
    Tab(
        "scenes",
        _l("Scenes"),
        (),
        ("ScenePrompt",),
        _l("A scene adds a prompt of its own, and other sampling, to questions of one kind."),
    ),
    Tab(
        "access",
        _l("Access"),
        ("shared", "public", "public_origins", "guest_files"),
        ("AssistantGrant",),
    ),
    Tab("quality", _l("Quality"), ("tokens_used",)),
)


@dataclass(slots=True)
class DrawnTab:
    """A tab with its part of the form. `panels` are what other apps have to show there."""

    slug: str
    title: Any
    words: Any
    fieldset: Any = None
    formsets: list[Any] = field(default_factory=list)
    panels: list[Any] = field(default_factory=list)
    mistakes: int = 0


def draw_tabs(admin_form: Any, formsets: Iterable[Any]) -> list[DrawnTab]:
    """Return the tabs with the fields and the inner rows that lie on them, and their mistakes."""
    fieldsets = {str(each.name): each for each in admin_form}
    by_model = {each.opts.model.__name__: each for each in formsets}
    return [
        DrawnTab(
            tab.slug,
            tab.title,
            tab.words,
            fieldsets.get(str(tab.title)) if tab.fields else None,
            inner := [by_model[name] for name in tab.inner if name in by_model],
            mistakes=_mistakes_in(tab.fields, admin_form.form.errors)
            + sum(map(_mistakes_of, inner)),
        )
        for tab in TABS
    ]


def _mistakes_in(fields: Iterable[str | tuple[str, ...]], errors: Any) -> int:
    names = [name for each in fields for name in ([each] if isinstance(each, str) else each)]
    return sum(name in errors for name in names)


def _mistakes_of(formset: Any) -> int:
    inner = formset.formset
    return sum(len(each) for each in inner.errors) + len(inner.non_form_errors())
