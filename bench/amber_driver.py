"""Ask Amber for `bench.loadgen`: each question in a chat of its own, made before the clock runs.

The target holds `chats`, ids in which nobody has asked yet; each request takes one.
"""

import aiohttp

from bench import loadgen


async def one(
    session: aiohttp.ClientSession,
    target: loadgen.Row,
    worker: int,
    n: int,
    opt: loadgen.Options,
) -> loadgen.Result:
    """POST one question and read the stream of its turn."""
    url = f"{target['url']}/api/v1/chats/{target['chats'].pop()}/messages/"
    return await loadgen.one(session, {**target, "url": url}, worker, n, opt)
