"""Settings of `mars-envs bench memory`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from .config import at_least


@dataclass(frozen=True, kw_only=True)
class BenchMemoryConfig:
    """Settings of `mars-envs bench memory`."""

    tasks: list[str] = field(default_factory=lambda: ["kg2"], metadata={"metavar": "SOURCE"})
    """Questions: synthetic families (`kg2`, `kv`, `vt?hops=3` ...) or files (HotpotQA, MuSiQue,
    LongBench, our own layout); options stand behind a `?`."""
    lengths: list[str] = field(
        default_factory=lambda: ["2000,8000,32000"], metadata={"metavar": "TOKENS"}
    )
    """Tokens of a document, with commas or blanks between them. Families are made so long; passages
    of files are put among others of the same file. 0: documents as they are."""
    items: int = 20
    """Questions of each source, the same at every length."""
    methods: list[str] = field(
        default_factory=lambda: ["pi_mem", "recurrent", "direct", "retrieval"],
        metadata={"metavar": "METHOD"},
    )
    """Ways of reading: pi_mem, no_check, no_merge, recurrent, gated, direct, retrieval; settings of
    one stand behind a colon: `pi_mem:max_turns=1,order=reference`, `recurrent:passes=2`. `direct`
    has no window by default: it is shown all of a document, up to 1,048,576 characters; give it
    one, `direct:context_tokens=8000`, to compare."""
    agents: list[str] = field(default_factory=lambda: ["oracle"], metadata={"metavar": "AGENT"})
    """Who reads: `oracle` (knows the evidence), `noisy:MISS,FALSE_YES` (an oracle that errs with
    these chances), `lexical` (goes by words, knows nothing), `hf:MODEL_DIR`, or the address of an
    OpenAI-compatible server, `http://HOST:PORT/v1#MODEL`."""
    baseline: str = "recurrent"
    """The method that the others are compared with."""
    seeds: int = 1
    """Episodes of each question with an agent that draws by chance: seeds 0, 1, ..."""
    chunk_tokens: int = 1000
    """The most tokens of a chunk."""
    align: Literal["token", "sentence", "document"] = "token"
    """Where chunks may end."""
    tokenizer: str = "words"
    """What counts tokens: `words`, `module:name`, or `hf:` and the folder or name of a Hugging Face
    tokenizer."""
    settings: str = ""
    """Settings of all methods, comma-separated: `max_turns=4,memory_tokens=512,window=8000`."""
    prompts: str = "prose"
    """What agents are asked with: `prose`, `compact`, a module or `module:name`."""
    machines: list[str] = field(
        default_factory=lambda: ["7b", "35b-moe"], metadata={"metavar": "MACHINE"}
    )
    """Machines that the cost simulator plays the calls on; changes stand behind a colon:
    `7b:slots=8,cache_tokens=0`."""
    reply_lengths: str = ""
    """Tokens that the simulator takes replies for, instead of what agents really said, which is
    brief where they are scripted: `no=7,yes=300,memory=300,answer=200` (all or some)."""
    fill: str = "grammar"
    """Where a file has too few passages for a length: `grammar` adds made-up ones, `refuse` ends
    with an error."""
    seed: int = 0
    """Of the tasks: what families make, which passages stand where."""
    temperature: float = 0.7
    """Sampling temperature of models."""
    concurrency: int = 8
    """Calls of a model in flight."""
    workers: int | None = None
    """Processes that play scripted agents; default: one per core."""
    out: str | None = None
    """Folder of the run; default: a new one below runs/."""
    resume: bool = False
    """Go on with the run in `out`, or with the newest unfinished one of these settings."""

    def __post_init__(self) -> None:
        at_least(self, 1, "items", "seeds", "chunk_tokens", "workers", "concurrency")
        at_least(self, 0, "temperature", "seed")

    @property
    def run_name(self) -> str:
        """What a new run folder is called."""
        return "bench-memory"
