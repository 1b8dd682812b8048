"""What a program answered, as a short digest: equal where its checker tells no difference.

The text or value is normalised as the comparison reads it (white space, case, order, and where
there is a tolerance, numbers to as many digits as it leaves), and addresses of objects are masked,
so that digests are the same in every run and on every backend. Near a rounding boundary two numbers
within the tolerance may differ all the same: digests group answers, `compare` and `values` judge
them.
"""

from __future__ import annotations

import hashlib
import math
import re
from typing import Any

from . import compare, values
from .codec import Tree
from .types import Checker, ValueChecker

CHARACTERS = 16
_ADDRESS = re.compile(rb" at 0x[0-9a-fA-F]+")
_EXACT_DIGITS = 17
_AUTO_DIGITS = 6
_WHOLE = 1 << 53
"""From here on a float no longer says which whole number is meant."""


def of_output(output: bytes, checker: Checker) -> str:
    """Return the digest of an output, as written, in time linear in its length."""
    return _digest(_normal_output(output, checker))


def of_value(value: Tree, checker: ValueChecker) -> str:
    """Return the digest of a value that passed `codec.check`."""
    digits = _digits(checker.float_abs, checker.float_rel)
    normal = _rounded(values.normal(value, checker, outer=True), digits)
    return _digest(repr(normal).encode())


def _digest(data: bytes) -> str:
    return hashlib.sha256(_ADDRESS.sub(b" at 0x", data)).hexdigest()[:CHARACTERS]


def _normal_output(output: bytes, checker: Checker) -> bytes:
    if not checker.case_sensitive:
        output = compare.lower(output).encode("utf-8", "surrogateescape")
    if checker.space_change_sensitive:
        return output
    if checker.kind == "auto":
        digits = _AUTO_DIGITS
    elif checker.float_abs is None and checker.float_rel is None:
        words = checker.kind == "tokens"
        return b" ".join(output.split()) if words else b"\n".join(compare.lines(output))
    else:
        digits = _digits(checker.float_abs, checker.float_rel)
    lines = [output] if checker.kind == "tokens" else compare.lines(output)
    return b"\n".join(
        b" ".join(_rounded_token(token, digits) for token in line.split()) for line in lines
    )


def _rounded_token(token: bytes, digits: int) -> bytes:
    if compare.INTEGER.fullmatch(token):
        negative, magnitude = compare.sign_and_digits(token)
        return (b"-" if negative else b"") + (magnitude or b"0")
    if not compare.DECIMAL.fullmatch(token) or not math.isfinite(number := float(token)):
        return token
    return str(_round(number, digits)).encode()


def _rounded(normal: Any, digits: int) -> Any:
    """Return a normal form with its numbers as text: whole ones in hexadecimal, which is linear."""
    if isinstance(normal, tuple):
        return tuple([_rounded(item, digits) for item in normal])
    if isinstance(normal, float):
        normal = _round(normal, digits)
    return f"{normal:x}" if isinstance(normal, int) else normal


def _round(number: float, digits: int) -> int | str:
    """Return a whole number as an int, any other one as text with so many significant digits."""
    text = f"{number:.{digits}g}"
    for candidate in (number, float(text)):
        if candidate.is_integer() and abs(candidate) < _WHOLE:
            return int(candidate)
    return text


def _digits(float_abs: float | None, float_rel: float | None) -> int:
    """Return how many significant digits the wider of two tolerances leaves."""
    tolerance = max(float_abs or 0.0, float_rel or 0.0)
    if tolerance <= 0.0:
        return _EXACT_DIGITS
    return min(_EXACT_DIGITS, max(1, round(-math.log10(tolerance))))
