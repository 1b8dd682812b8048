"""Objects by name: `"module:name"` is plain data, so it fits in an environment's spec."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from typing import Any

from .errors import InvalidSetting

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
        raise ValueError(f"expected 'module:name', got {name!r:.80}")
    module, _, path = name.partition(":")
    value: Any = importlib.import_module(module)
    for part in path.split("."):
        if not hasattr(value, part):
            raise ValueError(f"{name!r}: nothing named {part!r} in {module!r}")
        value = getattr(value, part)
    return value


def import_function(
    source: str | Callable[..., Any], *, what: str, known: str, kind: str, must: str
) -> Callable[..., Any]:
    """Return a function that is given, or named as "module:name".

    Args:
        source: what a user gave.
        what: what it is called in messages.
        known: the names that the caller knows without importing, for messages.
        kind: of function, for messages.
        must: what it has to be or do, for messages.

    Raises:
        InvalidSetting: nothing of that name, or not callable.
    """
    found: Any = source
    if isinstance(source, str):
        if not is_importable(source):
            raise InvalidSetting(
                f"unknown {what} {source!r:.80}; expected {known}, or 'module:name' of {kind}"
            )
        try:
            found = import_object(source)
        except (ValueError, ImportError) as error:
            raise InvalidSetting(f"no {what} at {source!r:.80}: {error}") from error
    if not callable(found):
        raise InvalidSetting(f"a {what} {must}, got a {type(found).__name__}: {source!r:.60}")
    function: Callable[..., Any] = found
    return function
