"""`load_reading_tasks`: one way in for every source of reading tasks.

A source is a file or a folder, a data set on a Hugging Face hub, a built-in family, a
`module:function` that makes tasks, or tasks. Formats are told apart by the fields of each record.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal, get_args
from urllib.parse import unquote

from ..errors import InvalidSetting, InvalidTask
from ..importing import import_object
from ..tasks.files import read_records
from ..tasks.hub import PREFIX, parse_name, read_hub
from ..tasks.intake import (
    call_source,
    checked_tasks,
    format_by_fields,
    names_function,
    settle_problems,
)
from ..tasks.options import with_query
from ..tasks.records import Record
from . import hotpotqa, longbench, memagent, musique, records, ruler
from .long_context import LongContextSettings, long_context_tasks
from .passages import passage_pool
from .shards import MANIFEST, PLAN, ShardedTasks
from .task import ReadingTask

RULER_PREFIX: Final = "ruler:"
"""Of the names of RULER's generators."""

Format = Literal["auto", "reading_task", "hotpotqa", "musique", "longbench", "memagent", "ruler"]

REQUIRED: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "reading_task": records.REQUIRED,
        "hotpotqa": hotpotqa.REQUIRED,
        "musique": musique.REQUIRED,
        "longbench": longbench.REQUIRED,
        "memagent": memagent.REQUIRED,
        "ruler": ruler.REQUIRED,
    }
)
"""The fields by which each format is recognised, in the order in which they are tried; a `|` stands
between fields of which one is enough."""

_FOREIGN: Mapping[str, Callable[[Record], ReadingTask]] = MappingProxyType(
    {
        "hotpotqa": hotpotqa.task_from_record,
        "musique": musique.task_from_record,
        "longbench": longbench.task_from_record,
        "memagent": memagent.task_from_record,
        "ruler": ruler.task_from_record,
    }
)
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingOptions:
    """Options of `load_reading_tasks`; see there.

    Raises:
        ValueError: one of them has a value that it cannot have.
    """

    format: Format = "auto"
    on_error: Literal["raise", "skip"] = "raise"
    limit: int | None = None
    tokens: int | None = None
    documents: int | None = None
    seed: int = 0
    headers: bool = True
    pool: str | None = None
    fill: str = "refuse"
    tokenizer: str = "words"

    def __post_init__(self) -> None:
        if self.format not in get_args(Format):
            raise ValueError(
                f"format must be {', '.join(get_args(Format))}, got {self.format!r:.80}"
            )
        if self.on_error not in ("raise", "skip"):
            raise ValueError(f'on_error must be "raise" or "skip", got {self.on_error!r:.80}')
        if self.limit is not None and (not isinstance(self.limit, int) or self.limit < 1):
            raise ValueError(f"limit must be a whole number of at least 1, got {self.limit!r:.80}")
        if self.is_long:
            self.long_context()
        elif self.pool is not None:
            raise ValueError("pool is of long contexts; say how long, with tokens or documents")

    @property
    def is_long(self) -> bool:
        """Whether the tasks get long contexts."""
        return self.tokens is not None or self.documents is not None

    def long_context(self) -> LongContextSettings:
        """Return the settings of these."""
        return LongContextSettings(
            tokens=self.tokens,
            documents=self.documents,
            seed=self.seed,
            headers=self.headers,
            fill=self.fill,
            tokenizer=self.tokenizer,
        )


def load_reading_tasks(
    source: str | os.PathLike[str] | Sequence[ReadingTask], **options: Any
) -> Sequence[ReadingTask]:
    """Load questions about documents.

    Args:
        source: the path of a file (`.jsonl`, `.json`, both also with `.gz`, `.parquet`), of a
            folder with such files, or of one that `write_shards` has written; a data set on a hub,
            `"hf:ORG/NAME[/FILE][:CONFIG][@REVISION][#SPLIT]"`; a synthetic family, `"kg2"`, or a
            generator of RULER, `"ruler:niah_single_1"`; `"module:function"` (called without
            arguments); or tasks. Options may stand behind a name: `"kg2?tokens=64000&n=20"`,
            `"hotpot_dev.json?documents=200&limit=10"`. A built-in name means the family, whatever
            lies in the current folder; `"./kg2"` is a folder.
        options: of a synthetic family or generator, those that it has, and `limit`. Of anything
            else: `format` ("auto" tells each record's by its fields); `on_error` ("raise" lists
            every bad record, "skip" leaves them out and logs how many); `limit` (how many tasks,
            from the front); and of long contexts `tokens` or `documents`, `seed`, `headers`,
            `fill`, `tokenizer` (see `LongContextSettings`) and `pool`, a source whose passages are
            the distractors (default: those of all tasks of the source).

    Returns:
        At least one task, in the order of the source, no id twice. Tasks that are made on demand
        are a lazy sequence; where it has `ids`, these are known without making them.

    Raises:
        InvalidTask: the source cannot be used; the message says where and how to mend it.
        InvalidSetting: an option of a synthetic family or of long contexts cannot work.
        ValueError: an option has a value that it cannot have.
    """
    if not isinstance(source, str | os.PathLike):
        read = _options(options, "")
        return _finished(_checked(source, "the tasks passed in"), read)
    text = os.fspath(source)
    if not text.strip():
        raise InvalidTask(
            f"expected the name of a source of reading tasks, got {text!r:.80}; name a file or a "
            f"folder, or a built-in family: {', '.join(_families())}"
        )
    query = ""
    if "?" in text and not os.path.exists(text):
        text, _, query = text.partition("?")
    by_name = isinstance(source, str)  # a path means what lies there, whatever it is called
    if by_name and text in _families():
        from .synthetic import synthetic_tasks

        if os.path.exists(text):
            _log.warning("%s is the built-in family; what lies here is ./%s", text, text)
        return _made(lambda **given: synthetic_tasks(text, **given), query, options)
    if by_name and text.startswith(RULER_PREFIX):
        ruler_tasks = import_object("mars_envs.reading.ruler_tasks:ruler_tasks")
        name = text.removeprefix(RULER_PREFIX)
        return _made(lambda **given: ruler_tasks(name, **given), query, options)
    read = _options(options, query)
    return _finished(_loaded(text, read), read)


def _options(options: Mapping[str, Any], query: str) -> ReadingOptions:
    known = ReadingOptions.__dataclass_fields__
    for name in options:
        if name not in known:
            raise TypeError(
                f"load_reading_tasks has no option {name!r:.80}; it has {', '.join(known)}"
            )
    return with_query(ReadingOptions(**options), query)


def _loaded(text: str, options: ReadingOptions) -> Sequence[ReadingTask]:
    if os.path.isfile(os.path.join(text, MANIFEST)):
        return ShardedTasks(Path(text))
    if os.path.isfile(os.path.join(text, PLAN)):
        raise InvalidTask(
            f"{text}: the tasks in this folder have not all been written; write them again with "
            "resume=True (--resume), and it goes on where it stopped"
        )
    if names_function(text):
        return _checked(call_source(text, what="reading tasks"), text)
    tasks, problems = _read(text, options)
    settle_problems(text, problems, len(tasks), on_error=options.on_error, log=_log)
    return tuple(tasks)


def _read(text: str, options: ReadingOptions) -> tuple[list[ReadingTask], list[InvalidTask]]:
    tasks: list[ReadingTask] = []
    problems: list[InvalidTask] = []
    places: dict[str, str] = {}
    pools = records.Pools()
    empty = True
    for record in _records(text):
        empty = False
        if isinstance(record, InvalidTask):
            problems.append(record)
            continue
        try:
            task = _task(record, options.format, pools)
        except InvalidTask as problem:
            problems.append(problem if record.place in str(problem) else _placed(record, problem))
            continue
        if task.task_id in places:
            problems.append(
                InvalidTask(
                    f"{record.place}: the task id {task.task_id!r} came before, in "
                    f"{places[task.task_id]}; give each task an id of its own"
                )
            )
            continue
        places[task.task_id] = record.place
        tasks.append(task)
        # Those beyond the limit may be wanted as distractors.
        if len(tasks) == options.limit and (not options.is_long or options.pool):
            break
    if empty:
        raise InvalidTask(f"{text}: expected records of reading tasks, got none")
    return tasks, problems


def _placed(record: Record, problem: InvalidTask) -> InvalidTask:
    return InvalidTask(f"{record.place}: {problem}")


def _records(text: str) -> Iterator[Record | InvalidTask]:
    if text.startswith(PREFIX):
        return read_hub(parse_name(text), language="en")
    if not os.path.exists(text):
        raise InvalidTask(
            f"no reading tasks at {_named(text)}; expected a file or a folder, a data set of a hub "
            f"({PREFIX}ORG/NAME), `module:function`, or a built-in family: "
            f"{', '.join(_families())}"
        )
    return read_records(Path(text))


def _named(text: str) -> str:
    """Quote a name; of a long one, or a text that is none, both ends."""
    return repr(text) if len(text) <= 80 else f"{text[:40]!r} … {text[-40:]!r}"


def _task(record: Record, format: Format, pools: records.Pools) -> ReadingTask:
    name: str = format
    if name == "auto":
        name = format_by_fields(
            record,
            REQUIRED,
            what="unknown format of reading tasks",
            hint="docs/reading.md lists their fields",
        )
    if name == "reading_task":
        return records.task_from_record(record, pools)
    return _FOREIGN[name](record)


def _finished(tasks: Sequence[ReadingTask], options: ReadingOptions) -> Sequence[ReadingTask]:
    wanted = tasks
    if options.limit is not None and options.limit < len(tasks):
        wanted = tasks[: options.limit]
    if not options.is_long:
        return wanted
    source = tasks if options.pool is None else load_reading_tasks(options.pool)
    return long_context_tasks(wanted, pool=passage_pool(source), settings=options.long_context())


def _families() -> tuple[str, ...]:
    from .synthetic import FAMILIES

    return tuple(FAMILIES)


def _made(
    make: Callable[..., Sequence[ReadingTask]], query: str, options: Mapping[str, Any]
) -> Sequence[ReadingTask]:
    """Make tasks; what stands behind the name goes before the keywords."""
    given = dict(options)
    for part in filter(None, query.split("&")):
        key, equals, value = part.partition("=")
        if not equals:
            raise InvalidTask(f"expected key=value behind the `?` of a source, got {part!r:.80}")
        given[key] = unquote(value)
    limit = given.pop("limit", None)
    tasks = make(**given)
    if limit is None:
        return tasks
    try:
        return tasks[: ReadingOptions(limit=int(limit)).limit]
    except (TypeError, ValueError) as error:
        raise InvalidSetting(
            f"limit must be a whole number of at least 1, got {limit!r:.80}"
        ) from error


def _checked(tasks: Iterable[ReadingTask], what: str) -> Sequence[ReadingTask]:
    """Return tasks, made sure that they are tasks, at least one, each id once.

    A sequence that makes its tasks on demand stays as it is.
    """
    if isinstance(tasks, Sequence) and len(tasks) and not isinstance(tasks, list | tuple):
        return tasks
    hint = (
        "build it with mars_envs.reading.ReadingTask(...) or read a file with "
        "load_reading_tasks(path)"
    )
    return checked_tasks(tasks, what, kind=ReadingTask, what="reading task", hint=hint)
