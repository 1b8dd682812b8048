"""Whether an output is the expected one.

The comparison runs on the host, on bytes as the program wrote them: nothing is evaluated, no token
becomes an unbounded integer, and the work is linear in both texts. Only ASCII whitespace separates
or pads; a NUL or a byte that is not UTF-8 is an ordinary character that equals nothing clean.

Tolerances follow the output validator of Kattis problem packages: a token passes if the absolute or
the relative error is small enough. Two whole numbers are never "close": they are equal or not.
"""

from __future__ import annotations

import math
import re

from .types import Checker

_SPACE = b" \t\n\r\v\f"
# Possessive quantifiers: no backtracking, so a million digits cost no more than their length.
INTEGER = re.compile(rb"[+-]?[0-9]++")
_TOKEN_OR_SPACE = re.compile(rb"[ \t\n\r\v\f]++|[^ \t\n\r\v\f]++")
_POINT_OR_EXPONENT = re.compile(rb"[.eE]")
_AUTO_TOLERANCE = 1e-6
DECIMAL = re.compile(rb"[+-]?(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][+-]?[0-9]++)?")


def matches(output: bytes, expected: str, checker: Checker) -> bool:
    """Return whether `output` is an accepted answer where `expected` is a right one.

    Args:
        output: standard output of the program, as written.
        expected: a right answer.
        checker: what counts as equal.
    """
    return explain(output, expected, checker) is None


def explain(output: bytes, expected: str, checker: Checker) -> str | None:
    """Return None if `matches`, else one line that says where the output first differs.

    The line quotes neither text, so that it may be shown where the expected output may not.
    """
    wanted = encode_text(expected)
    if output == wanted:
        return None
    if checker.space_change_sensitive:
        pieces = [_TOKEN_OR_SPACE.findall(text) for text in (output, wanted)]
        return _explain_sequence("token or space", pieces[0], pieces[1], checker)
    if checker.kind == "tokens":
        return _explain_sequence("token", output.split(), wanted.split(), checker)
    got_lines, wanted_lines = lines(output), lines(wanted)
    return _explain_sequence("line", got_lines, wanted_lines, checker)


def _explain_sequence(
    unit: str, got: list[bytes], wanted: list[bytes], checker: Checker
) -> str | None:
    same = _same_line if unit == "line" else _same_token
    for number, (left, right) in enumerate(zip(got, wanted, strict=False), start=1):
        if left != right and not same(left, right, checker):
            return f"{unit} {number} differs"
    if len(got) != len(wanted):
        return f"expected {len(wanted)} {unit}s, got {len(got)}"
    return None


def lines(text: bytes) -> list[bytes]:
    """Return the lines that count, without the white space that does not."""
    return [line.rstrip(_SPACE) for line in text.rstrip(_SPACE).split(b"\n")]


def _same_line(got: bytes, wanted: bytes, checker: Checker) -> bool:
    if not checker.case_sensitive and lower(got) == lower(wanted):
        return True
    if checker.kind != "auto" and checker.float_abs is None and checker.float_rel is None:
        return False
    left, right = got.split(), wanted.split()
    return len(left) == len(right) and all(
        a == b or _same_token(a, b, checker) for a, b in zip(left, right, strict=True)
    )


def _same_token(got: bytes, wanted: bytes, checker: Checker) -> bool:
    if not checker.case_sensitive and lower(got) == lower(wanted):
        return True
    if checker.kind == "auto":
        if not (_POINT_OR_EXPONENT.search(got) or _POINT_OR_EXPONENT.search(wanted)):
            return False
        return _close(got, wanted, _AUTO_TOLERANCE, _AUTO_TOLERANCE)
    if checker.float_abs is None and checker.float_rel is None:
        return False
    if INTEGER.fullmatch(got) and INTEGER.fullmatch(wanted):
        return sign_and_digits(got) == sign_and_digits(wanted)
    return _close(got, wanted, checker.float_abs, checker.float_rel)


def _close(got: bytes, wanted: bytes, float_abs: float | None, float_rel: float | None) -> bool:
    if not (DECIMAL.fullmatch(got) and DECIMAL.fullmatch(wanted)):
        return False
    a, b = float(got), float(wanted)
    if not (math.isfinite(a) and math.isfinite(b)):
        return False
    error = abs(a - b)
    absolute = float_abs is not None and error <= float_abs
    relative = float_rel is not None and error <= float_rel * abs(b)
    return absolute or relative


def sign_and_digits(integer: bytes) -> tuple[bool, bytes]:
    """Sign and digits: compared as text, for `int` is quadratic and stops at 4300 digits."""
    digits = integer.lstrip(b"+-0")
    return bool(digits) and integer.startswith(b"-"), digits


def lower(text: bytes) -> str:
    """Return what is compared where case does not count."""
    return text.decode("utf-8", "surrogateescape").lower()


def encode_text(text: str) -> bytes:
    """Invert the decoding of `CaseResult.stdout`; other lone surrogates match no clean byte."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")
