"""How servers write their streams, count tokens, and say why they end."""

import zlib
from itertools import chain

import orjson

from tests.habits.habit import (
    ANSWER,
    DONE,
    JSON_TYPE,
    PIECES,
    USAGE,
    Exchange,
    Expected,
    Habit,
    Json,
    Played,
    answer,
    chunk,
    counted,
    event,
    says,
    sends,
    streamed,
    texts,
    whole,
)

_WHOLE_STREAM = b"".join(map(event, answer())) + DONE
_UNCOUNTED = [*texts(), chunk({}, "stop")]


def _between(*others: bytes) -> tuple[bytes, ...]:
    """The answer with these bytes before each event."""
    return (*chain.from_iterable((*others, event(each)) for each in answer()), DONE)


def _pretty(value: Json) -> bytes:
    lines = orjson.dumps(value, option=orjson.OPT_INDENT_2).splitlines()
    return b"".join(b"data: %s\n" % line for line in lines) + b"\n"


def _gzip(_: Exchange) -> Played:
    packer = zlib.compressobj(wbits=31)
    pieces = [packer.compress(event(each)) + packer.flush(zlib.Z_SYNC_FLUSH) for each in answer()]
    packed = [*pieces, packer.compress(DONE) + packer.flush()]
    return Played(packed, headers=((b"content-encoding", b"gzip"),))


def _cut_fine(_: Exchange) -> Played:
    """In pieces that cut characters and line ends in two."""
    return Played([_WHOLE_STREAM[i : i + 7] for i in range(0, len(_WHOLE_STREAM), 7)])


def _pretty_and_cut(_: Exchange) -> Played:
    body = (b"".join(map(_pretty, answer())) + DONE).replace(b"\n", b"\r\n")
    return Played([body[i : i + 1] for i in range(900)] + [body[900:]])


def _of_utf16(_: Exchange) -> Played:
    """Each half of the tree in an event of its own."""

    def half(escaped: bytes) -> bytes:
        return b'data: {"choices":[{"index":0,"delta":{"content":"%s"}}]}\n\n' % escaped

    before, after = ANSWER.split("🌲")
    return Played(
        [
            event(chunk({"content": before})),
            half(rb"\ud83c"),
            half(rb"\udf32"),
            event(chunk({"content": after})),
            event(chunk({}, "stop")),
            event(counted()),
            DONE,
        ]
    )


def _two_answers(_: Exchange) -> Played:
    other = {"index": 1, "delta": {"content": "Another answer."}, "finish_reason": None}
    both = chunk({"content": PIECES[0]})
    both["choices"].append(other)
    ended = {"index": 1, "delta": {}, "finish_reason": "length"}
    rest = [chunk({"content": piece}) for piece in PIECES[1:]]
    alone: list[Json] = [{"choices": [other]}, {"choices": [ended]}]
    return streamed([both, *alone, *rest, chunk({}, "stop"), counted()])


def _perplexity(_: Exchange) -> Played:
    told, events = "", []
    for piece in PIECES:
        told += piece
        events.append({**chunk({"content": piece}, message={"content": told}), "usage": USAGE})
    return streamed([*events, {**chunk({}, "stop", message={"content": told}), "usage": USAGE}])


def _no_deltas(_: Exchange) -> Played:
    """Chunks that hold what is whole so far under another name, and a last one with nothing."""
    bare: Json = {"choices": [{"index": 0, "finish_reason": "stop"}]}
    return streamed([*texts(), bare, counted()])


_FILTERED = {"hate": {"filtered": False, "severity": "safe"}}
_PROMPT_FILTER: Json = {
    "id": "",
    "object": "",
    "model": "",
    "choices": [],
    "prompt_filter_results": [{"prompt_index": 0, "content_filter_results": _FILTERED}],
}
_OFFSETS: Json = {
    "choices": [
        {
            "index": 0,
            "finish_reason": None,
            "content_filter_results": _FILTERED,
            "content_filter_offsets": {"check_offset": 0, "start_offset": 0, "end_offset": 9},
        }
    ]
}

HABITS = [
    Habit(
        "plain", "OpenAI", "streams text, and counts in a last chunk of its own", sends(answer())
    ),
    Habit(
        "azure-prompt-filter",
        "Azure",
        "begins with a chunk without choices",
        sends([_PROMPT_FILTER, *answer()]),
    ),
    Habit(
        "azure-late-filter",
        "Azure",
        "puts chunks without a delta between the others",
        sends([*texts(), _OFFSETS, *answer()[-2:]]),
    ),
    Habit(
        "comments",
        "OpenRouter, llama.cpp",
        "keeps the stream alive with comments",
        says(*_between(b": OPENROUTER PROCESSING\n\n", b":\n\n")),
    ),
    Habit(
        "ping-events",
        "gateways to Anthropic",
        "keeps it alive with events named `ping`",
        says(*_between(b'event: ping\ndata: {"type": "ping"}\n\n', b"event: ping\ndata: \n\n")),
    ),
    Habit(
        "ping-data",
        "gateways",
        'keeps it alive with `{"type": "ping"}`',
        says(*_between(b'data: {"type": "ping"}\n\n')),
    ),
    Habit(
        "empty-data",
        "llama.cpp, proxies",
        "sends events without data",
        says(*_between(b"data:\n\n", b"id: 1\nretry: 3000\n\n")),
    ),
    Habit(
        "named-events",
        "DashScope",
        "names its events, with or without spaces",
        says(
            *(
                b"id:1\nevent:result\n:HTTP_STATUS/200\n" + event(each).replace(b"data: ", b"data:")
                for each in answer()
            ),
            DONE,
        ),
    ),
    Habit(
        "crlf",
        "gateways, proxies",
        "ends lines with CR LF",
        says(_WHOLE_STREAM.replace(b"\n", b"\r\n")),
    ),
    Habit(
        "no-blank-lines",
        "older servers",
        "leaves out the empty line between events",
        says(_WHOLE_STREAM.replace(b"\n\n", b"\n")),
    ),
    Habit(
        "multi-line",
        "gateways",
        "breaks the JSON of one event into many lines",
        says(*map(_pretty, answer()), DONE),
    ),
    Habit(
        "multi-line-crlf",
        "gateways",
        "the same with CR LF, and cut anywhere",
        _pretty_and_cut,
    ),
    Habit(
        "bom",
        "gateways",
        "begins with a byte order mark",
        says(b"\xef\xbb\xbf" + _WHOLE_STREAM),
    ),
    Habit(
        "bom-json",
        "gateways",
        "the same before one JSON object",
        says(b"\xef\xbb\xbf" + orjson.dumps(whole({"content": ANSWER})), content_type=JSON_TYPE),
    ),
    Habit("cut-anywhere", "any, behind proxies", "is cut into pieces within characters", _cut_fine),
    Habit("gzip", "any, behind proxies", "is compressed", _gzip),
    Habit(
        "half-characters",
        "servers that count in UTF-16",
        "sends half an emoji per event",
        _of_utf16,
    ),
    Habit(
        "nul",
        "small local models",
        "sends NUL, which no database stores",
        sends([*texts([*PIECES[:2], "\0", *PIECES[2:]]), *answer()[-2:]]),
    ),
    Habit(
        "sse-as-json",
        "gateways",
        "labels a stream as JSON",
        says(_WHOLE_STREAM, content_type=JSON_TYPE),
    ),
    Habit(
        "json-as-sse",
        "gateways",
        "labels one JSON object as a stream",
        says(orjson.dumps(whole({"content": ANSWER}))),
    ),
    Habit(
        "sse-as-text",
        "small servers",
        "labels a stream as plain text",
        says(_WHOLE_STREAM, content_type=b"text/plain"),
    ),
    Habit(
        "never-streams",
        "small servers",
        "answers with one JSON object",
        says(orjson.dumps(whole({"content": ANSWER})), content_type=JSON_TYPE),
    ),
    Habit("no-done", "Gemini, small servers", "ends without `[DONE]`", sends(answer(), done=False)),
    Habit(
        "late-done", "llama.cpp", "ends `[DONE]` without a line end", says(_WHOLE_STREAM.rstrip())
    ),
    Habit(
        "error-after-end",
        "gateways",
        "sends an error after the finish reason",
        sends([*answer(), {"error": {"message": "closed"}}]),
    ),
    Habit("two-answers", "vLLM, gateways", "sends a second answer, of index 1", _two_answers),
    Habit(
        "no-index",
        "gateways",
        "gives its choices no index",
        sends(
            [
                {
                    **each,
                    "choices": [
                        {k: v for k, v in c.items() if k != "index"} for c in each["choices"]
                    ],
                }
                for each in answer()
            ]
        ),
    ),
    Habit(
        "empty-chunks",
        "vLLM, Azure",
        "sends chunks without choices, deltas and content",
        sends(
            [
                {"choices": []},
                *texts(),
                {"choices": []},
                chunk({"content": None}),
                chunk(
                    {
                        "role": "assistant",
                        "content": None,
                        "tool_calls": None,
                        "function_call": None,
                        "refusal": None,
                    }
                ),
                *answer()[-2:],
            ]
        ),
    ),
    Habit(
        "last-text-with-reason",
        "Gemini",
        "ends in the chunk of its last text",
        sends([*texts(PIECES[:-1]), chunk({"content": PIECES[-1]}, "stop"), counted()]),
    ),
    Habit("no-last-delta", "small servers", "ends with a choice without a delta", _no_deltas),
    Habit(
        "delta-and-message", "Perplexity", "sends the message so far beside each delta", _perplexity
    ),
    Habit(
        "refusal",
        "OpenAI",
        "refuses in a field of its own",
        sends(
            [
                chunk({"role": "assistant", "content": None}),
                *(chunk({"refusal": piece}) for piece in PIECES),
                *answer()[-2:],
            ]
        ),
    ),
    Habit(
        "usage-everywhere",
        "vLLM, xAI",
        "counts in every chunk",
        sends([{**each, "usage": USAGE} for each in answer()]),
    ),
    Habit(
        "usage-x-groq",
        "Groq",
        "counts in `x_groq`",
        sends(
            [
                {**texts()[0], "x_groq": {"id": "req_1"}},
                *texts()[1:],
                {**chunk({}, "stop"), "x_groq": {"id": "req_1", "usage": USAGE}},
            ]
        ),
    ),
    Habit(
        "usage-in-choice",
        "Moonshot",
        "counts inside the last choice",
        sends([*texts(), chunk({}, "stop", usage=USAGE)]),
    ),
    Habit(
        "usage-cache-hits",
        "DeepSeek",
        "names cached tokens in its own way",
        sends(
            [*texts(), {**chunk({}, "stop"), "usage": {**USAGE, "prompt_cache_hit_tokens": 100}}]
        ),
    ),
    Habit(
        "usage-null",
        "OpenAI, Azure",
        "says `usage: null` until it counts",
        sends([*({**each, "usage": None} for each in answer()[:-1]), counted()]),
    ),
    Habit(
        "no-usage",
        "LM Studio, older Ollama",
        "never counts",
        sends(_UNCOUNTED),
        Expected(counted=False),
    ),
    Habit(
        "length",
        "OpenAI",
        "stops at its longest reply",
        sends(answer("length")),
        Expected(finish_reason="length"),
    ),
    Habit(
        "model-length",
        "Mistral",
        "calls that `model_length`",
        sends(answer("model_length")),
        Expected(finish_reason="length"),
    ),
    Habit(
        "max-tokens",
        "Gemini, Bedrock",
        "calls it `MAX_TOKENS`",
        sends(answer("MAX_TOKENS")),
        Expected(finish_reason="length"),
    ),
    Habit(
        "filtered",
        "Azure",
        "is stopped by a filter",
        sends(answer("content_filter")),
        Expected(finish_reason="content_filter"),
    ),
    Habit(
        "sensitive",
        "Zhipu",
        "calls that `sensitive`",
        sends(answer("sensitive")),
        Expected(finish_reason="content_filter"),
    ),
    Habit(
        "eos", "Together, text-generation-inference", "calls the end `eos`", sends(answer("eos"))
    ),
    Habit(
        "end-turn", "gateways to Anthropic", "calls the end `end_turn`", sends(answer("end_turn"))
    ),
    Habit(
        "new-reason",
        "any",
        "ends for a reason that nobody knows",
        sends(answer("satisfied")),
        Expected(finish_reason="satisfied"),
    ),
    Habit(
        "no-resource",
        "DeepSeek",
        "is cut off: `insufficient_system_resource`",
        sends(answer("insufficient_system_resource")),
        Expected(finish_reason=None, code="provider_lost"),
    ),
    Habit(
        "network-error",
        "Zhipu",
        "is cut off: `network_error`",
        sends(answer("network_error")),
        Expected(finish_reason=None, code="provider_lost"),
    ),
    Habit(
        "abort",
        "vLLM, SGLang",
        "is cut off: `abort`",
        sends(answer("abort")),
        Expected(finish_reason=None, code="provider_lost"),
    ),
    Habit(
        "cut-before-text",
        "DeepSeek",
        "the same before any text",
        sends([chunk({"role": "assistant"}), chunk({}, "insufficient_system_resource")]),
        Expected(text="", finish_reason=None, code="provider_unavailable"),
    ),
]
