"""Hold what the anatomy of a turn records against the code: each function of its table exists."""

import importlib
from pathlib import Path

import pytest
import yaml

from bench import litellm_gateway
from bench.anatomy.anatomy import Span, Turn, table
from bench.anatomy.recorder import REPLACED, JournalSpan, replace

NAMES = [(module, name) for module, names in REPLACED.items() for name in names]


@pytest.mark.parametrize(("module", "name"), NAMES)
def test_each_recorded_function_exists(module, name):
    found = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    assert callable(found)


def test_a_call_is_recorded_with_what_it_returned_or_raised():
    class Module:
        @staticmethod
        def divide(one, other):
            return one / other

    lines = []
    replace(Module, "divide", "dividing", lambda *line: lines.append(line))
    assert Module.divide(4, 2) == 2
    with pytest.raises(ZeroDivisionError):
        Module.divide(1, 0)
    assert [part for part, *_ in lines] == ["dividing", "dividing"]


def test_a_span_of_a_turn_is_a_part_and_is_written_once():
    lines = []
    span = JournalSpan("POST", 7, lambda *line: lines.append(line))
    span.rename("POST /chats/")
    span.end()
    span.end()
    assert lines == [("POST /chats/", 7, "")]


def test_statements_count_for_the_innermost_part():
    spans = [
        Span("outer", 0.0, 10.0, 1, ""),
        Span("inner", 2.0, 5.0, 1, ""),
        Span("statement", 3.0, 4.0, 1, "SELECT 1"),
        Span("statement", 6.0, 6.5, 1, "SELECT 2"),
        Span("statement", 3.0, 4.0, 2, "SELECT 3"),
    ]
    _, outer, inner, *_ = table([Turn(spans, 11.0, 160.0, 300.0)])
    assert outer.split() == ["0.0", "10.0", "1", "0.5", "outer"]
    assert inner.split() == ["2.0", "3.0", "1", "1.0", "inner"]


def test_the_gateway_beside_is_told_where_the_provider_is(tmp_path):
    python, provider = tmp_path / "bin" / "python", "http://127.0.0.1:9/v1"
    line = litellm_gateway.command(python, tmp_path, provider_url=provider, port=7)
    assert line[0] == str(tmp_path / "bin" / "litellm")
    config = yaml.safe_load(Path(line[line.index("--config") + 1]).read_text())
    assert config["model_list"][0]["litellm_params"]["api_base"] == provider
    assert line[-1] == "7"
