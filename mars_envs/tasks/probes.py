"""Probes for tasks: inputs without expected outputs, from a file or made from the public tests.

`mutated_probes` changes the arguments of public tests a little, as test generators do: numbers
move, texts and lists lose, repeat or swap items. Nobody knows whether a statement allows the
outcome, so right programs may differ on it; but the more they agree, the more it says. Probes are
carried as JSON, so arguments with tuples or sets are left alone, and so is standard input, whose
format a change would break.
"""

from __future__ import annotations

import ast
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..errors import InvalidTask
from ..parsing import parse_python
from .code import AssertBody, CodeTask, FunctionCall, Probe
from .files import read_records

_ATTEMPTS = 20
"""Changes that are tried for each probe: many give what is there already."""


def argument_probes(calls: Sequence[Sequence[Any]], *, prefix: str = "probe") -> tuple[Probe, ...]:
    """Return probes that call a function.

    Args:
        calls: of each call the positional arguments, JSON values.
        prefix: of the names.
    """
    return tuple(
        Probe(name=f"{prefix}/{number}", input="\n".join(map(json.dumps, arguments)))
        for number, arguments in enumerate(calls, start=1)
    )


def load_probes(path: str | Path) -> dict[str, tuple[Probe, ...]]:
    """Read probes in EvalPlus's layout: `task_id`, and `plus_input`, a list of argument lists.

    `plus_input_first` will do, where a file has only some of them. The inputs that the original
    tests use (`base_input`) are left out.

    Returns:
        Probes by task id.

    Raises:
        InvalidTask: the file cannot be read, or a field is missing or of the wrong type.
    """
    found: dict[str, tuple[Probe, ...]] = {}
    for record in read_records(Path(path)):
        if isinstance(record, InvalidTask):
            raise record
        field = "plus_input_first" if record.has("plus_input_first") else "plus_input"
        calls = record.data.get(field)
        if not isinstance(calls, list) or not all(isinstance(call, list) for call in calls):
            raise record.error(field, "a list of lists of arguments", fix="give one list per call")
        found[record.filled("task_id")] = argument_probes(calls, prefix="plus")
    return found


def with_probes(
    tasks: Sequence[CodeTask], probes: Mapping[str, tuple[Probe, ...]]
) -> list[CodeTask]:
    """Return the tasks with the probes that stand under their ids; those without keep their own."""
    return [replace(task, probes=probes.get(task.task_id, task.probes)) for task in tasks]


def mutated_probes(task: CodeTask, count: int = 16, *, seed: int = 0) -> tuple[Probe, ...]:
    """Make probes from the arguments of a task's public tests.

    Args:
        task: its function calls, and calls with literal arguments in its asserts, are changed.
        count: how many to make; fewer where changes run out, none where no call can be changed.
        seed: of the changes; the same seed gives the same probes.
    """
    seeds = [call for test in task.public for call in _calls(task, test) if call]
    if not seeds:
        return ()
    rng = random.Random(f"{seed} {task.task_id}")
    known = {json.dumps(call) for call in seeds}
    found: list[list[Any]] = []
    for number in range(count * _ATTEMPTS):
        call = list(seeds[number % len(seeds)])
        for _ in range(rng.choice((1, 1, 2))):
            place = rng.randrange(len(call))
            call[place] = _changed(call[place], rng)
        text = json.dumps(call)
        if text not in known:
            known.add(text)
            found.append(call)
        if len(found) == count:
            break
    return argument_probes(found, prefix="mutated")


def _calls(task: CodeTask, test: object) -> Iterator[list[Any]]:
    """Return the arguments of the calls that a test makes, as far as they are JSON values."""
    if isinstance(test, FunctionCall):
        yield [json.loads(line) for line in test.arguments.split("\n") if line.strip()]
    module = parse_python(test.body) if isinstance(test, AssertBody) else None
    for node in ast.walk(module) if module else ():
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
            if node.func.id not in (task.entry_point, "candidate"):
                continue
            try:
                arguments = [ast.literal_eval(argument) for argument in node.args]
            except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
                continue
            if all(map(_is_json, arguments)):
                yield arguments


def _is_json(value: object) -> bool:
    if isinstance(value, list):
        return all(map(_is_json, value))
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_json(item) for key, item in value.items())
    return value is None or type(value) in (bool, int, float, str)


def _changed(value: Any, rng: random.Random) -> Any:
    """Return a JSON value that is a little different; None stays."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return rng.choice((value + 1, value - 1, 2 * value, value // 2, rng.randint(0, 9)))
    if isinstance(value, float):
        return rng.choice((value + 1, value - 1, value / 2, 2 * value))
    if isinstance(value, str):
        letters = list(value)
        _rearrange(letters, rng, lambda letter: rng.choice((letter.swapcase(), *letters)))
        return "".join(letters)
    if isinstance(value, list):
        items = list(value)
        _rearrange(items, rng, lambda item: _changed(item, rng))
        return items
    if isinstance(value, dict) and value:
        key = rng.choice(list(value))
        return {**value, key: _changed(value[key], rng)}
    return value


def _rearrange(items: list[Any], rng: random.Random, changed: Any) -> None:
    """Drop, repeat, swap or change an item, in place."""
    if not items:
        return
    place, other = rng.randrange(len(items)), rng.randrange(len(items))
    match rng.randrange(4):
        case 0:
            del items[place]
        case 1:
            items.insert(other, items[place])
        case 2:
            items[place], items[other] = items[other], items[place]
        case _:
            items[place] = changed(items[place])
