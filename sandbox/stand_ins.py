"""Functions that stand for callables of the test, with their name and parameters.

Programs look at what they are handed: decorators copy the name, `curry` counts the parameters.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_MISSING = object()


def make(name: str, parameters: list[Any] | None, call: Callable[[Any, Any], Any]) -> Any:
    """Return a function that passes its arguments on.

    Args:
        name: of the test's callable.
        parameters: names of the positional ones, how many of them have no name for callers, how
            many have defaults, the name of `*args` or None, names of those by keyword only, which
            of these have defaults, the name of `**kwargs` or None; None for any parameters.
        call: takes positional and keyword arguments.
    """
    if parameters is None:

        def stand_in(*args: Any, **kwargs: Any) -> Any:
            return call(args, kwargs)

    else:
        stand_in = _with_parameters(parameters, call)
    stand_in.__name__ = stand_in.__qualname__ = name
    stand_in.__module__ = "test"
    return stand_in


def _with_parameters(parameters: list[Any], call: Callable[[Any, Any], Any]) -> Any:
    names, nameless, defaults, rest, keywords, optional, more = parameters
    words = [
        f"{name}=_missing" if position >= len(names) - defaults else name
        for position, name in enumerate(names)
    ]
    if nameless:
        words.insert(nameless, "/")
    if rest or keywords:
        words.append(f"*{rest or ''}")
    words += [f"{name}=_missing" if name in optional else name for name in keywords]
    if more:
        words.append(f"**{more}")
    by_name = ", ".join(f"{name!r}: {name}" for name in keywords)
    source = (
        f"def stand_in({', '.join(words)}):\n"
        f"    return _pass(({''.join(f'{name}, ' for name in names)}), "
        f"{rest or '()'}, {{{by_name}}}, {more or '{}'})\n"
    )

    def passed(values: Any, rest: Any, named: dict[str, Any], more: dict[str, Any]) -> Any:
        args: list[Any] = []
        kwargs = {name: value for name, value in named.items() if value is not _MISSING}
        for name, value in zip(names, values, strict=True):
            if value is not _MISSING:
                if len(args) == names.index(name):
                    args.append(value)
                else:  # one before it was left out
                    kwargs[name] = value
        return call((*args, *rest), {**kwargs, **more})

    namespace: dict[str, Any] = {"_missing": _MISSING, "_pass": passed}
    exec(source, namespace)
    return namespace["stand_in"]
