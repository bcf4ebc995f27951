"""Write numbers as people read them on operators' pages, in their language: 1,234,567, 1.2M, 0.0042."""

from decimal import Decimal
from typing import Final

from amber.lib.operator_pages.cells import write_number

_SIZES: Final = ((1_000_000_000, "B"), (1_000_000, "M"), (10_000, "k"))
"""From 10,000 on thousands are told as such; below, every digit is."""


def write_count(count: float) -> str:
    """Write a whole number with separators."""
    return write_number(count, 0)


def write_short(count: float) -> str:
    """Write a number in at most five characters or so, for axes and cards: 1.2M."""
    for size, letter in _SIZES:
        if count >= size:
            unit = 1_000 if letter == "k" else size
            return _write_tenths(count / unit) + letter
    return _write_tenths(count)


def _write_tenths(number: float) -> str:
    tenths = round(number, 1)
    return write_number(tenths, 0 if tenths == int(tenths) else 1)


def write_cost(cost: Decimal | float | str) -> str:
    """Write an amount of money: with cents, and small ones with the first two digits that count."""
    amount = Decimal(cost)
    if not amount or abs(amount) >= Decimal("0.1"):
        return write_number(amount, 2)
    return write_number(round(amount, 1 - amount.adjusted()))
