"""Measure search over 200,000 chunks in 100 organizations, against bare SQL and an exact scan."""

from operator import truediv

from bench.loadgen import say
from bench.report import Finding, Json, median
from bench.stand import Stand

CHUNKS, QUICK_CHUNKS = 200_000, 20_000
MAX_SECONDS = 3_600


def library_search(stand: Stand, provider_url: str, *, is_quick: bool) -> list[Finding]:
    """Measure beside a running Amber, with its database; its workers have nothing to do
    meanwhile."""
    with stand.amber(provider_url):
        chunks = QUICK_CHUNKS if is_quick else CHUNKS
        groups = stand.drive("bench.search_driver", chunks, timeout_seconds=MAX_SECONDS)
    for group in groups:
        say(f"  {group}")
    asked, own, bare = (
        [ms for group in groups for ms in group[name]]
        for name in ("search_ms", "own_sql_ms", "bare_ms")
    )
    by_size = "; ".join(_times(group) for group in groups)
    recalls = [recall for group in groups for recall in group["recalls"]]
    small = min(groups, key=lambda group: group["chunks"])
    return [
        Finding(
            "search, median against its own bare statements",
            median(map(truediv, asked, own)),
            "x",
            at_most=1.3,
            note="; ".join(
                f"{g['chunks']:,}: {median(map(truediv, g['search_ms'], g['own_sql_ms'])):.2f}"
                for g in groups
            ),
            details={"groups": groups},
        ),
        Finding(
            "search, median against SQL written by hand",
            median(asked) / median(bare),
            "x",
            at_most=1.3,
            note=by_size,
        ),
        Finding(
            "recall@10 of the vectors against comparing all",
            sum(recalls) / len(recalls),
            "",
            at_least=0.95,
            note="; ".join(
                f"{g['chunks']:,}: {sum(g['recalls']) / len(g['recalls']):.3f}" for g in groups
            ),
        ),
        Finding(
            f"chunks found for a tenant with {small['chunks']:,} of them, asked for 10",
            min(small["found"]),
            "",
            at_least=10,
        ),
    ]


def _times(group: Json) -> str:
    way = "index" if group["is_by_index"] else "exact"
    return (
        f"{group['chunks']:,} ({way}): {median(group['search_ms']):.1f} ms,"
        f" by hand {median(group['bare_ms']):.1f}"
    )
