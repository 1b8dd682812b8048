"""The formats of task records, told apart by their fields."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, Literal, get_args

from . import apps, evalplus, humaneval, jsonl, kattis, livecodebench, mbpp, repair
from .code import CodeTask
from .intake import format_by_fields
from .records import Record

Format = Literal[
    "auto",
    "code_task",
    "humaneval",
    "humanevalpack",
    "kattis",
    "mbpp",
    "mbpp_plus",
    "quixbugs",
    "humaneval_plus",
    "mbpp_original",
    "livecodebench",
    "apps",
    "deepcoder",
    "verl",
    "synthetic",
]

REQUIRED: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "code_task": jsonl.REQUIRED,
        "humaneval": humaneval.REQUIRED,
        "humanevalpack": repair.REQUIRED_PACK,
        "kattis": kattis.REQUIRED,
        "mbpp": mbpp.REQUIRED_CHECK,
        "mbpp_plus": mbpp.REQUIRED_PLUS,
        "quixbugs": repair.REQUIRED_QUIXBUGS,
        "humaneval_plus": evalplus.REQUIRED,
        "mbpp_original": mbpp.REQUIRED_ORIGINAL,
        "livecodebench": livecodebench.REQUIRED,
        "apps": apps.REQUIRED_APPS,
        "deepcoder": apps.REQUIRED_DEEPCODER,
        "verl": apps.REQUIRED_VERL,
        "synthetic": apps.REQUIRED_SYNTHETIC,
    }
)
"""The fields by which each format is recognised, in the order in which they are tried; a `|` stands
between fields of which one is enough."""

_BUILD: dict[str, Callable[[Record], CodeTask]] = {
    "code_task": jsonl.task_from_record,
    "humanevalpack": repair.task_from_pack_record,
    "kattis": kattis.task_from_record,
    "mbpp": mbpp.task_from_check_record,
    "mbpp_plus": mbpp.task_from_plus_record,
    "quixbugs": repair.task_from_quixbugs_record,
    "mbpp_original": mbpp.task_from_original_record,
    "livecodebench": livecodebench.task_from_record,
    "apps": apps.task_from_apps_record,
    "deepcoder": apps.task_from_deepcoder_record,
    "verl": apps.task_from_verl_record,
    "synthetic": apps.task_from_synthetic_record,
}


def check_format(format: str) -> None:
    """Check that there is a format of that name.

    Raises:
        ValueError: there is none.
    """
    if format not in get_args(Format):
        raise ValueError(f"format must be {', '.join(get_args(Format))}, got {format!r}")


def build_task(
    record: Record, format: Format = "auto", *, public_tests: Mapping[str, str] | None = None
) -> CodeTask:
    """Build the task of a record.

    Args:
        record: the record.
        format: how to read it; `"auto"` tells by its fields.
        public_tests: for HumanEval: a test body in HumanEvalPack's form by task id.

    Raises:
        InvalidTask: it has the fields of no known format, or one is missing or wrong.
    """
    name = detect(record) if format == "auto" else format
    if name == "humaneval":
        return humaneval.task_from_record(record, public_tests=public_tests)
    if name == "humaneval_plus":
        return evalplus.task_from_record(record, public_tests=public_tests)
    return _BUILD[name](record)


def detect(record: Record) -> str:
    """Name the format of a record.

    Raises:
        InvalidTask: it has the fields of none.
    """
    return format_by_fields(
        record,
        REQUIRED,
        what="unknown task format",
        hint="docs/tasks.md lists their fields, and mars_envs.tasks.save_tasks writes tasks of "
        "your own",
    )
