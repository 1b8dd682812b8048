"""From words to a typed configuration to the function that does the work.

Every command is a frozen dataclass; the same dataclass loads from YAML (`--config FILE`).
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import os
import sys
from collections.abc import Sequence
from typing import Any, get_type_hints

from docstring_parser import parse_from_object
from jsonargparse import ArgumentParser, DefaultHelpFormatter, Namespace

from ..errors import MarsEnvsError
from ..terminal import printable
from .bench_memory_config import BenchMemoryConfig
from .config import (
    BenchConfig,
    BenchTreeConfig,
    BuildConfig,
    DemoConfig,
    GradeConfig,
    SandboxConfig,
    SolveConfig,
)
from .errors import known_errors
from .reading_config import MakeReadingConfig, ReadConfig

COMMANDS: dict[str, tuple[str, type, str, str]] = {
    # name: module:function, settings, what it does, examples
    "demo": (
        "demo:demo",
        DemoConfig,
        "Train two tiny coders in one MARS² tree and report what they learned.",
        "mars-envs demo\nmars-envs demo --seed 1 --baseline\nmars-envs demo --resume",
    ),
    "read": (
        "read:read",
        ReadConfig,
        "Answer a question about a document of any length, with evidence and its places.\n\n"
        "exit status: 0; 1 if the model gave no answer; 2 if it could not be reached.",
        "mars-envs read book.pdf 'Who wrote the notes?' --model http://localhost:8000/v1\n"
        "mars-envs read notes.md 'Who wrote them?' --model lexical --chunk-tokens 500\n"
        "mars-envs read page.html 'When?' --model Qwen/Qwen3-0.6B --method recurrent --json\n"
        "mars-envs read $MARS_ENVS_DATA/hotpotqa/hotpot_dev_distractor_head.json --item 0 \\\n"
        "    --model lexical --chunk-tokens 300",
    ),
    "solve": (
        "solve:solve",
        SolveConfig,
        "Run the tree search on a file of tasks and report pass rates.",
        "mars-envs solve --tasks humaneval.jsonl --public-tests humanevalpack.jsonl \\\n"
        "    --agents replay:generations.jsonl --budget 20 --seed 0\n"
        "mars-envs solve --tasks tasks.jsonl --agents hf:models/coder --budget 60 \\\n"
        "    --selector t_plus --score-fn agreement --probes mutated --leave-solved",
    ),
    "bench tree": (
        "bench_tree:bench_tree",
        BenchTreeConfig,
        "Compare selectors and teams: grow many trees, report pass rates against the budget.\n\n"
        "Recorded answers are judged once each; results go to RUN/results.json and tables.md.\n"
        "Replay ignores the parent program, so it compares selection, not refinement.\n\n"
        "exit status: 0; 1 if some trees could not be grown (never scored; --resume tries again).",
        "mars-envs bench tree --preset all --tasks $MARS_ENVS_DATA/functions/humaneval.jsonl \\\n"
        "    --public-tests $MARS_ENVS_DATA/functions/humanevalpack_bugs.jsonl \\\n"
        "    --agents models:$MARS_ENVS_DATA/generations/humaneval.jsonl\n"
        "mars-envs bench tree --preset default,paper,best_of_n --budgets 1,4,16 --seeds 100 \\\n"
        "    --tasks tasks.jsonl --agents 'mixed=replay:a.jsonl,replay:b.jsonl' --alone\n"
        "mars-envs bench tree --resume --out runs/bench-tree ...",
    ),
    "bench memory": (
        "bench_memory:bench_memory",
        BenchMemoryConfig,
        "Compare ways of reading long documents: accuracy, turns, tokens and simulated cost.\n\n"
        "Results go to RUN/results.json, tables.md and curves.png. Scripted agents show what a\n"
        "method can do with readers that know or err in a known way, not what a model would.\n\n"
        "exit status: 0; 1 if some episodes failed (never scored; --resume tries again).",
        "mars-envs bench memory --tasks kg2 kv --lengths 2000,8000,32000 --agents oracle lexical\n"
        "mars-envs bench memory --tasks $MARS_ENVS_DATA/hotpotqa/hotpot_train_100.json \\\n"
        "    --lengths 8000,32000 --methods pi_mem no_merge recurrent retrieval \\\n"
        "    --agents lexical noisy:0.1,0.02 --seeds 3\n"
        "mars-envs bench memory --agents http://localhost:8000/v1#Qwen/Qwen2.5-7B-Instruct",
    ),
    "make-data reading": (
        "make_data:make_reading",
        MakeReadingConfig,
        "Write questions about long documents, of any length, to a folder of shards.",
        "mars-envs make-data reading --family kg2 --tokens 3600000 --n 100 --out data/kg2-3600k\n"
        "mars-envs make-data reading --family vt --tokens 64000 --chunk-tokens 5000 \\\n"
        "    --order reverse --options hops=4 --split held_out --out data/vt-64k\n"
        "mars-envs make-data reading --family ruler:niah_multikey_1 --tokens 128000 --out niah\n"
        "mars-envs make-data reading --family hotpotqa --documents 200 --out data/hotpot-200 \\\n"
        "    --source $MARS_ENVS_DATA/hotpotqa/hotpot_dev_distractor_head.json",
    ),
    "sandbox grade": (
        "grade:grade",
        GradeConfig,
        "Grade programs and compare with the verdicts recorded for them.\n\n"
        "exit status: 0 if every submission was graded and got its recorded verdict (if any); 1 if "
        "a\nverdict differs; 2 if something could not be graded: a bad line, an unknown task, "
        "tests that\nare not supported, a broken checker, a failure of the sandbox (never scored).",
        "mars-envs sandbox grade $MARS_ENVS_DATA/problems/kattis_problems.jsonl \\\n"
        "    --time-factor 2 --output graded.jsonl\n"
        "mars-envs sandbox grade $MARS_ENVS_DATA/functions/humaneval.jsonl \\\n"
        "    --submissions $MARS_ENVS_DATA/generations/humaneval.jsonl --workers 2",
    ),
    "sandbox doctor": (
        "sandbox:doctor",
        SandboxConfig,
        "Say which backends work here, what they guarantee, and how to mend the rest.\n\n"
        "exit status: 0 if untrusted programs can be run here, 1 if not.",
        "mars-envs sandbox doctor",
    ),
    "sandbox build": (
        "sandbox:build",
        BuildConfig,
        "Build the guest image (it is also built on first use).",
        "mars-envs sandbox build\nmars-envs sandbox build --packages numpy sympy",
    ),
    "sandbox bench": (
        "bench:bench",
        BenchConfig,
        "Measure what judging costs: ours beside a host subprocess, docker run and docker exec.",
        "mars-envs sandbox bench\n"
        "mars-envs sandbox bench --modes host,docker,bubblewrap --rounds 3 --output bench.json\n"
        "mars-envs sandbox bench --uptime 20000 --sandbox docker",
    ),
    "sandbox reap": (
        "sandbox:reap",
        SandboxConfig,
        "Remove the containers whose owner is gone.",
        "mars-envs sandbox reap",
    ),
}
GROUPS = {
    "bench": "measure what search is worth, and ways of reading",
    "make-data": "write data sets of any size",
    "sandbox": "check, build or clean the sandbox that runs untrusted programs",
}


class _Formatter(DefaultHelpFormatter, argparse.RawDescriptionHelpFormatter):
    """Keeps the line breaks of the examples in a description."""


def run(argv: Sequence[str] | None = None) -> int:
    """Parse `argv` and run the command; errors made on purpose end in one line, not a traceback."""
    # "module:name" is looked for in the current folder, too; last, so that nothing is shadowed.
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    try:
        settings = build_parser().parse_args(None if argv is None else list(argv))
    except UnicodeDecodeError as error:
        print(f"mars-envs: the settings file is not UTF-8 text: {error}", file=sys.stderr)
        return 2
    name, values = settings.command, settings[settings.command]
    if name in GROUPS:
        name, values = f"{name} {values.action}", values[values.action]
    place, config_type, _, _ = COMMANDS[name]
    module, function = place.split(":")
    command = getattr(importlib.import_module(f".{module}", __package__), function)
    try:
        return int(command(config_type(**_fields(config_type, values))))
    except KeyboardInterrupt:
        print("mars-envs: interrupted", file=sys.stderr)
        return 130
    except Exception as error:
        # An OSError names its file: a missing folder or permission is the user's to mend.
        if not isinstance(error, (MarsEnvsError, OSError, *known_errors())):
            raise
        # Servers, models and files have written parts of it.
        print(f"mars-envs: {printable(str(error), keep=chr(10))}", file=sys.stderr)
        return 2


def build_parser() -> ArgumentParser:
    """Build the parser of the whole command line."""
    parser = _parser(
        "Teams of language models as reinforcement-learning environments.",
        "mars-envs demo\nmars-envs solve --help",
    )
    parser.prog = "mars-envs"
    commands = parser.add_subcommands(dest="command", required=True)
    groups = {}
    for name, text in GROUPS.items():
        members = [full for full in COMMANDS if full.startswith(f"{name} ")]
        group = _parser(text.capitalize() + ".", "\n".join(COMMANDS[full][3] for full in members))
        commands.add_subcommand(name, group, help=text)
        groups[name] = group.add_subcommands(dest="action", required=True)
    for full, (_, config_type, text, examples) in COMMANDS.items():
        command = _parser(text, examples)
        command.add_argument("--config", action="config", help="a YAML file with these settings")
        _add_settings(command, config_type)
        *group_name, name = full.split()
        place = groups[group_name[0]] if group_name else commands
        place.add_subcommand(name, command, help=text)
    return parser


def _parser(text: str, examples: str) -> ArgumentParser:
    indented = "\n".join(f"  {line}" for line in examples.splitlines())
    return ArgumentParser(description=f"{text}\n\nexample:\n{indented}", formatter_class=_Formatter)


def _add_settings(parser: ArgumentParser, config_type: type) -> None:
    """Add an option for every field, documented by the docstring under the field."""
    texts = {param.arg_name: param.description for param in parse_from_object(config_type).params}
    hints = get_type_hints(config_type)
    for field in dataclasses.fields(config_type):
        option = "--" + field.name.replace("_", "-")
        if field.metadata.get("positional"):
            # Where there is none, the value is None: positional words have no other default.
            count: dict[str, Any] = {} if field.default is dataclasses.MISSING else {"nargs": "?"}
            parser.add_argument(field.name, type=hints[field.name], help=texts[field.name], **count)
        elif "metavar" in field.metadata:
            parser.add_argument(
                option,
                nargs="+",
                metavar=field.metadata["metavar"],
                default=_default(field),
                help=texts[field.name],
            )
        elif hints[field.name] is bool:
            parser.add_argument(option, action="store_true", help=texts[field.name])
        elif field.default is dataclasses.MISSING:
            parser.add_argument(
                option, type=hints[field.name], required=True, help=texts[field.name]
            )
        else:
            parser.add_argument(
                option, type=hints[field.name], default=field.default, help=texts[field.name]
            )


def _default(field: dataclasses.Field[Any]) -> Any:
    made = field.default_factory
    return field.default if made is dataclasses.MISSING else made()


def _fields(config_type: type, values: Namespace) -> dict[str, Any]:
    return {field.name: values[field.name] for field in dataclasses.fields(config_type)}
