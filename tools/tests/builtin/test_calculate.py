import math
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.builtin.calculate import MAX_DIGITS, calculate
from tools.protocol import ToolError


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("9.0 + 6.0", "15.0"),
        ("0.1 + 0.2", "0.3"),
        ("1 + 2 * 3", "7"),
        ("(1 + 2) * 3", "9"),
        ("-3 + +5", "2"),
        ("6 / 3", "2"),
        ("10 / 4", "2.5"),
        ("1 / 3", "0." + "3" * 34),
        ("7 // 2", "3"),
        ("-7 // 2", "-4"),
        ("-7.5 // 2", "-4.0"),
        ("7 % -3", "-2"),
        ("7.5 % -2", "-0.5"),
        ("2 ** 10", "1024"),
        ("2 ^ 10", "1024"),
        ("2 ^ 3 + 1", "9"),
        ("2 ** -1", "0.5"),
        ("-2 ** 2", "-4"),
        ("1 ** 10000000", "1"),
        ("2 ** 0.5", "1.414213562373095048801688724209698"),
        ("1.10 * 2.00", "2.2"),
        ("1e3 + 1", "1001.0"),
        ("1_000 * 2", "2000"),
        ("3 × 4 ÷ 2 − 1", "5"),
        ("sqrt(16)", "4"),
        ("sqrt(2.25)", "1.5"),
        ("sin(pi / 6)", "0.5"),
        ("sin(pi)", "0.0"),
        ("cos(0)", "1.0"),
        ("tan(pi / 4)", "1.0"),
        ("log(e)", "1.0"),
        ("log(8, 2)", "3.0"),
        ("log10(0.001)", "-3.0"),
        ("exp(0)", "1.0"),
        ("min(3, 1.5, 2)", "1.5"),
        ("max(3, 1.5, 2)", "3"),
        ("round(2.5)", "3"),
        ("round(-2.5)", "-3"),
        ("round(2.675, 2)", "2.68"),
        ("round(1250, -2)", "1300"),
        ("floor(-1.5)", "-2"),
        ("ceil(1.2)", "2"),
        ("abs(-3.50)", "3.5"),
        ("e", "2.718281828459045235360287471352662"),
        ("10 ** 20 * 1.5", "150000000000000000000.0"),
        ("1e-10", "1E-10"),
        ("  1 + 2  ", "3"),
    ],
)
def test_computes(expression, result):
    assert calculate(expression) == result


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("", "is not an arithmetic expression"),
        ("1 +", "is not an arithmetic expression"),
        ("(((1", "is not an arithmetic expression"),
        ("1\0", "is not an arithmetic expression"),
        ("x = 1", "is not an arithmetic expression"),
        ("1; 2", "is not an arithmetic expression"),
        ("1,000 + 1", "Only numbers"),
        ("a.b", "Only numbers"),
        ("[1]", "Only numbers"),
        ("1 < 2", "Only numbers"),
        ("1 if 1 else 2", "Only numbers"),
        ("(lambda: 1)()", "Only numbers"),
        ("abs(*[1])", "Only numbers"),
        ("round(1, ndigits=2)", "Only numbers"),
        ("abs(x for x in y)", "Only numbers"),
        ("~1", "Only numbers"),
        ("1 << 5", "Only numbers"),
        ("True", "Only numbers"),
        ("'a' * 9", "Only numbers"),
        ("1j", "Only numbers"),
        ("...", "Only numbers"),
        ("__import__('os')", "Only numbers"),
        ("x + 1", "'x' is unknown. Constants: pi, e"),
        ("open(1)", "'open' is unknown. Functions: abs"),
        ("abs(1, 2)", "abs takes 1 arguments, not 2"),
        ("log(1, 2, 3)", "log takes 1 or 2 arguments"),
        ("min()", "min takes 1 or more"),
        ("1 / 0", "Division by zero"),
        ("1.5 / 0", "Division by zero"),
        ("1 // 0.0", "Division by zero"),
        ("1 % 0", "Division by zero"),
        ("1.5 % 0", "Division by zero"),
        ("0 ** -1", "Division by zero"),
        ("sqrt(-1)", "no real result"),
        ("log(0)", "no real result"),
        ("(-8) ** 0.5", "no real result"),
        ("9 ** 9 ** 9", "too large"),
        ("10 ** 999 * 10 ** 999", "too large"),
        ("1e400 * 1e6000", "too large"),
        ("1e999999999", "too large"),
        ("floor(1e5000)", "too large"),
        ("exp(1e9)", "too large"),
        ("sin(10 ** 400)", "too large"),
        ("round(1.5, 10 ** 9)", "whole number of places"),
        ("round(1.5, 0.5)", "whole number of places"),
        ("1+" * 600 + "1", "longer than"),
        ("-" * 500 + "1", "nested too deeply"),
        ("1+" * 300 + "1", "nested too deeply"),
        ("(" * 300 + "1" + ")" * 300, "is not an arithmetic expression"),
    ],
)
def test_refuses_what_is_no_arithmetic_or_no_number(expression, words):
    with pytest.raises(ToolError, match=words):
        calculate(expression)


whole = st.integers(-(10**30), 10**30)
decimals = st.decimals(
    allow_nan=False, allow_infinity=False, places=6, min_value=-(10**7), max_value=10**7
)


@given(whole, whole)
def test_whole_numbers_are_exact(a, b):
    assert calculate(f"({a}) + ({b})") == str(a + b)
    assert calculate(f"({a}) * ({b})") == str(a * b)
    if b:
        assert calculate(f"({a}) // ({b})") == str(a // b)
        assert calculate(f"({a}) % ({b})") == str(a % b)


@given(decimals, decimals)
def test_decimals_are_exact(a, b):
    assert Decimal(calculate(f"({a}) + ({b})")) == a + b
    assert Decimal(calculate(f"({a}) * ({b})")) == a * b


@given(decimals.filter(bool), decimals.filter(bool))
def test_a_number_is_its_quotient_times_the_divisor_and_the_rest(a, b):
    quotient = Decimal(calculate(f"({a}) // ({b})"))
    rest = Decimal(calculate(f"({a}) % ({b})"))
    assert quotient * b + rest == a
    assert abs(rest) < abs(b)
    assert not rest or (rest < 0) == (b < 0)


@given(st.floats(-50, 50))
def test_agrees_with_floats(x):
    for name in ("sin", "cos", "exp"):
        assert math.isclose(
            float(calculate(f"{name}({x!r})")), getattr(math, name)(x), rel_tol=1e-9, abs_tol=1e-14
        )


@given(st.text(alphabet="0123456789.+-*/%()e ,_^piabsqrtmx", max_size=60))
def test_any_text_gives_a_short_number_or_a_reason(text):
    try:
        assert len(calculate(text)) <= MAX_DIGITS + 2
    except ToolError as error:
        assert str(error)
