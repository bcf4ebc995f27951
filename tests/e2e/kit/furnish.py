"""Makes a language model for each behaviour and habit of the fake provider, named as it, one that sees images and
says what it was sent (`fake-vision`), and an embedding model: a script with Django.

`python -m tests.e2e.kit.furnish`, after `manage.py bootstrap` with OPENAI_BASE_URL at the fake one.
"""

import django


def main() -> None:
    django.setup()
    from providers.models import EmbeddingModel, LanguageModel, Provider
    from tests.fakes.behaviours import BEHAVIOURS
    from tests.habits.table import HABITS

    provider = Provider.objects.get(models__default=True)
    names = [name + suffix for name in BEHAVIOURS for suffix in ("", "-once")]
    LanguageModel.objects.bulk_create(
        (LanguageModel(provider=provider, alias=name, upstream_id=name) for name in names),
        ignore_conflicts=True,
    )
    LanguageModel.objects.bulk_create(
        (
            LanguageModel(
                provider=provider, alias=name, upstream_id=habit.upstream or name, **habit.row
            )
            for name, habit in HABITS.items()
        ),
        ignore_conflicts=True,
    )
    LanguageModel.objects.get_or_create(
        alias="fake-vision",
        defaults={"provider": provider, "upstream_id": "fake-echo", "vision": True},
    )
    EmbeddingModel.objects.get_or_create(
        alias="fake-embedding",
        defaults={"provider": provider, "upstream_id": "fake-embedding", "dimensions": 64},
    )


if __name__ == "__main__":
    main()
