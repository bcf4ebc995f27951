"""Count what the admin's pages cost with many organizations: statements, and time of the processor.

    python -m bench.admin_pages [--organizations 1000] [--rows 60]

It fills a database of its own and asks for each page in this process, without a server around it:
the figures are the page's, templates and database client included, Postgres' own work left out.
"""

import argparse
import logging
import statistics
import time
from collections.abc import Iterator
from typing import Any, Final

from bench.loadgen import say
from tests import services

ROUNDS: Final = 5
GOAL_STATEMENTS: Final = 12
GOAL_MS: Final = 120


def main() -> None:
    options = _options()
    services.start()
    import tests.fixtures.setup_django  # noqa: F401  # Django reads the addresses of the servers just started

    say(f"{'page':60} statements  ms of CPU")
    costs = {path: _measure(client, path) for client, path in _pages(options)}
    for path, (statements, cpu_ms) in sorted(costs.items(), key=lambda each: -each[1][1]):
        say(f"{path:60} {statements:10} {cpu_ms:10.0f}")
    say(_summary(costs))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--organizations", type=int, default=1_000)
    parser.add_argument("--rows", type=int, default=60, help="of each kind in one of them")
    return parser.parse_args()


def _pages(options: argparse.Namespace) -> Iterator[tuple[Any, str]]:
    """Yield the addresses of all lists, of forms to add, and of a row's form of every kind."""
    from django.contrib import admin
    from django.core.management import call_command
    from django.test import Client
    from django.urls import get_resolver, reverse

    from accounts.models import Organization, User
    from tests.admin.crowd import furnish

    assert get_resolver().url_patterns, "the URLconf registers the pages"
    call_command("migrate", verbosity=0)
    furnish(organizations=options.organizations, rows=options.rows)
    client = Client(SERVER_NAME="localhost")
    client.force_login(User.objects.create_superuser("operator@example.com"))
    logging.disable(logging.WARNING)  # each page that nobody may add rows by
    yield client, reverse("admin:index")
    first = Organization.objects.get(slug="org-0")
    for model in admin.site._registry:
        name = f"admin:{model._meta.app_label}_{model._meta.model_name}"
        yield client, reverse(f"{name}_changelist")
        rows = model._base_manager.order_by("-pk")
        if any(field.name == "organization" for field in model._meta.concrete_fields):
            rows = rows.filter(organization=first)
        row: Any = first if model is Organization else rows.first()
        pages = [reverse(f"{name}_add")]
        pages += [reverse(f"{name}_change", args=[row.pk])] if row else []
        yield from ((client, each) for each in pages if client.get(each).status_code == 200)


def _measure(client: Any, path: str) -> tuple[int, float]:
    """Return a page's statements and the median of its milliseconds, after it was asked for once."""
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    with CaptureQueriesContext(connection) as statements:
        client.get(path)
    counted = sum("SAVEPOINT" not in each["sql"] for each in statements)
    spent = []
    for _ in range(ROUNDS):
        before = time.process_time()
        client.get(path)
        spent.append((time.process_time() - before) * 1_000)
    return counted, statistics.median(spent)


def _summary(costs: dict[str, tuple[int, float]]) -> str:
    statements = max(each for each, _ in costs.values())
    cpu_ms = [each for _, each in costs.values()]
    return (
        f"{len(costs)} pages: at most {statements} statements (goal {GOAL_STATEMENTS}), CPU median "
        f"{statistics.median(cpu_ms):.0f} ms, at most {max(cpu_ms):.0f} ms (goal {GOAL_MS})"
    )


if __name__ == "__main__":
    main()
