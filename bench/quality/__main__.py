"""Measure what is found, not how fast: `make bench-quality`.

Each measure goes through the code that answers people: rows in Postgres, the real search. It compares
with plain methods over the same texts in the same run (BM25, vectors alone, both by reciprocal ranks),
and counts the tokens used. It downloads nothing: data sets are the caller's, in their usual forms; what
comes with Amber is made here, from fixed seeds. Tables go to the screen, and as JSON to var/quality/.
"""

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

import django

from bench.loadgen import say
from bench.quality.options import EmbedderOption, QualityOptions
from bench.quality.tables import Table
from bench.stand import ROOT


def measures() -> dict[str, Callable[[QualityOptions], Sequence[Table]]]:
    """Return what can be measured, by name. Imported late: these modules have models."""
    from bench.quality import chats, libraries, memories, over_rest

    return {
        "chats": chats.measure,
        "rest": over_rest.measure,
        "libraries": libraries.measure,
        "memories": memories.measure,
    }


def main() -> int:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "amber.settings")
    django.setup()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    known = measures()
    options = _options(sorted(known))
    chosen = options.only or list(known)
    given = QualityOptions(
        locomo=options.locomo,
        sets=options.set,
        chroma=options.chroma,
        quick=options.quick,
        embedder=_embedder(options.embedder),
    )
    tables: dict[str, list[Table]] = {}
    for name in chosen:
        say(f"{name}:")
        tables[name] = list(known[name](given))
        for table in tables[name]:
            say(f"\n{table.as_text()}")
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / f"{datetime.now(UTC):%Y-%m-%dT%H%M%SZ}.json"
    found = {name: [asdict(table) for table in some] for name, some in tables.items()}
    path.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    say(f"\nWritten to {path}")
    return 0


def _embedder(given: Sequence[str] | None) -> EmbedderOption | None:
    if not given:
        return None
    url, model, dimensions = given
    return EmbedderOption(url, model, int(dimensions))


def _options(names: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.quality", description=__doc__)
    parser.add_argument("--only", action="append", choices=names, help="may be given repeatedly")
    parser.add_argument("--quick", action="store_true", help="less of everything")
    parser.add_argument("--locomo", type=Path, help="conversations in LoCoMo's JSON")
    parser.add_argument(
        "--embedder",
        nargs=3,
        metavar=("URL", "MODEL", "DIMENSIONS"),
        help="a model that speaks OpenAI's protocol; its key is OPENAI_API_KEY",
    )
    parser.add_argument(
        "--set",
        action="append",
        type=Path,
        default=[],
        help="questions with documents: SQuAD's JSON or a BEIR folder; may be given repeatedly",
    )
    parser.add_argument(
        "--chroma",
        action="append",
        type=Path,
        default=[],
        help="a folder with Chroma's questions_df.csv and corpora; may be given repeatedly",
    )
    parser.add_argument("--out", type=Path, default=ROOT / "var" / "quality")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
