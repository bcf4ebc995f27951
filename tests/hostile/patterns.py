"""Every regular expression of the project, and how its cost grows with hostile texts.

    python -m tests.hostile.patterns                    prints what grows faster than its text, as JSON
    python -m tests.hostile.patterns '["(a+)+b"]'       of these patterns, instead of the project's

Runs in a process of its own, that can be killed: an exponential pattern does not return. Patterns are
found in what modules and classes hold, and as literals in calls; texts are built of each pattern's own
parts: what leads to a repetition, what it repeats, and an end that makes it fail. Costs are CPU time.
"""

import ast
import importlib
import itertools
import json
import os
import pkgutil
import re
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from re import _constants as codes  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[2]
PACKAGES: Final = (
    *("amber", "engine", "accounts", "providers", "memory", "libraries"),
    *("tools", "assistants", "chats", "operations", "public_api"),
)
ENGINES: Final = frozenset({"re", "regex"})
CALLS: Final = frozenset(
    {"match", "search", "fullmatch", "sub", "subn", "split", "findall", "finditer", "compile"}
)
ANCHORED: Final = frozenset({"match", "fullmatch"})
FIELDS: Final = frozenset({"RegexField", "RegexValidator", "re_path"})
MENTION: Final = re.compile(rf"\b(?:(?:{'|'.join(ENGINES)})\.|(?:{'|'.join(FIELDS)})\b)")
"""Stands in every source that has a call or a field with a pattern: no other needs to be parsed."""

LONG_CHARS: Final = 8_000
"""Quadratic patterns take 0.03 s and more for a text of this length, linear ones a millisecond."""
FLOOR_SECONDS: Final = 0.01
"""What costs less at LONG_CHARS is not measured further."""
GIVEN_UP_SECONDS: Final = 2.0
"""CPU. No linear pattern takes 250 microseconds a character."""
TIMES_SHORTER: Final = 8
MOST_GROWTH: Final = 3.0
"""Of one long text over so many short ones, that have as many characters: linear is 1, quadratic 8."""
ROUNDS: Final = 3
"""The best of them counts: a busy machine makes some of them lie."""
PLAIN_SECONDS: Final = 0.25
"""Of so much CPU time none lies by half: measured once."""
MOST_PUMPS: Final = 60
MOST_PREFIXES: Final = 6

# The characters that a category of the `regex` package stands for, or an escape of `re`.
CATEGORIES: Final = {
    "Script=Han": "琥",
    "Script=Hiragana": "あ",
    "L": "aA",
    "Lu": "A",
    "Ll": "a",
    "N": "1",
    "M": "\u0301",
}
ESCAPES: Final = {
    codes.CATEGORY_DIGIT: "1",
    codes.CATEGORY_NOT_DIGIT: "a",
    codes.CATEGORY_SPACE: " \n",
    codes.CATEGORY_NOT_SPACE: "a",
    codes.CATEGORY_WORD: "a1",
    codes.CATEGORY_NOT_WORD: " .",
}
ENDS: Final = ("", "\x01", "x")


# -- Which there are -------------------------------------------------------------------------------


def is_ours(name: str) -> bool:
    parts = name.split(".")
    return not {"tests", "migrations"} & set(parts) and parts[-1] != "asgi"


def modules() -> list[str]:
    names = []
    for package in PACKAGES:
        root = importlib.import_module(package)
        names += [package]
        names += [found.name for found in pkgutil.walk_packages(root.__path__, f"{package}.")]
    return [name for name in names if is_ours(name)]


def held_patterns(name: str) -> Iterator[tuple[str, Any]]:
    """Yield the patterns that a module's names and its classes' attributes hold, however deep."""
    module = importlib.import_module(name)
    for key, value in vars(module).items():
        yield from patterns_in(value, key, module=name, depth=3)


def patterns_in(value: Any, key: str, *, module: str, depth: int) -> Iterator[tuple[str, Any]]:
    if hasattr(value, "groupindex") and hasattr(value, "fullmatch"):
        yield key, value
    elif hasattr(getattr(value, "regex", None), "groupindex"):  # a RegexValidator
        yield key, value.regex
    elif depth and isinstance(value, dict):
        for each in [*value, *value.values()]:
            yield from patterns_in(each, key, module=module, depth=depth - 1)
    elif depth and isinstance(value, (list, tuple, set, frozenset)):
        for each in value:
            yield from patterns_in(each, key, module=module, depth=depth - 1)
    elif depth and isinstance(value, type) and value.__module__ == module:
        for attribute, each in list(vars(value).items()):
            yield from patterns_in(each, attribute, module=module, depth=depth - 1)


def calls_in(tree: ast.AST) -> Iterator[tuple[ast.Call, ast.Attribute]]:
    """Yield the calls of `re` and `regex`."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Name)
            and node.func.value.id in ENGINES
            and node.func.attr in CALLS
        ):
            yield node, node.func


def literal_patterns(tree: ast.AST) -> Iterator[tuple[int, str, str | bytes, int]]:
    """Yield line, method, pattern and flags of those that are plain strings."""
    for call, function in calls_in(tree):
        if function.value.id == "re" and isinstance(call.args[0], ast.Constant):  # type: ignore[attr-defined]
            flags = [*call.args[1:], *(each.value for each in call.keywords)]
            source = [ast.unparse(each) for each in flags if "re." in ast.unparse(each)]
            value = int(eval(source[0], {"re": re})) if source else 0  # our own source
            yield call.lineno, function.attr, call.args[0].value, value  # type: ignore[misc]


def field_patterns(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield line and pattern of fields and validators of a regular expression."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            name = ast.unparse(node.func).rpartition(".")[2]
            if name in FIELDS:
                yield node.lineno, str(node.args[0].value)


def built_when_run(tree: ast.Module) -> list[int]:
    """Return the lines of functions that make a pattern of what they are given."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
    return sorted(
        {
            call.lineno
            for function in ast.walk(tree)
            if isinstance(function, functions)
            for call, _ in calls_in(function)
            if not isinstance(call.args[0], ast.Constant)
        }
    )


def uses_of(name: str, sources: Iterable[str]) -> frozenset[str]:
    """Return the methods that are called on a name, or on each of those it holds; all if it is used
    in another way."""
    loop = re.compile(rf"\bfor ([\w, ]+) in [^\n]*\b{re.escape(name)}\b")
    found: set[str] = set()
    for source in sources:
        for each in (name, *re.findall(r"\w+", " ".join(loop.findall(source)))):
            found |= set(re.findall(rf"\b{re.escape(each)}\.(\w+)", source)) & CALLS
        if re.search(rf"\b{re.escape(name)}\b(?!\.\w+\(|: Final|\s*=\s*re)", loop.sub("", source)):
            found |= {"search"}
    return frozenset(found or CALLS)


# -- Texts that are hard for them -----------------------------------------------------------------


def samples(tree: Iterable[Any]) -> list[str]:
    """Return some texts that a sequence of parsed parts matches, the first the shortest."""
    texts = [""]
    for operation, argument in tree:
        parts = samples_of(operation, argument)
        texts = [a + b for a, b in itertools.islice(itertools.product(texts, parts), 12)]
    return list(dict.fromkeys(texts))


def samples_of(operation: Any, argument: Any) -> list[str]:
    match operation:
        case codes.LITERAL:
            return [chr(argument)]
        case codes.NOT_LITERAL:
            return [next(each for each in "a\n" if ord(each) != argument)]
        case codes.ANY:
            return ["a", " "]
        case codes.IN:
            return list(characters_in(argument))[:6] or ["a"]
        case codes.BRANCH:
            return [text for branch in argument[1] for text in samples(branch)][:12]
        case codes.SUBPATTERN:
            return samples(argument[-1])
        case codes.ATOMIC_GROUP:
            return samples(argument)
        case codes.MAX_REPEAT | codes.MIN_REPEAT | codes.POSSESSIVE_REPEAT:
            least, _, body = argument
            once = samples(body)[:4]
            return [each * max(least, 1) for each in once] if least else ["", *once]
        case _:  # positions, what stands beside, what was matched before
            return [""]


def characters_in(items: Iterable[Any]) -> Iterator[str]:
    items = list(items)
    if items[0][0] is codes.NEGATE:
        refused = set(characters_in(items[1:]))
        yield from (each for each in "a 1.\n-\x80" if each not in refused)
        return
    for operation, argument in items:
        if operation is codes.LITERAL:
            yield chr(argument)
        elif operation is codes.RANGE:
            yield chr(argument[0])
        elif operation is codes.CATEGORY:
            yield from ESCAPES[argument]


def repetitions(tree: Iterable[Any], before: str = "") -> Iterator[tuple[str, str]]:
    """Yield what leads to a repetition, and what it repeats; inner ones after outer ones."""
    for operation, argument in tree:
        match operation:
            case codes.MAX_REPEAT | codes.MIN_REPEAT | codes.POSSESSIVE_REPEAT:
                if argument[1] > 1:
                    yield from ((before, text) for text in samples(argument[2]) if text)
                    yield from (("", text) for text in samples(argument[2]) if text and before)
                    yield from (("", text) for text in (before,) if text)
                yield from repetitions(argument[2], before)
            case codes.SUBPATTERN:
                yield from repetitions(argument[-1], before)
            case codes.ATOMIC_GROUP:
                yield from repetitions(argument, before)
            case codes.ASSERT | codes.ASSERT_NOT:
                yield from repetitions(argument[1], before)
            case codes.BRANCH:
                for branch in argument[1]:
                    yield from repetitions(branch, before)
        before += samples_of(operation, argument)[-1]


def characters_of(pattern: Any) -> list[str]:
    """Return those that its source names, and some that its categories stand for."""
    source = text_of(pattern.pattern)
    named = [each for key, each in CATEGORIES.items() if f"\\p{{{key}}}" in source]
    plain = re.sub(r"\\p\{[^}]*\}|\\[a-zA-Z]|[A-Za-z0-9]", "", source)
    return list(dict.fromkeys("".join(named) + plain + " a\n"))


def text_of(source: str | bytes) -> str:
    return source.decode("latin-1") if isinstance(source, bytes) else source


def hard_texts(pattern: Any) -> Iterator[Callable[[int], str]]:
    """Yield functions that make a text of about so many characters."""
    pairs: list[tuple[str, str]] = []
    if isinstance(pattern, re.Pattern):
        tree = parser.parse(pattern.pattern, pattern.flags & ~re.DEBUG)
        whole = samples(tree)
        pairs = [*repetitions(tree), *(("", text) for text in (whole[0], whole[-1]) if text)]
        pairs += [(text, " ") for text in whole[:2]]
    characters = characters_of(pattern)[:9]
    pairs += [("", a if a == b else a + b) for a, b in itertools.product(characters, repeat=2)]
    for prefix, pump in list(dict.fromkeys(pairs))[:MOST_PUMPS]:
        for end in ENDS:
            yield partial(text_of_length, prefix, pump, end)


def text_of_length(before: str, pump: str, end: str, chars: int) -> str:
    return f"{before}{pump * (chars // len(pump))}{end}"


# -- What they cost --------------------------------------------------------------------------------


class GivenUp(Exception):
    pass


def give_up(*_: Any) -> None:
    raise GivenUp


def seconds_for(ask: Callable[[Any], Any], text: str | bytes) -> float:
    """Return CPU seconds. Raises GivenUp: `re` looks for signals while it works."""
    signal.setitimer(signal.ITIMER_VIRTUAL, GIVEN_UP_SECONDS)
    began = time.process_time()
    try:
        ask(text)
        return time.process_time() - began
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def questions(pattern: Any, methods: frozenset[str]) -> Iterator[Callable[[Any], Any]]:
    """Yield what is asked of it: from the beginning, or at each place of the text."""
    if methods & ANCHORED:
        yield pattern.match
        yield pattern.fullmatch
    if methods - ANCHORED:
        yield lambda text: sum(1 for _ in pattern.finditer(text))


def grows_too_fast(ask: Callable[[Any], Any], make: Callable[[int], Any]) -> bool:
    try:
        seconds = seconds_for(ask, make(LONG_CHARS))
        if seconds < FLOOR_SECONDS:
            return False
        return growth(ask, make, rounds=ROUNDS if seconds < PLAIN_SECONDS else 1) > MOST_GROWTH
    except GivenUp:
        return True


def growth(ask: Callable[[Any], Any], make: Callable[[int], Any], *, rounds: int) -> float:
    """Return how much longer one long text takes than short ones of the same length together, each at
    its best."""
    short, long = make(LONG_CHARS // TIMES_SHORTER), make(LONG_CHARS)
    apart = min(sum(seconds_for(ask, short) for _ in range(TIMES_SHORTER)) for _ in range(rounds))
    return min(seconds_for(ask, long) for _ in range(rounds)) / max(apart, FLOOR_SECONDS / 8)


def hardest(pattern: Any, methods: frozenset[str]) -> str | None:
    """Return the beginning of a text for which its cost grows too fast; None if there is none."""
    is_bytes = isinstance(pattern.pattern, bytes)
    for make in hard_texts(pattern):
        written = partial(encoded, make) if is_bytes else make
        if any(grows_too_fast(ask, written) for ask in questions(pattern, methods)):
            return make(60)
    return None


def encoded(make: Callable[[int], str], chars: int) -> bytes:
    return make(chars).encode("latin-1", "replace")


def main() -> None:
    import django

    django.setup(set_prefix=False)
    names = modules()
    paths = {name: Path(importlib.import_module(name).__file__ or "") for name in names}
    sources = {name: path.read_text() for name, path in paths.items()}
    patterns: dict[tuple[Any, int, str], tuple[str, Any, frozenset[str]]] = {}
    run_time = []
    for name in names:
        tree = ast.parse(sources[name] if MENTION.search(sources[name]) else "")
        run_time += [f"{name}:{line}" for line in built_when_run(tree)]
        for key, pattern in held_patterns(name):
            readers = [sources[name]] if key.startswith("_") else sources.values()
            uses = uses_of(key, [each for each in readers if key in each])
            patterns.setdefault(
                (pattern.pattern, pattern.flags, key), (f"{name}.{key}", pattern, uses)
            )
        for line, of_field in field_patterns(tree):
            patterns[(of_field, 0, f"{line}")] = (f"{name}:{line}", re.compile(of_field), CALLS)
        for line, method, source, flags in literal_patterns(tree):
            uses = CALLS if method == "compile" else frozenset({method})
            pattern = re.compile(source, flags)
            if method != "compile" or not any(key[0] == source for key in patterns):
                patterns[(source, flags, f"{line}")] = (f"{name}:{line}", pattern, uses)
    report(patterns.values(), run_time)


def report(patterns: Iterable[tuple[str, Any, frozenset[str]]], built_when_run: list[str]) -> None:
    found = [(where, hardest(pattern, uses)) for where, pattern, uses in patterns]
    slow = {where: text for where, text in found if text is not None}
    json.dump({"patterns": len(found), "slow": slow, "built_when_run": built_when_run}, sys.stdout)


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "amber.settings")
    signal.signal(signal.SIGVTALRM, give_up)
    if sys.argv[1:]:
        report([(each, re.compile(each), CALLS) for each in json.loads(sys.argv[1])], [])
    else:
        main()
