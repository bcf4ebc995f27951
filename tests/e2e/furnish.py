"""Makes a model for each behaviour of the fake provider, named as it: a script with Django.

`python -m tests.e2e.furnish`, after `manage.py bootstrap` with OPENAI_BASE_URL at the fake one.
"""

import django


def main() -> None:
    django.setup()
    from providers.models import LanguageModel, Provider
    from tests.fake_behaviours import BEHAVIOURS

    provider = Provider.objects.get(models__default=True)
    names = [name + suffix for name in BEHAVIOURS for suffix in ("", "-once")]
    LanguageModel.objects.bulk_create(
        (LanguageModel(provider=provider, alias=name, upstream_id=name) for name in names),
        ignore_conflicts=True,
    )


if __name__ == "__main__":
    main()
