"""Import Git repositories as a worker does, and say what came of it."""

from typing import Any

from amber.lib.workers.worker import Worker
from libraries.git import importing
from libraries.models import Document, Repository
from libraries.tests.ledger import ALL, ingest
from tests.fixtures.personas import Persona, api

FILES = {
    "README.md": "# Pumps\n\nThe pump P-102 is blue.",
    "docs/valve.md": "# Valves\n\nThe valve turns left.",
    "src/pump.py": "def pump():\n    return 'P-102'\n",
}


def ask(persona: Persona, library: Any, url: str, **more: Any) -> Any:
    return api(persona).post(f"{ALL}{library.pk}/import/", {"git_url": url, **more})


def claimed(worker: str = "w1") -> Any:
    return importing.claim(Worker(worker))


def work() -> Any:
    """A worker imports what waits; the one repository as it is then."""
    while (repository := claimed()) is not None:
        importing.run(repository)
    return Repository.objects.order_by("-updated_at").first()


def imported(persona: Persona, library: Any, url: str, **more: Any) -> Any:
    answer = ask(persona, library, url, **more)
    assert answer.status_code == 202, answer.content
    return work()


def texts(library: Any) -> dict[str, str]:
    ingest()
    return dict(Document.objects.filter(library=library).values_list("path", "text"))
