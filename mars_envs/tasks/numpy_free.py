"""Test scripts of EvalPlus without NumPy, which they import for `allclose` alone."""

from __future__ import annotations

import re

_IMPORT = re.compile(r"^import numpy as np[ \t]*$", re.MULTILINE)
_USED = re.compile(r"\bnp\.(\w+)")
_STAND_IN = """
class np:
    class ndarray:
        pass

    @staticmethod
    def allclose(a, b, rtol=1e-05, atol=1e-08):
        if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
            return len(a) == len(b) and all(np.allclose(x, y, rtol, atol) for x, y in zip(a, b))
        if isinstance(b, (list, tuple)):
            return all(np.allclose(a, y, rtol, atol) for y in b)
        if isinstance(a, (list, tuple)):
            return all(np.allclose(x, b, rtol, atol) for x in a)
        return a == b or abs(a - b) <= atol + rtol * abs(b)
""".strip()
"""As NumPy has it, for numbers and lists of them: `ndarray` is what nothing is an instance of."""
_KNOWN = {"allclose", "ndarray", "float32", "float64"}  # dtypes are asked of an ndarray only


def without_numpy(script: str) -> str:
    """Return a script that needs no NumPy, or the script itself where it uses more of it."""
    if not _IMPORT.search(script) or not set(_USED.findall(script)) <= _KNOWN:
        return script
    return _IMPORT.sub(lambda _: _STAND_IN, script, count=1)
