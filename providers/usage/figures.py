"""Write numbers as people read them on operators' pages: 1,234,567, 1.2M, 0.0042."""

from decimal import Decimal
from typing import Final

_SIZES: Final = ((1_000_000_000, "B"), (1_000_000, "M"), (10_000, "k"))
"""From 10,000 on thousands are told as such; below, every digit is."""


def write_count(count: float) -> str:
    """Write a whole number with separators."""
    return f"{count:,.0f}"


def write_short(count: float) -> str:
    """Write a number in at most five characters or so, for axes and cards: 1.2M."""
    for size, letter in _SIZES:
        if count >= size:
            unit = 1_000 if letter == "k" else size
            return f"{count / unit:,.1f}".removesuffix(".0") + letter
    return f"{count:,.1f}".removesuffix(".0")


def write_cost(cost: Decimal | float | str) -> str:
    """Write an amount of money: with cents, and small ones with the first two digits that count."""
    amount = Decimal(cost)
    if not amount or abs(amount) >= Decimal("0.1"):
        return f"{amount:,.2f}"
    places = 1 - amount.adjusted()
    return f"{amount:.{places}f}".rstrip("0")
