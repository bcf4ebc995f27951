"""Measure how well search finds what it should in a library (docs/retrieval.md).

With --load the set's documents are put into the library first and indexed by this process. The
library is surveyed before it is searched, as the periodic job would do later.
"""

import json
import time
from argparse import ArgumentParser
from pathlib import Path
from typing import Any, Final

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError

from amber.lib.database.tenant import Tenant, as_tenant
from amber.lib.errors import AmberError
from amber.lib.workers.worker import this_worker
from libraries.embedding.vector_index import tend_indexes
from libraries.ingestion import indexing, intake
from libraries.models import Document, DocumentStatus, Library
from libraries.retrieval.evaluation import DEPTHS, Evaluation, EvaluationResult, evaluate, summary
from libraries.retrieval.question_sets import QuestionSet, QuestionSetError, read_question_set
from libraries.retrieval.search import BOTH_RETRIEVERS
from libraries.retrieval.survey import survey

WORK_SECONDS: Final = 5.0
PAUSE_SECONDS: Final = 0.2
"""Pause while another worker has the last documents, or a provider limits requests."""


class Command(BaseCommand):
    help = "Measure search in a library with a file of questions; print a table, write JSON."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("library", help="The id of the library.")
        parser.add_argument("questions", type=Path, help="A JSON file, or a BEIR folder.")
        parser.add_argument("--load", action="store_true", help="Load the set's documents first.")
        parser.add_argument(
            "--retrievers",
            "--arms",
            choices=["both", *BOTH_RETRIEVERS, "each"],
            default="each",
            help="Which retrievers to measure. Default: each of them, and both together.",
        )
        parser.add_argument("--out", type=Path, help="Where to write the JSON.")

    def handle(self, *_: str, **options: Any) -> None:
        try:
            questions = read_question_set(options["questions"])
            library = _library(options["library"])
            if options["load"]:
                load(library, questions)
            if not questions.questions:
                raise QuestionSetError("The file has no questions.")
            library.refresh_from_db()
            tend_indexes()
            survey(library)
            with as_tenant(Tenant(library.organization_id, is_whole=True)):
                outcomes = {
                    name: evaluate(library, questions.questions, retrievers=retrievers)
                    for name, retrievers in _retrievers(options["retrievers"]).items()
                }
        except (QuestionSetError, AmberError) as error:
            raise CommandError(str(error)) from error
        self._tell(outcomes, options["out"])

    def _tell(self, outcomes: dict[str, list[EvaluationResult]], out: Path | None) -> None:
        found = {name: summary(each) for name, each in outcomes.items()}
        self.stdout.write(table(found))
        if out is not None:
            said = {
                name: {**found[name].as_json(), "outcomes": [_outcome(o) for o in outcomes[name]]}
                for name in found
            }
            out.write_text(json.dumps(said, indent=1, ensure_ascii=False) + "\n")


def _retrievers(chosen: str) -> dict[str, tuple[str, ...]]:
    each = {"both": BOTH_RETRIEVERS, **{name: (name,) for name in BOTH_RETRIEVERS}}
    return each if chosen == "each" else {chosen: each[chosen]}


def _library(pk: str) -> Library:
    related = ("embedding_model__provider",)
    rows = Library.objects.filter(deleted_at=None).select_related(*related)
    try:
        found: Library | None = rows.filter(pk=pk).first()
    except ValidationError:
        found = None
    if found is None:
        raise CommandError(f"There is no library {pk}.")
    return found


def load(library: Library, questions: QuestionSet) -> None:
    """Put the documents in and index them until none waits. Raises QuestionSetError."""
    for each in questions.documents:
        if each.text.strip():
            data = each.text.encode()
            given = intake.DocumentSource(
                name=each.name, data=data, path=each.path, mime_type="text/plain"
            )
            intake.put(library, given)
    waiting = Document.objects.filter(
        library=library, status__in=[DocumentStatus.QUEUED, DocumentStatus.RUNNING]
    )
    while waiting.exists():
        if not indexing.index_waiting(this_worker(), seconds=WORK_SECONDS):
            time.sleep(PAUSE_SECONDS)
    failed = Document.objects.filter(library=library, status=DocumentStatus.FAILED).first()
    if failed is not None:
        raise QuestionSetError(f"{failed.path} could not be indexed: {failed.error}")


def table(found: dict[str, Evaluation]) -> str:
    heads = [
        "retrievers",
        "questions",
        *(f"recall@{k}" for k in DEPTHS),
        "MRR",
        "nDCG@10",
        "ms",
        "p95 ms",
    ]
    rows = [heads] + [
        [
            name,
            str(each.questions),
            *(f"{each.recall[k]:.1f}" for k in DEPTHS),
            f"{each.mrr:.3f}",
            f"{each.ndcg_10:.3f}",
            f"{each.latency_ms_median:.1f}",
            f"{each.latency_ms_p95:.1f}",
        ]
        for name, each in found.items()
    ]
    widths = [max(len(row[place]) for row in rows) for place in range(len(heads))]
    return "\n".join(
        "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        for row in rows
    )


def _outcome(outcome: EvaluationResult) -> dict[str, Any]:
    return {
        "question": outcome.question,
        "expected": dict(outcome.grades),
        "found": list(outcome.found),
        "latency_ms": round(outcome.latency_ms, 2),
        "best_relevance": round(outcome.best_relevance, 4),
    }
