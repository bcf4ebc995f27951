"""Measure what composing a turn's context costs in chats of 100 to 100,000 messages, and its
recall."""

from bench.loadgen import say
from bench.report import Finding
from bench.stand import Stand

SIZES = (100, 1_000, 10_000, 100_000)
QUICK_SIZES = (100, 10_000)
MAX_SECONDS = 1_200


def context_assembly(stand: Stand, provider_url: str, *, is_quick: bool) -> list[Finding]:
    """Measure beside a running Amber, with its database; its workers have nothing to do
    meanwhile."""
    sizes = QUICK_SIZES if is_quick else SIZES
    with stand.amber(provider_url):
        rows = stand.drive("bench.context_driver", *sizes, timeout_seconds=MAX_SECONDS)
    by_size = {row["messages"]: row for row in rows}
    for row in rows:
        say(f"  {row}")
    large = 10_000 if 10_000 in by_size else sizes[-1]
    return [
        Finding(
            f"context of a chat of {large:,} messages against one of 100",
            by_size[large]["ms"] / by_size[100]["ms"],
            "x",
            at_most=1.5,
            note="; ".join(f"{row['messages']:,}: {row['ms']:.1f} ms" for row in rows),
            details={"rows": rows},
        ),
        Finding(
            f"rows read for that context against one of 100 (then {by_size[100]['rows']})",
            by_size[large]["rows"] / by_size[100]["rows"],
            "x",
            note="; ".join(f"{row['messages']:,}: {row['rows']}" for row in rows),
        ),
        Finding(
            f"planted facts that come back in a chat of {large:,} messages",
            by_size[large]["recalled"] * 100,
            "%",
            at_least=95,
            note="; ".join(f"{row['messages']:,}: {row['recalled']:.0%}" for row in rows),
        ),
    ]
