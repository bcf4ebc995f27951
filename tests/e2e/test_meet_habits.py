"""What real servers do otherwise than OpenAI, in every way in which Amber is asked; docs/providers.md shows it."""

import json
import os
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from typing import Any

import pytest

from tests.e2e.kit.client import Client
from tests.habits import table
from tests.habits.asking import WAYS, verdict
from tests.habits.table import HABITS

pytestmark = pytest.mark.e2e

AT_ONCE = 12
Found = dict[str, dict[str, str]]


@pytest.fixture(scope="module")
def found(running_platform: Any, ann: Client) -> Found:
    """What went wrong, by model and way; "" where all holds."""
    running_platform.restore()

    def meet(pair: tuple[str, str]) -> str:
        model, way = pair
        try:
            return verdict(way, HABITS[model], WAYS[way](ann, model))
        except AssertionError as fault:
            return f"broken: {fault}"

    for model in HABITS:
        ann.assistant(model)
    pairs = list(product(HABITS, WAYS))
    with ThreadPoolExecutor(AT_ONCE) as pool:
        verdicts = dict(zip(pairs, pool.map(meet, pairs), strict=True))
    return {model: {way: verdicts[model, way] for way in WAYS} for model in HABITS}


@pytest.mark.parametrize("model", HABITS)
def test_holds_whichever_way_it_is_asked(found: Found, model: str) -> None:
    assert {way: fault for way, fault in found[model].items() if fault} == {}


def test_the_page_says_what_was_found(found: Found) -> None:
    made = table.written(found, list(WAYS))
    if os.environ.get("AMBER_WRITE_HABITS"):
        table.write(made)
    assert table.on_page() == made, "make habits writes it"


@pytest.mark.parametrize("model", [name for name, habit in HABITS.items() if habit.expected.said])
def test_operators_find_the_providers_words_in_the_log(
    running_platform: Any, found: Found, model: str
) -> None:
    said = HABITS[model].expected.said
    lines = running_platform.log.read_text(errors="replace").splitlines()
    mine = [
        json.loads(line) for line in lines if "provider_failed" in line and f'"{model}"' in line
    ]
    assert mine
    assert [line["said"] for line in mine if said not in line["said"]] == []
