"""The settings of every command, as typed, frozen dataclasses: options and YAML keys alike."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from ..errors import InvalidSetting
from ..tasks.formats import Format

Backend = Literal["auto", "docker", "bubblewrap"]
FeedbackLevel = Literal["none", "verdict", "summary", "full"]
Tests = Literal["auto", "all", "public", "hidden", "recorded"]


def at_least(config: Any, least: int, *names: str) -> None:
    """Refuse settings below a bound, naming the option."""
    for name in names:
        value = getattr(config, name)
        if value is not None and value < least:
            option = name.replace("_", "-")
            raise InvalidSetting(f"--{option} must be at least {least}, got {value}")


def _share(config: Any, name: str) -> None:
    value = getattr(config, name)
    if not 0.0 <= value <= 1.0:
        raise InvalidSetting(f"--{name.replace('_', '-')} is a share from 0 to 1, got {value}")


@dataclass(frozen=True, kw_only=True)
class SandboxConfig:
    """Settings of `mars-envs sandbox`."""

    docker_host: str | None = None
    """Address of the engine; default: DOCKER_HOST, the standard socket, or `make engine`'s."""


@dataclass(frozen=True, kw_only=True)
class BuildConfig(SandboxConfig):
    """Settings of `mars-envs sandbox build`."""

    docker_host: str | None = None
    """Address of the engine; default: DOCKER_HOST, the standard socket, or `make engine`'s."""
    packages: list[str] | None = field(default=None, metadata={"metavar": "NAME"})
    """Installed packages that programs may import; what they depend on comes along."""
    python: str | None = None
    """Path of the interpreter that programs run in; default: the one that runs here."""


@dataclass(frozen=True, kw_only=True)
class BenchConfig:
    """Settings of `mars-envs sandbox bench`."""

    modes: str = "all"
    """What to measure: `all`, or some of host,docker-run,docker-exec,docker,bubblewrap."""
    rounds: int = 5
    """Rounds; every way takes its turn in each."""
    programs: int = 40
    """Programs per round and way."""
    tests: int = 10
    """Tests per program."""
    clients: int = 2
    """Programs judged at once."""
    uptime: int | None = None
    """Instead: run so many tests in one pool and compare its first thousand with its last."""
    sandbox: Backend = "auto"
    """The backend of `--uptime`; `auto`: Docker where an engine answers, else bubblewrap."""
    profile: bool = False
    """Also print where the CPU time went, by kind of process."""
    markdown: bool = False
    """Also print the table as docs/sandbox.md has it."""
    docker_host: str | None = None
    """Address of the engine for `--uptime`, and where none of our own can be started (which takes
    root); default: DOCKER_HOST, the standard socket, or `make engine`'s."""
    output: str | None = None
    """Where to write all figures, as JSON."""

    def __post_init__(self) -> None:
        at_least(self, 1, "rounds", "programs", "tests", "clients", "uptime")


@dataclass(frozen=True, kw_only=True)
class GradeConfig:
    """Settings of `mars-envs sandbox grade`."""

    problems: str = field(metadata={"positional": True})
    """Tasks: a .jsonl file (Kattis, HumanEval, HumanEvalPack, MBPP+, MBPP, QuixBugs, our own
    layout), a built-in family or `module:function`."""
    submissions: list[str] | None = field(default=None, metadata={"metavar": "FILE"})
    """JSON lines with `task_id`, `text`, perhaps `form` and `observed`; files of recorded
    generations as they are. Default: the submissions or solutions in the problems' own file."""
    format: Format = "auto"
    """Layout of the problems' file; `auto` tells it by the fields."""
    tests: Tests = "auto"
    """Which tests: `all`, `public`, `hidden`; `recorded`, those that a verdict is recorded for; or
    `auto`, what the data set's own judge runs: all of a program's on standard input, the hidden
    ones (which hold the others) of a function's."""
    preamble: str = ""
    """Python source to put before every whole program, e.g. `from typing import *`: published
    harnesses differ in it."""
    sandbox: Backend = "auto"
    """Where programs run; `auto`: Docker where an engine answers, else bubblewrap."""
    workers: int | None = None
    """Programs judged at once; default: one per core."""
    stop_at_first_failure: bool = False
    """Leave out a program's tests after the first that fails."""
    time_factor: float = 1.0
    """Multiplies every task's CPU time limit."""
    memory_mb: int | None = None
    """MiB per test, in place of the task's own limit."""
    limit: int | None = None
    """Only the first so many submissions."""
    output: str | None = None
    """Where to write one JSON line per submission; results that it holds already are not made
    again."""
    packages: list[str] | None = field(default=None, metadata={"metavar": "NAME"})
    """Installed packages that programs may import; what they depend on comes along."""
    python: str | None = None
    """Path of the interpreter that programs run in; default: the one that runs here."""
    worker_memory_mb: int | None = None
    """MiB of one worker, all processes of a program together, and the most that a task's memory
    limit may be; default: 1088."""
    docker_host: str | None = None
    """Address of the engine, in which `auto` then runs programs or fails; default: DOCKER_HOST, the
    standard socket, or `make engine`'s."""

    def __post_init__(self) -> None:
        at_least(self, 1, "workers", "memory_mb", "worker_memory_mb", "limit")
        if not 0 < self.time_factor < float("inf"):
            raise InvalidSetting(f"--time-factor must be above 0, got {self.time_factor}")


@dataclass(frozen=True, kw_only=True)
class SolveConfig:
    """Settings of `mars-envs solve`."""

    tasks: str = "tiny_code"
    """Tasks: a file or folder in one of the published layouts, a data set of a hub
    (hf:ORG/NAME#SPLIT), or a built-in family; options behind a `?` (see docs/tasks.md)."""
    public_tests: str | None = None
    """A file of public tests in HumanEvalPack's layout, for HumanEval tasks."""
    agents: str = ""
    """Who writes: comma-separated `replay:FILE`, `replay:FILE#MODEL`, `models:FILE` (an agent for
    each model in the file), `hf:MODEL_DIR` (a chat model). One agent each."""
    budget: int = 20
    """Nodes per tree."""
    seed: int = 0
    """Seed of the search, the replay order and the sampling."""
    selector: str = "default"
    """Search: a preset (`default`, `paper`, `marti_code`, `t_plus`, `best_of_n` ...: all are in
    docs/mars2.md) or `module:name`."""
    agent_mix: float = 0.0
    """Share of uniform choice in the choice of the agent, 0 to 1."""
    score_fn: str = "none"
    """A reward model that chooses among answers of equal score: `agreement` of test outputs,
    `module:name`, or `none` (the latest)."""
    score_weight: float = 1.0
    """What drives the search is this share of the public score and the rest of `--score-fn`."""
    probes: str | None = None
    """Inputs on which `agreement` compares programs: a file in EvalPlus' layout, or `mutated`."""
    feedback: FeedbackLevel = "full"
    """What a refinement is told of its parent's public tests."""
    stop_on_solved: bool = False
    """End a tree as soon as an answer passes every public test."""
    leave_solved: bool = False
    """Refine no answer that passes every public test."""
    extract: str = "default"
    """How programs are taken out of replies: `default`, `lcb` (LiveCodeBench), `module:name`."""
    sandbox: Backend = "auto"
    """Where programs run; `auto`: Docker where an engine answers, else bubblewrap."""
    workers: int | None = None
    """Programs judged at once; default: one per core."""
    concurrency: int = 8
    """Trees grown at once."""
    limit: int | None = None
    """Only the first so many tasks."""
    max_tokens: int = 512
    """Tokens per reply of an `hf` agent."""
    temperature: float = 0.8
    """Sampling temperature of an `hf` agent."""
    out: str | None = None
    """Where to write the rollouts, as JSON lines."""

    def __post_init__(self) -> None:
        at_least(self, 1, "budget", "workers", "concurrency", "limit", "max_tokens")
        at_least(self, 0, "seed", "temperature")
        _share(self, "agent_mix")
        _share(self, "score_weight")


@dataclass(frozen=True, kw_only=True)
class BenchTreeConfig:
    """Settings of `mars-envs bench tree`."""

    tasks: str = "tiny_code"
    """Tasks: a .jsonl file (HumanEval, MBPP, Kattis, our own layout) or a built-in family."""
    public_tests: str | None = None
    """A file of public tests in HumanEvalPack's layout, for HumanEval tasks."""
    probes: str | None = None
    """Inputs without expected outputs, for `--score-fn agreement`: a file in EvalPlus' layout
    (`task_id`, `plus_input`), or `mutated`, made from the public tests."""
    agents: list[str] = field(default_factory=list, metadata={"metavar": "TEAM"})
    """Teams, each in quotes: comma-separated `replay:FILE`, `replay:FILE#MODEL`, `models:FILE` (an
    agent for each model in the file), `hf:MODEL_DIR`; `NAME=...` names the team, `;` may stand
    between teams."""
    alone: bool = False
    """Also let every agent of these teams grow trees alone."""
    preset: str = "all"
    """Selectors, comma-separated: names of presets, `module:name`, or `all` presets."""
    baseline: str = "best_of_n"
    """The selector that the others are compared with."""
    score_fn: str = "none"
    """A reward model that chooses the answers of the same trees, too, for comparison: `agreement`
    of test outputs (which needs `--probes`), `module:name`, or `none`."""
    budgets: str = ""
    """Numbers of nodes to report, comma-separated; default: 1,2,3,5,8,12,20 as far as the
    recordings of each task go, and what they hold."""
    seeds: int = 20
    """Trees of each task, team and selector: seeds 0, 1, ..."""
    oracle: bool = False
    """Also use tasks whose only tests both drive the search and decide."""
    limit: int | None = None
    """Only the first so many tasks."""
    sandbox: Backend = "auto"
    """Where programs run; `auto`: Docker where an engine answers, else bubblewrap."""
    workers: int | None = None
    """Processes that grow trees, and programs judged at once; default: one per core."""
    concurrency: int = 8
    """Trees grown at once where an `hf` agent writes."""
    prompts: str = "prose"
    """What an `hf` agent is asked with: `prose`, `compact` (for the tiny coders of `mars-envs
    demo`), a module or `module:name`."""
    max_tokens: int = 512
    """Tokens per reply of an `hf` agent."""
    temperature: float = 0.8
    """Sampling temperature of an `hf` agent."""
    verdicts: str | None = None
    """A file of verdicts to use and to add to, so that several runs judge an answer once; default:
    one in the run's folder."""
    out: str | None = None
    """Folder of the run; default: a new one below runs/."""
    resume: bool = False
    """Go on with the run in `out`, or with the newest unfinished one of these settings."""

    def __post_init__(self) -> None:
        at_least(self, 1, "seeds", "limit", "workers", "concurrency", "max_tokens")
        at_least(self, 0, "temperature")

    @property
    def run_name(self) -> str:
        """What a new run folder is called."""
        return "bench-tree"


@dataclass(frozen=True, kw_only=True)
class DemoConfig:
    """Settings of `mars-envs demo`."""

    seed: int = 0
    """Seed of everything: models, warm-up, trees, sampling, evaluation."""
    steps: int = 40
    """Training steps."""
    trees: int = 64
    """Trees per training step."""
    budget: int = 8
    """Nodes per tree."""
    baseline: bool = False
    """Train on independent samples (vanilla GRPO) instead of trees, at equal sample count."""
    agent_mix: float = 0.5
    """Share of uniform choice in the choice of the agent; 0 starves the slower learner."""
    sandbox: Backend = "auto"
    """Where programs run; `auto`: Docker where an engine answers, else bubblewrap."""
    workers: int | None = None
    """Programs judged at once; default: one per core."""
    eval_tasks: int = 100
    """Held-out tasks for the evaluation before and after."""
    checkpoint_every: int = 10
    """Steps between checkpoints."""
    run_dir: str | None = None
    """Run folder; default: a new folder below runs/."""
    resume: bool = False
    """Go on with the newest unfinished run of these settings (or with `run_dir`)."""

    def __post_init__(self) -> None:
        at_least(self, 1, "steps", "trees", "workers", "eval_tasks", "checkpoint_every")
        at_least(self, 2, "budget")
        at_least(self, 0, "seed")
        _share(self, "agent_mix")

    @property
    def run_name(self) -> str:
        """What a new run folder is called."""
        return f"demo-{'baseline' if self.baseline else 'tree'}-seed{self.seed}"
