"""Number the passages that a turn may cite, whatever found them."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tools.citable import CitablePassages


def found(*names: str) -> list[dict[str, Any]]:
    """Return passages numbered from 1, as a search numbers them."""
    return [place(n, name, 0, 9) for n, name in enumerate(names, 1)]


def place(number: int, document: str, start: int, end: int) -> dict[str, Any]:
    return {"number": number, "document": {"id": document}, "start": start, "end": end}


def named(passages: Any) -> dict[int, str]:
    return {each["number"]: each["document"]["id"] for each in passages}


def test_numbers_go_on_from_what_is_known():
    citable = CitablePassages(found("a", "b"))
    assert named(citable.number(found("c", "d"))) == {3: "c", 4: "d"}
    assert named(citable) == {1: "a", 2: "b", 3: "c", 4: "d"}


def test_a_passage_found_again_keeps_its_number():
    citable = CitablePassages(found("a", "b"))
    assert named(citable.number(found("c", "b"))) == {3: "c", 2: "b"}
    assert named(citable.number(found("c", "a"))) == {3: "c", 1: "a"}


def test_another_part_of_the_same_text_is_another_passage():
    citable = CitablePassages([place(1, "a", 0, 9)])
    (again, other) = citable.number([place(1, "a", 0, 9), place(2, "a", 5, 30)])
    assert (again["number"], other["number"]) == (1, 2)


def test_what_was_known_is_not_replaced():
    citable = CitablePassages(found("a"))
    citable.keep(found("b"))
    assert named(citable) == {1: "a"}


def test_calls_at_once_share_the_numbers():
    citable = CitablePassages()
    names = [f"passage {n}" for n in range(400)]
    with ThreadPoolExecutor(8) as threads:
        parts = [names[n : n + 10] for n in range(0, 400, 10)]
        list(threads.map(lambda part: citable.number(found(*part)), parts))
    assert sorted(named(citable)) == list(range(1, 401))
    assert sorted(named(citable).values()) == sorted(names)
