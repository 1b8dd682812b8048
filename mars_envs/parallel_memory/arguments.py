"""The options of the memory environments, sorted to where they belong."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

from ..errors import InvalidSetting
from ..shell import whole_limit
from ..wording import did_you_mean
from .methods import METHODS, MethodMaker
from .reward import RewardSettings
from .settings import MemorySettings, memory_settings, whole_number
from .sources import Chunking, TaskSource
from .workflow import Role

DEFAULT_TASKS = "kg2?tokens=40000"
"""Eight chunks of 5,000 tokens, of a family with two hops; nothing to download."""
SHELL_OPTIONS = ("max_calls", "max_seconds", "max_cycles", "render_mode", "clock")


def shell_arguments(
    method: str,
    pools: Mapping[Role, Sequence[str]],
    *,
    tasks: TaskSource = DEFAULT_TASKS,
    chunk_tokens: int = 5000,
    align: str = "token",
    tokenizer: Any = "words",
    overlap: int = 0,
    document_tokens: int | None = None,
    preset: str = "default",
    prompts: Any = "prose",
    **options: Any,
) -> dict[str, Any]:
    """Return the arguments of `MemoryShell`.

    Args:
        method: see `make_workflow`.
        pools: role -> agents.
        tasks: a built-in family ("kg2?tokens=64000&n=20"), files, "module:function", or tasks (see
            `load_reading_tasks`).
        chunk_tokens: tokens of a chunk.
        align: "token", "sentence" or "document" (see `chunk_document`).
        tokenizer: "words", "module:name", or a tokenizer.
        overlap: tokens that a chunk repeats from the one before.
        document_tokens: of longer documents, the middle is left out; None: nothing is.
        preset: of the settings: "default" or "reference".
        prompts: "prose", "compact", a module or "module:name", or a set of prompts.
        **options: fields of `MemorySettings`, fields of `RewardSettings`, options of the method
            (see `methods.METHODS`), and further arguments of the shell.

    Raises:
        InvalidSetting: an option of an unknown name or out of range.
    """
    settings = _taken(options, _names(MemorySettings))
    reward = _taken(options, _names(RewardSettings))
    own = _taken(options, set(METHODS[method].options))
    if unknown := sorted(set(options) - set(SHELL_OPTIONS)):
        shared = shell_arguments.__kwdefaults__ or {}
        names = {*shared, *SHELL_OPTIONS, *_names(MemorySettings), *_names(RewardSettings)}
        known = sorted(names.union(METHODS[method].options))
        raise InvalidSetting(
            f"unknown options {unknown}{did_you_mean(unknown, known)}; expected some of {known}, "
            "or those of the environment's own (see its docstring)"
        )
    prompts = prompts.__name__ if isinstance(prompts, ModuleType) else prompts
    return {
        "start": MethodMaker(
            method=method,
            settings=memory_settings(preset, **settings),
            prompts=prompts,
            options=own,
        ),
        "pools": pools,
        "tasks": tasks,
        "chunking": Chunking(
            size=whole_number("chunk_tokens", chunk_tokens, 1),
            align=align,
            tokenizer=tokenizer,
            overlap=overlap,
            limit=whole_limit("document_tokens", document_tokens),
        ),
        "reward": RewardSettings(**reward),
        **options,
    }


def pool(role: Role, size: int, option: str = "") -> tuple[str, ...]:
    """Return the names of the agents of a role.

    Raises:
        InvalidSetting: there is none.
    """
    if not isinstance(size, int) or isinstance(size, bool) or size < 1:
        raise InvalidSetting(f"{option} must be a whole number of at least 1, got {size!r:.80}")
    return tuple(f"{role}_{number}" for number in range(size))


def _names(kind: type[Any]) -> set[str]:
    return {field.name for field in dataclasses.fields(kind)}


def _taken(options: dict[str, Any], names: set[str]) -> dict[str, Any]:
    """Take out of `options` what has one of the names."""
    return {name: options.pop(name) for name in sorted(names & set(options))}
