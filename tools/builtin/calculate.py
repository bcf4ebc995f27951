"""The built-in tool `calculate` does arithmetic without giving the model an interpreter.

The expression is parsed as Python, but only numbers, operators, constants and the functions named
here are computed; nothing is ever evaluated. Whole numbers are exact up to MAX_DIGITS digits,
others are decimals of 34 significant digits (IEEE 754 decimal128), so that 0.1 + 0.2 is 0.3; sines
and the like are computed as `float` and rounded to 15 places. Every operation is bounded in size,
and with it in time.
"""

import ast
import decimal
import math
import operator
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Annotated, Final

from tools.calling.registry import register_tool
from tools.protocol import ToolError

MAX_EXPRESSION_CHARS: Final = 1_000
MAX_DIGITS: Final = 1_000
"""Far below Python's own limit for writing whole numbers (4,300)."""

_MAX_BITS: Final = math.ceil(MAX_DIGITS * math.log2(10))
_MAX_DEPTH: Final = 100
_FLOAT_PLACES: Final = 15

Number = int | Decimal

_CONTEXT: Final = decimal.Context(
    prec=34,
    rounding=decimal.ROUND_HALF_EVEN,
    Emin=-6_143,
    Emax=6_144,
    traps=[decimal.InvalidOperation, decimal.DivisionByZero, decimal.Overflow],
)

# What people write where Python has another sign.
_SIGNS: Final = str.maketrans(
    {"×": "*", "·": "*", "÷": "/", "−": "-", "–": "-", "（": "(", "）": ")"}
)


@register_tool(idempotent=True, harmless=True, own_words=True)
def calculate(
    expression: Annotated[
        str,
        "For example (9.0 + 6) * 2 ** 3. Operators: + - * / // % **, parentheses."
        " Functions: sqrt, sin, cos, tan (radians), exp, log (natural, or log(x, base)), log10,"
        " min, max, round, floor, ceil, abs. Constants: pi, e.",
    ],
) -> str:
    """Computes an arithmetic expression exactly. Use it for every calculation."""
    if len(expression) > MAX_EXPRESSION_CHARS:
        raise ToolError(f"The expression is longer than {MAX_EXPRESSION_CHARS} characters.")
    text = expression.strip().translate(_SIGNS).replace("^", "**")
    try:
        tree = ast.parse(text, mode="eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise ToolError(f"{expression!r} is not an arithmetic expression.") from None
    try:
        with decimal.localcontext(_CONTEXT):
            return _write_number(_compute(tree.body, text, 0))
    except (ZeroDivisionError, decimal.DivisionByZero):
        raise ToolError("Division by zero.") from None
    except (OverflowError, decimal.Overflow):
        raise ToolError("The result is too large.") from None
    except (ValueError, decimal.InvalidOperation):
        raise ToolError("This has no real result.") from None


def _compute(node: ast.AST, text: str, depth: int) -> Number:
    if depth > _MAX_DEPTH:
        raise ToolError("The expression is nested too deeply.")
    match node:
        case ast.Constant():
            return _constant(node, text)
        case ast.Name(id=name):
            if name not in _CONSTANTS:
                raise ToolError(f"{name!r} is unknown. Constants: {', '.join(_CONSTANTS)}.")
            return _CONSTANTS[name]
        case ast.UnaryOp(op=op, operand=operand) if type(op) in _UNARY:
            return _UNARY[type(op)](_compute(operand, text, depth + 1))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            operands = (_compute(left, text, depth + 1), _compute(right, text, depth + 1))
            return _check_bits(_BINARY[type(op)](*operands))
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]):
            return _call(name, [_compute(each, text, depth + 1) for each in args])
        case _:
            raise ToolError("Only numbers, + - * / // % **, parentheses and functions are known.")


def _constant(node: ast.Constant, text: str) -> Number:
    """Return the number as it is written: a decimal passed through `float` would be another."""
    if isinstance(node.value, int) and not isinstance(node.value, bool):
        return _check_bits(node.value)
    if isinstance(node.value, float):
        return _CONTEXT.create_decimal(ast.get_source_segment(text, node) or "")
    raise ToolError("Only numbers can be computed.")


def _call(name: str, arguments: list[Number]) -> Number:
    if name not in _FUNCTIONS:
        raise ToolError(f"{name!r} is unknown. Functions: {', '.join(_FUNCTIONS)}.")
    function, least, most = _FUNCTIONS[name]
    if not least <= len(arguments) <= most:
        wanted = (
            "1 or more"
            if most == _ANY_NUMBER
            else " or ".join(str(number) for number in range(least, most + 1))
        )
        raise ToolError(f"{name} takes {wanted} arguments, not {len(arguments)}.")
    return _check_bits(function(*arguments))


def _check_bits(value: Number) -> Number:
    if isinstance(value, int) and value.bit_length() > _MAX_BITS:
        raise OverflowError
    return value


def _write_number(value: Number) -> str:
    """Write a number as Python does (15, 15.0, 0.3), with powers of ten only for many zeros."""
    if isinstance(value, int):
        return str(value)
    if value == 0:
        return "0.0"
    plain = value.normalize()
    if not -7 < plain.adjusted() < _CONTEXT.prec:
        return str(plain)
    written = f"{plain:f}"
    return written if "." in written else f"{written}.0"


def _divide(left: Number, right: Number) -> Number:
    """Divide; the result is whole if it comes out even."""
    if isinstance(left, int) and isinstance(right, int) and left % right == 0:
        return left // right
    return Decimal(left) / Decimal(right)


def _floor_divide(left: Number, right: Number) -> Number:
    if isinstance(left, int) and isinstance(right, int):
        return left // right
    quotient = Decimal(left) / Decimal(right)
    return quotient.to_integral_value(decimal.ROUND_FLOOR)


def _remainder(left: Number, right: Number) -> Number:
    """Return the remainder with the sign of the divisor, as Python does for whole numbers."""
    if isinstance(left, int) and isinstance(right, int):
        return left % right
    if not right:
        raise ZeroDivisionError
    rest = Decimal(left) % Decimal(right)
    return rest + right if rest and (rest < 0) != (right < 0) else rest


def _power(base: Number, exponent: Number) -> Number:
    if isinstance(base, int) and isinstance(exponent, int) and exponent >= 0:
        if abs(base) > 1 and exponent * (abs(base).bit_length() - 1) > _MAX_BITS:
            raise OverflowError
        return int(base**exponent)
    if not base and exponent < 0:
        raise ZeroDivisionError
    return Decimal(base) ** Decimal(exponent)


def _exact(operation: Callable[[Number, Number], Number]) -> Callable[[Number, Number], Number]:
    """Keep an operation on whole numbers whole; otherwise both become decimals."""

    def compute(left: Number, right: Number) -> Number:
        if isinstance(left, int) and isinstance(right, int):
            return operation(left, right)
        return operation(Decimal(left), Decimal(right))

    return compute


def _square_root(value: Number) -> Number:
    if isinstance(value, int) and value >= 0 and math.isqrt(value) ** 2 == value:
        return math.isqrt(value)
    return Decimal(value).sqrt()


def _logarithm(value: Number, base: Number | None = None) -> Number:
    if value <= 0 or (base is not None and base <= 0):
        raise ValueError
    divisor = Decimal(1) if base is None else Decimal(base).ln()
    return _clean_digits(Decimal(value).ln() / divisor)


def _logarithm_10(value: Number) -> Number:
    if value <= 0:
        raise ValueError
    return Decimal(value).log10()


def _round(value: Number, places: Number = 0) -> Number:
    """Round halves away from zero, as people do."""
    if not isinstance(places, int) or abs(places) > MAX_DIGITS:
        raise ToolError("round takes a whole number of places.")
    if isinstance(value, int) and places >= 0:
        return value
    if isinstance(value, Decimal) and value == value.to_integral_value():
        value = int(value)
        return value if places >= 0 else _round(value, places)
    rounded = Decimal(value).quantize(Decimal((0, (1,), -places)), decimal.ROUND_HALF_UP)
    return rounded if places > 0 else int(rounded)


def _whole(rounding: str) -> Callable[[Number], Number]:
    def compute(value: Number) -> Number:
        return int(Decimal(value).to_integral_value(rounding))

    return compute


def _by_float(function: Callable[[float], float]) -> Callable[[Number], Number]:
    def compute(value: Number) -> Number:
        return Decimal(repr(round(function(float(value)), _FLOAT_PLACES)))

    return compute


def _clean_digits(value: Decimal) -> Decimal:
    """Drop the last digits, which rounded steps get wrong, so that log(8, 2) is 3."""
    return value.quantize(Decimal((0, (1,), value.adjusted() - 30)))


_CONSTANTS: Final[Mapping[str, Decimal]] = {
    "pi": Decimal("3.141592653589793238462643383279503"),
    "e": Decimal("2.718281828459045235360287471352662"),
}
_UNARY: Final[Mapping[type[ast.unaryop], Callable[[Number], Number]]] = {
    ast.UAdd: lambda value: +value,
    ast.USub: lambda value: -value,
}
_BINARY: Final[Mapping[type[ast.operator], Callable[[Number, Number], Number]]] = {
    ast.Add: _exact(operator.add),
    ast.Sub: _exact(operator.sub),
    ast.Mult: _exact(operator.mul),
    ast.Div: _divide,
    ast.FloorDiv: _floor_divide,
    ast.Mod: _remainder,
    ast.Pow: _power,
}
_ANY_NUMBER: Final = MAX_EXPRESSION_CHARS
_FUNCTIONS: Final[Mapping[str, tuple[Callable[..., Number], int, int]]] = {
    "abs": (abs, 1, 1),
    "ceil": (_whole(decimal.ROUND_CEILING), 1, 1),
    "cos": (_by_float(math.cos), 1, 1),
    "exp": (lambda value: Decimal(value).exp(), 1, 1),
    "floor": (_whole(decimal.ROUND_FLOOR), 1, 1),
    "log": (_logarithm, 1, 2),
    "log10": (_logarithm_10, 1, 1),
    "max": (max, 1, _ANY_NUMBER),
    "min": (min, 1, _ANY_NUMBER),
    "round": (_round, 1, 2),
    "sin": (_by_float(math.sin), 1, 1),
    "sqrt": (_square_root, 1, 1),
    "tan": (_by_float(math.tan), 1, 1),
}
