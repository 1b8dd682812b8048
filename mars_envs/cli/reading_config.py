"""The settings of the commands about long documents."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from .config import at_least

Align = Literal["token", "sentence", "document"]
Method = Literal["pi_mem", "recurrent", "gated", "direct", "retrieval"]


@dataclass(frozen=True, kw_only=True)
class ReadConfig:
    """Settings of `mars-envs read`."""

    document: str = field(metadata={"positional": True})
    """A file: text, Markdown (.md), HTML (.html) or PDF (.pdf); `-` reads text from standard input.
    With `--item`, questions about documents: a file in any known layout, or a built-in family."""
    question: str | None = field(default=None, metadata={"positional": True})
    """What to answer; default, with `--item`: the item's own question."""
    item: str | None = None
    """The id of an item of `document`, or its place from 0: its document is read, and the answer
    is compared with the item's own."""
    model: str
    """Who reads: the address of an OpenAI-compatible server (http://localhost:8000/v1), a folder or
    Hub name of a Hugging Face model, or `lexical`, an agent that goes by words alone and needs no
    model."""
    name: str | None = None
    """The model's name on the server (the same as ADDRESS#NAME); default: the only one that it
    serves."""
    key_env: str = "OPENAI_API_KEY"
    """The environment variable that holds the server's key; none is sent where it is not set."""
    method: Method = "pi_mem"
    """How to read: all chunks at once with a shared memory, or one of the baselines."""
    max_turns: int = 3
    """The most times that every chunk is read."""
    chunk_tokens: int = 5000
    """The most tokens of a chunk."""
    align: Align = "sentence"
    """Where a chunk may end: after any token, a sentence, or a part (section, page)."""
    tokenizer: str = "words"
    """What counts tokens: `words`, `module:name`, or `hf:` and the folder or name of a Hugging Face
    tokenizer."""
    memory_tokens: int = 1024
    """The most tokens of the memory."""
    reply_tokens: int = 1024
    """The most tokens of a reader's reply, and of the answer."""
    window: int | None = None
    """Tokens that the model takes, prompt and reply together; findings that do not fit into one
    merge are merged in levels. Default: no limit."""
    prompts: str = "prose"
    """`prose`, `compact`, the name of a module (`mine` for mine.py in this folder) or
    `module:name`."""
    settings: str = ""
    """Further settings, comma-separated: `strict=true,order=reference,max_notes=8,retries=4`, or a
    preset of them, `preset=reference`; and what the method takes beside, `passes=2`. docs/pi-mem.md
    lists them."""
    concurrency: int = 8
    """Calls in flight at most."""
    temperature: float = 0.0
    """Of a model; 0 takes the most likely token."""
    seed: int = 0
    """Of a model's sampling."""
    timeout: float = 600.0
    """Seconds to wait for a reply of a server."""
    encoding: str | None = None
    """Of a text file; default: UTF-8, or what the file itself says."""
    errors: Literal["strict", "replace"] = "strict"
    """What becomes of bytes that are not in the encoding: `strict` refuses the text and says where
    they are, `replace` reads U+FFFD for them."""
    json: bool = False
    """Print everything as one JSON object, and nothing else, on standard output."""

    def __post_init__(self) -> None:
        at_least(self, 1, "max_turns", "chunk_tokens", "memory_tokens", "reply_tokens", "window")
        at_least(self, 1, "concurrency")
        at_least(self, 0, "temperature", "seed")
        at_least(self, 1, "timeout")


@dataclass(frozen=True, kw_only=True)
class MakeReadingConfig:
    """Settings of `mars-envs make-data reading`."""

    family: str
    """What to make: a synthetic family (kv, vt, kg2, kg3, compare, count, set, overwrite, none), a
    task of RULER (ruler:niah_single_1, ruler:vt, ruler:fwe, ...), or `hotpotqa` or `musique`, whose
    items from `--source` get long contexts."""
    out: str
    """The folder to write to; `load_reading_tasks` and `--tasks` of other commands read it."""
    tokens: int | None = None
    """Tokens of a document. Default: 8000 of what is generated."""
    documents: int | None = None
    """hotpotqa, musique: instead, passages of a document."""
    n: int | None = None
    """Tasks. Default: 100 of what is generated, all of a source."""
    seed: int = 0
    """Of everything that is drawn."""
    split: str | None = None
    """Synthetic: train, held_out, held_out_names or held_out_templates."""
    chunk_tokens: int | None = None
    """Synthetic: of the chunks that the document will be read in; evidence is placed by these."""
    placement: str | None = None
    """Synthetic: of the evidence: in different chunks, in the same one, or in any."""
    order: str | None = None
    """Synthetic and ruler:vt: of the hops: random, forward or reverse."""
    options: list[str] = field(default_factory=list, metadata={"metavar": "NAME=VALUE"})
    """Further options of the family, say `hops=6` or `haystack=file:essays.txt`."""
    source: str | None = None
    """hotpotqa, musique: the file or folder with the items."""
    pool: str | None = None
    """hotpotqa, musique: a source whose passages are the distractors. Default: those of all
    items."""
    fill: str = "refuse"
    """hotpotqa, musique: what to do where the pool is too small: `refuse`, or `grammar`: fill up
    with generated passages."""
    tokenizer: str = "words"
    """What counts tokens: `words`, `module:name`, or `hf:` and the folder or name of a Hugging Face
    tokenizer."""
    shard_size: int | None = None
    """Tasks of a file. Default: 64, fewer where documents are long."""
    check: bool = False
    """Prove of every synthetic task that its evidence determines the answer and less does not."""
    resume: bool = False
    """Go on with a folder that was begun with the same settings; what comes out has the same bytes
    as without an interruption."""

    def __post_init__(self) -> None:
        at_least(self, 1, "tokens", "documents", "n", "chunk_tokens", "shard_size")
