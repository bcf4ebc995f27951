"""Side-by-side load generator for streaming chat endpoints.

    python bench/loadgen.py targets.json --conc 1,8,32,64 --tokens 100 --ttft 150 --itl 20

At every concurrency it runs all targets one after the other, `--rounds` times,
so that a ratio compares runs that lie seconds apart on the same noisy machine.
Closed loop: `conc` workers, each sends its next request when its last ended.
Prompts carry the markers of tests/fake_provider.py, which sets the upstream's pace:

    paced   --ttft 150 --itl 20   a model's speed; latency and how many streams fit
    flood   --ttft 0 --itl 0      as fast as it goes; the peak of tokens/s

With --stamp 1 (default) each token's text is the time the upstream sent it, so
`in` = client's send -> upstream's receipt, and `out` = upstream's send of a token
-> client's receipt, are known per request and per token. They need the upstream
on this machine (one CLOCK_MONOTONIC) and a peer that passes the text through.

targets.json: a list of objects
    name      e.g. "direct" (the FIRST target is the baseline of the ratios)
    url       endpoint to POST to
    headers   optional, e.g. {"Authorization": "Bearer ..."}; a list = one per worker
    body      optional JSON template: every string in it may hold {prompt} {n}
              {uuid}; "{history}" as a whole value becomes the list of messages.
              Default: OpenAI chat body with "{history}", "model" and stream: true
    model     model name for the default body
    text      optional dotted paths to the text in an SSE event's JSON
              (default "choices.0.delta.content"); several: comma-separated;
              "raw" = the plain body is the text
    urls      optional list in place of url: worker i uses urls[i % len]
    driver    optional Python file with `async def one(session, target, worker, n, opt)`
              -> loadgen.Result, for what is not POST + SSE (a websocket, say)
    pids      optional process ids; their whole trees give CPU seconds and RSS
    max_conc  optional: skip the target above this

A request is an error when the status is not 200, when it breaks or times out,
and when fewer than all of its tokens arrived (`short`).
Results: a table on stdout and, with --out FILE, one JSON line per cell.
"""

import argparse
import asyncio
import importlib.util
import json
import os
import random
import re
import statistics
import sys
import time
import uuid
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TextIO

import aiohttp
import orjson
import psutil
import uvloop

STAMP_RE = re.compile(r"([#@])(\d+);")
"""`#`: the upstream got the request, `@`: it sent a token; microseconds."""
DEFAULT_TEXT = "choices.0.delta.content"

Row = dict[str, Any]
Options = argparse.Namespace


def now_us() -> int:
    return time.monotonic_ns() // 1000


def pct(values: Iterable[float], q: float) -> float | None:
    """The quantile `q` (0 to 1), interpolated; None of nothing."""
    ordered = sorted(values)
    if not ordered:
        return None
    pos = (len(ordered) - 1) * q
    lo = int(pos)
    hi = min(lo + 1, len(ordered) - 1)
    return ordered[lo] + (ordered[hi] - ordered[lo]) * (pos - lo)


def ms(values: Iterable[float], q: float) -> float | None:
    """The quantile of microseconds, in milliseconds."""
    value = pct(values, q)
    return None if value is None else round(value / 1e3, 2)


def tree(pids: Iterable[int] | None) -> dict[int, psutil.Process]:
    """The processes of these pids and all of their children, those alive."""
    found: dict[int, psutil.Process] = {}
    for pid in pids or ():
        try:
            root = psutil.Process(pid)
            for p in [root, *root.children(recursive=True)]:
                found[p.pid] = p
        except psutil.NoSuchProcess:
            pass
    return found


def cpu_rss(pids: Iterable[int] | None) -> tuple[float, float]:
    """CPU seconds used so far and resident MB of these process trees."""
    cpu = rss = 0.0
    for p in tree(pids).values():
        try:
            t = p.cpu_times()
            cpu += t.user + t.system
            rss += p.memory_info().rss
        except psutil.NoSuchProcess:
            pass
    return cpu, rss / 2**20


def history(count: int, prompt: str, chars: int = 200) -> list[Row]:
    """`count` earlier messages in turn, then the prompt."""
    filler = "earlier talk about rivers, stones and the slow record of rain; " * 20
    earlier = [
        {"role": "user" if i % 2 == 0 else "assistant", "content": f"{i}: {filler}"[:chars]}
        for i in range(count)
    ]
    return [*earlier, {"role": "user", "content": prompt}]


def render(node: Any, values: Row) -> Any:
    """The template with its placeholders filled in."""
    if isinstance(node, dict):
        return {k: render(v, values) for k, v in node.items()}
    if isinstance(node, list):
        return [render(v, values) for v in node]
    if isinstance(node, str):
        if node == "{history}":
            return values["history"]
        for key in ("prompt", "uuid", "n"):
            if "{" + key + "}" in node:
                node = node.replace("{" + key + "}", str(values[key]))
    return node


def dig(obj: Any, path: Sequence[str]) -> Any:
    """What lies at a dotted path, or None."""
    for part in path:
        if isinstance(obj, list):
            i = int(part)
            obj = obj[i] if len(obj) > i else None
        elif isinstance(obj, dict):
            obj = obj.get(part)
        else:
            return None
    return obj


class Result:
    """One request: a driver feeds it text as it arrives and ends it."""

    def __init__(self, opt: Options) -> None:
        self.opt, self.start = opt, now_us()
        self.ok, self.why, self.tokens = False, "", 0
        self.ttft: int | None = None
        self.total: int | None = None
        self.way_in: int | None = None
        self.way_out: list[int] = []
        self._tail = ""

    def text(self, text: str, at: int | None = None) -> None:
        at = at or now_us()
        if not self.opt.stamp:
            self.ttft = self.ttft or at - self.start
            self.tokens += 1
            return
        tail, used = self._tail + text, 0  # a peer may cut a stamp in two
        for m in STAMP_RE.finditer(tail):
            used = m.end()
            if m.group(1) == "@":
                self.ttft = self.ttft or at - self.start
                self.tokens += 1
                self.way_out.append(at - int(m.group(2)))
            elif self.way_in is None:
                self.way_in = int(m.group(2)) - self.start
        self._tail = tail[used:]

    def end(self) -> "Result":
        self.total = now_us() - self.start
        if not self.why and self.tokens < self.opt.tokens:
            self.why = f"short: {self.tokens} of {self.opt.tokens}"
        self.ok = not self.why
        return self


def make_prompt(n: int, opt: Options) -> str:
    marker = f"[[fake tokens={opt.tokens} ttft={opt.ttft} itl={opt.itl} stamp={opt.stamp}]]"
    return f"Question {n}-{random.randrange(1 << 30)}: what moved the stone? {marker}"


def request_of(target: Row, worker: int, n: int, opt: Options) -> tuple[str, bytes, Row]:
    """URL, body and headers of one request."""
    prompt = make_prompt(n, opt)
    template = target.get("body") or {
        "model": target.get("model", "fake-model"),
        "messages": "{history}",
        "stream": True,
    }
    values = {
        "prompt": prompt,
        "n": n,
        "uuid": str(uuid.uuid4()),
        "history": history(opt.history, prompt),
    }
    urls, headers = target.get("urls"), target.get("headers") or {}
    url = urls[worker % len(urls)] if urls else target["url"]
    if isinstance(headers, list):
        headers = headers[worker % len(headers)]
    body = orjson.dumps(render(template, values))
    return url, body, {"Content-Type": "application/json", **headers}


async def one(
    session: aiohttp.ClientSession, target: Row, worker: int, n: int, opt: Options
) -> Result:
    """The default driver: POST, then server-sent events (or raw text)."""
    url, body, headers = request_of(target, worker, n, opt)
    res = Result(opt)
    try:
        async with session.post(url, data=body, headers=headers) as resp:
            if resp.status != 200:
                res.why = f"http {resp.status}: {(await resp.text())[:160]}"
                return res
            await read_answer(resp, target, res)
            return res.end()
    except TimeoutError:
        res.why = "timeout"
    except (aiohttp.ClientError, ConnectionError, orjson.JSONDecodeError) as exc:
        res.why = f"{type(exc).__name__}: {exc}"[:160]
    return res


async def read_answer(resp: aiohttp.ClientResponse, target: Row, res: Result) -> None:
    """Feed the text of the answer to `res` as it arrives."""
    paths = [path.split(".") for path in target.get("text", DEFAULT_TEXT).split(",")]
    is_raw, buffer = target.get("text") == "raw", b""
    async for chunk in resp.content.iter_any():
        at = now_us()
        if is_raw:
            res.text(chunk.decode("utf-8", "ignore"), at)
            continue
        lines = (buffer + chunk).split(b"\n")
        buffer = lines.pop()
        for line in lines:
            data = line[5:].strip() if line.startswith(b"data:") else b""
            if data.startswith(b"{"):
                read_event(data, paths, res, at)


def read_event(data: bytes, paths: list[list[str]], res: Result, at: int) -> None:
    event = orjson.loads(data)
    if event.get("error") and not event.get("choices"):
        res.why = f"error event: {data[:160]!r}"
    for path in paths:
        text = dig(event, path)
        if text and isinstance(text, str):
            res.text(text, at)


Driver = Callable[[aiohttp.ClientSession, Row, int, int, Options], Awaitable[Result]]


def driver_of(target: Row) -> Driver:
    """`one` of the Python file a target names as its driver, or the default."""
    if "driver" not in target:
        return one
    spec = importlib.util.spec_from_file_location("driver", target["driver"])
    if spec is None or spec.loader is None:
        raise FileNotFoundError(target["driver"])
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    driver: Driver = module.one
    return driver


async def drive_all(
    session: aiohttp.ClientSession, target: Row, conc: int, opt: Options
) -> list[Result]:
    """The results of `conc` workers, each sending its next request when its last ended."""
    per_worker = max(opt.per_worker, -(-opt.min_requests // conc))
    ideal = (opt.ttft + opt.itl * (opt.tokens - 1)) / 1e3
    drive, serial = driver_of(target), iter(range(1 << 30))
    results: list[Result] = []
    deadline = time.monotonic() + opt.cell_limit

    async def worker(i: int) -> None:
        if ideal and not opt.burst:  # no lockstep of the workers
            await asyncio.sleep(ideal * i / conc)
        for _ in range(per_worker):
            if time.monotonic() > deadline:
                return
            results.append(await drive(session, target, i, next(serial), opt))

    await asyncio.gather(*(worker(i) for i in range(conc)))
    return results


async def watch_memory(pids: Iterable[int] | None, peak: list[float]) -> None:
    while pids:
        peak[0] = max(peak[0], cpu_rss(pids)[1])
        await asyncio.sleep(2)


async def cell(target: Row, conc: int, opt: Options) -> tuple[Row, list[Result]]:
    """One target at one concurrency: the numbers, and what they are made from."""
    connector = aiohttp.TCPConnector(limit=0, force_close=False, keepalive_timeout=120)
    timeout = aiohttp.ClientTimeout(total=opt.timeout)
    pids, peak = target.get("pids"), [0.0]
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
        for i in range(opt.warm):
            await driver_of(target)(session, target, 0, -1 - i, opt)
        cpu_before, _ = cpu_rss(pids)
        own_before, started = time.process_time(), time.monotonic()
        sampler = asyncio.create_task(watch_memory(pids, peak))
        results = await drive_all(session, target, conc, opt)
        wall, own = time.monotonic() - started, time.process_time() - own_before
        sampler.cancel()
        cpu_after, rss = cpu_rss(pids)
    row = {
        "target": target["name"],
        "conc": conc,
        "history": opt.history,
        "label": opt.label,
        "tokens_per_answer": opt.tokens,
        "ttft_set": opt.ttft,
        "itl_set": opt.itl,
        **numbers_of(results),
        **rates_of(results, wall, cpu_after - cpu_before, has_pids=bool(pids)),
        "rss_mb": round(max(peak[0], rss)),
        "loadgen_cpu_share": round(own / wall, 2),
    }
    return row, results


def numbers_of(results: list[Result]) -> Row:
    """Counts, errors and times, in milliseconds."""
    good = [r for r in results if r.ok]
    errors: dict[str, int] = {}
    for result in results:
        if not result.ok:
            errors[result.why] = errors.get(result.why, 0) + 1
    ttfts = [r.ttft for r in good if r.ttft is not None]
    totals = [r.total for r in good if r.total is not None]
    ways_in = [r.way_in for r in good if r.way_in is not None]
    ways_out = [x for r in good for x in r.way_out]
    return {
        "requests": len(results),
        "errors": len(results) - len(good),
        "error_kinds": dict(sorted(errors.items(), key=lambda kv: -kv[1])[:4]),
        "ttft_p50": ms(ttfts, 0.5),
        "ttft_p95": ms(ttfts, 0.95),
        "total_p50": ms(totals, 0.5),
        "total_p95": ms(totals, 0.95),
        "in_p50": ms(ways_in, 0.5),
        "in_p95": ms(ways_in, 0.95),
        "out_first_p50": ms([r.way_out[0] for r in good if r.way_out], 0.5),
        "out_p50": ms(ways_out, 0.5),
        "out_p95": ms(ways_out, 0.95),
    }


def rates_of(results: list[Result], wall: float, cpu: float, *, has_pids: bool) -> Row:
    """What was done per second, and the CPU it took."""
    tokens = sum(r.tokens for r in results)
    per_token = round(cpu / tokens * 1000, 4) if tokens and has_pids else None
    per_request = round(cpu / len(results) * 1e3, 1) if results and has_pids else None
    return {
        "wall_s": round(wall, 2),
        "req_per_s": round(sum(r.ok for r in results) / wall, 2),
        "tok_per_s": round(tokens / wall, 1),
        "cpu_s": round(cpu, 2),
        "cpu_s_per_1k_tok": per_token,
        "cpu_ms_per_req": per_request,
    }


COLS = (
    *("target", "conc", "history", "requests", "errors", "ttft_p50", "ttft_p95", "total_p50"),
    *("total_p95", "in_p50", "out_first_p50", "out_p50", "out_p95", "req_per_s", "tok_per_s"),
    *("cpu_s_per_1k_tok", "cpu_ms_per_req", "rss_mb", "loadgen_cpu_share"),
)


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


async def main(opt: Options, targets: list[Row], out: TextIO | None) -> None:
    """Every cell, then how each target compares with the first."""
    say(" | ".join(COLS))
    for conc in map(int, opt.conc.split(",")):
        for count in map(int, opt.histories.split(",")):
            opt.history = count
            rows: dict[str, list[Row]] = {}
            for turn in range(opt.rounds):
                for target in targets if turn % 2 == 0 else targets[::-1]:
                    if conc > target.get("max_conc", 1 << 30):
                        continue
                    row, _ = await cell(target, conc, opt)
                    rows.setdefault(target["name"], []).append(row)
                    report(row | {"round": turn}, out)
                    await asyncio.sleep(opt.pause)
            compare(rows, targets[0]["name"])


def report(row: Row, out: TextIO | None) -> None:
    say(" | ".join(str(row[c]) for c in COLS))
    if row["error_kinds"]:
        say(f"    errors: {row['error_kinds']}")
    if out:
        out.write(json.dumps(row) + "\n")
        out.flush()


def compare(rows: dict[str, list[Row]], base_name: str) -> None:
    """Medians over the rounds against the baseline's."""

    def median(name: str, key: str) -> float | None:
        values = [row[key] for row in rows[name] if row[key] is not None]
        return statistics.median(values) if values else None

    if base_name not in rows:
        return
    base, base_rate = median(base_name, "ttft_p50"), median(base_name, "tok_per_s")
    for name in rows:
        own, rate = median(name, "ttft_p50"), median(name, "tok_per_s")
        if name == base_name or not base or not base_rate or own is None or rate is None:
            continue
        first = rows[name][0]
        say(
            f"    = {name}: c={first['conc']} hist={first['history']} TTFT {own:.1f} ms vs"
            f" {base:.1f} direct: +{own - base:.1f} ms, x{own / base:.2f}; tokens/s {rate:.0f} of"
            f" {base_rate:.0f} ({rate / base_rate * 100:.0f} %)"
        )


def options() -> Options:
    ap = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    ap.add_argument("targets", type=Path)
    ap.add_argument("--conc", default="1,8,32,64")
    ap.add_argument("--tokens", type=int, default=100)
    ap.add_argument("--ttft", type=float, default=150)
    ap.add_argument("--itl", type=float, default=20)
    ap.add_argument("--histories", default="0", help="earlier messages sent, e.g. 0,200,1000")
    ap.add_argument("--stamp", type=int, default=1)
    ap.add_argument("--per-worker", type=int, default=4)
    ap.add_argument("--min-requests", type=int, default=12)
    ap.add_argument("--rounds", type=int, default=2)
    ap.add_argument("--warm", type=int, default=1)
    ap.add_argument("--burst", action="store_true", help="all workers start at once")
    ap.add_argument("--pause", type=float, default=1)
    ap.add_argument("--timeout", type=float, default=120)
    ap.add_argument("--cell-limit", type=float, default=60, help="no new request after this many s")
    ap.add_argument("--only", default="")
    ap.add_argument("--label", default="")
    ap.add_argument("--out", default="")
    return ap.parse_args()


def start() -> None:
    sys.modules["loadgen"] = sys.modules["__main__"]  # drivers import it by this name
    opt = options()
    opt.history = 0
    targets = json.loads(opt.targets.read_text())
    if opt.only:
        targets = [target for target in targets if target["name"] in opt.only.split(",")]
    with Path(opt.out or os.devnull).open("a") as out:
        uvloop.run(main(opt, targets, out))


if __name__ == "__main__":
    start()
