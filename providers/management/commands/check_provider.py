"""Try a provider for real: a question, a round with a tool, an image, an embedding.

Ends with 1 if the question is not answered, or nothing can be asked, so that a monitor may run it.
`--list` names the provider's models, and `--add` adds some. Each check costs some tokens of the
provider's.
"""

from argparse import ArgumentParser
from collections.abc import Sequence
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from amber.lib.errors import AmberError
from amber.lib.secrets import DecryptError
from engine.provider.model import ProviderError
from providers import services
from providers.models import Provider
from providers.setup.checks import CheckResult, check_models, models_to_check
from providers.setup.listing import list_upstream, measure


class Command(BaseCommand):
    help = "Try a provider: a question, a tool round, an image, an embedding; or list its models."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name", help="The provider's name, as in the admin.")
        parser.add_argument("--model", default="", metavar="ALIAS", help="Only this model.")
        parser.add_argument("--list", action="store_true", help="Name the models it has instead.")
        parser.add_argument("--add", nargs="+", metavar="ID", help="Add these of its models.")

    def handle(self, *_: str, **options: Any) -> None:
        provider = Provider.objects.filter(name=options["name"]).first()
        if provider is None:
            known = ", ".join(Provider.objects.order_by("name").values_list("name", flat=True))
            raise CommandError(f"There is no provider {options['name']!r}, but: {known or 'none'}.")
        try:
            if options["add"]:
                self._add(provider, options["add"])
            elif options["list"]:
                self._list(provider)
            else:
                self._check(provider, options["model"])
        except DecryptError:
            raise CommandError(
                "Its key cannot be decrypted. Enter it again in the admin."
            ) from None
        except (AmberError, ProviderError) as error:
            raise CommandError(error.message) from None

    def _check(self, provider: Provider, alias: str) -> None:
        language, embedding = models_to_check(provider, alias)
        if language is None and embedding is None:
            raise CommandError("It has no such model. Add some with --add, or in the admin.")
        results = check_models(language, embedding)
        for result in results:
            self.stdout.write(_line(result))
        if not results[0].works:
            raise CommandError(f"The {results[0].kind} failed.")

    def _list(self, provider: Provider) -> None:
        for each in list_upstream(provider):
            mark = "added" if each.is_added else each.model.kind
            size = each.model.fields.get("context_tokens")
            told = f"{size:>12,} tokens" if size else ""
            self.stdout.write(f"{mark:<10}{each.model.upstream_id:<60}{told}".rstrip())

    def _add(self, provider: Provider, ids: Sequence[str]) -> None:
        listed = {each.model.upstream_id: each.model for each in list_upstream(provider)}
        if unknown := [each for each in ids if each not in listed]:
            raise CommandError(f"It does not name {', '.join(unknown)}. Use --list to see what.")
        rows = services.add_models(provider, measure(provider, [listed[each] for each in ids]))
        self.stdout.write("Added: " + (", ".join(row.alias for row in rows) or "none"))


def _line(result: CheckResult) -> str:
    first = "" if result.first_token_ms is None else f"first token {result.first_token_ms:,} ms, "
    outcome = "works" if result.works else "FAILS"
    speed = f"{first}{result.total_ms:,} ms"
    return f"{result.kind:<11} {outcome}  {result.model}  ({speed})  {result.detail}"
