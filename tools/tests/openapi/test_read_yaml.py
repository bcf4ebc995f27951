import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.openapi.reading.plain_yaml import YamlError, read_yaml

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs"))),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text("abc<é", min_size=1, max_size=5).filter("<<".__ne__), inner)
    ),
    max_leaves=20,
)


def read(text, *, max_depth=50, max_values=1_000):
    return read_yaml(text, max_depth=max_depth, max_values=max_values)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("a: 1", {"a": 1}),
        ("200: x", {"200": "x"}),
        ("true: x", {"true": "x"}),
        ("a: no", {"a": "no"}),
        ("a: on", {"a": "on"}),
        ("a: 2001-01-01", {"a": "2001-01-01"}),
        ("a: '1'", {"a": "1"}),
        ("a: !!str 1", {"a": "1"}),
        ("a: ! 1", {"a": "1"}),
        ("a: !!int 1", {"a": 1}),
        ("a: 1.50", {"a": 1.5}),
        ("a: 1.5.0", {"a": "1.5.0"}),
        ("a: 0x10", {"a": "0x10"}),
        ("a: 1:30", {"a": "1:30"}),
        ("a: 1e400", {"a": "1e400"}),
        (f"a: {'9' * 30}", {"a": 1e30}),
        (f"a: {'9' * 5_000}", {"a": "9" * 5_000}),
        ("a: ~\nb:\nc: null", {"a": None, "b": None, "c": None}),
        ("a: &x [1]\nb: *x", {"a": [1], "b": [1]}),
        ("a: |\n  one\n  two\n", {"a": "one\ntwo\n"}),
    ],
    ids=lambda value: ascii(value)[:20],
)
def test_a_text_is_read_as_json_would_have_it(text, value):
    assert read(text) == value


@given(JSON)
def test_all_json_is_yaml(value):
    assert read(json.dumps(value, ensure_ascii=False)) == value


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: !!python/object:os.system x", "python/object:os.system is not read"),
        ("a: !!python/object/apply:os.system [ls]", "is not read"),
        ("a: !!binary aGk=", "is not read"),
        ("a: &x [*x]", "itself"),
        ("a: *x", "stands for nothing"),
        ("a: {<<: {b: 1}}", "merge keys"),
        ("? [a]\n: b", "an object or a list"),
        ("a: 1\na: 2", "a stands twice"),
        ("a: 1\n---\nb: 2", "more than one document"),
        ("a: [", "line 2"),
        ("a: \0", "characters"),
        ("[" * 60 + "]" * 60, "50 deep"),
        ("a: &x " + "[" * 30 + "]" * 30 + "\nb: " + "[" * 30 + "*x" + "]" * 30, "50 deep"),
        ("- a\n" * 1_001, "1,000 values"),
    ],
    ids=lambda value: ascii(value)[:20],
)
def test_what_cannot_be_read_is_explained(text, words):
    with pytest.raises(YamlError, match=words):
        read(text)


def test_aliases_count_as_what_they_stand_for():
    layers = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    layers += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    with pytest.raises(YamlError, match="1,000,000 values, aliases written out"):
        read("\n".join(layers), max_values=1_000_000)


@given(st.text())
def test_any_text_is_read_or_explained(text):
    try:
        read(text)
    except YamlError as error:
        assert str(error)
