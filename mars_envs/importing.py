"""Objects by name: `"module:name"` is plain data, so it fits in an environment's spec."""

from __future__ import annotations

import importlib
import re
from typing import Any

_IMPORTABLE = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")


def is_importable(name: str) -> bool:
    """Whether `name` has the form `module:name`."""
    return _IMPORTABLE.fullmatch(name) is not None


def import_object(name: str) -> Any:
    """Import what `module:name` names; `name` may be dotted.

    Raises:
        ValueError: `name` has another form, or the module has nothing of that name.
        ImportError: there is no such module, or it cannot be imported.
    """
    if not is_importable(name):
        raise ValueError(f"expected 'module:name', got {name!r}")
    module, _, path = name.partition(":")
    value: Any = importlib.import_module(module)
    for part in path.split("."):
        if not hasattr(value, part):
            raise ValueError(f"{name!r}: nothing named {part!r} in {module!r}")
        value = getattr(value, part)
    return value
