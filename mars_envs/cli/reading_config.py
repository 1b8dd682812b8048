"""The settings of the commands about long documents."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from .config import _at_least

Align = Literal["token", "sentence", "document"]
Method = Literal["pi_mem", "recurrent", "gated", "direct", "retrieval"]


@dataclass(frozen=True, kw_only=True)
class ReadConfig:
    """Settings of `mars-envs read`."""

    document: str = field(metadata={"positional": True})
    """A file: text, Markdown (.md), HTML (.html) or PDF (.pdf); `-` reads text from standard
    input."""
    question: str = field(metadata={"positional": True})
    """What to answer."""
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
    """What counts tokens: `words`, `module:name`, or a folder or name of a Hugging Face
    tokenizer."""
    memory_tokens: int = 1024
    """The most tokens of the memory."""
    reply_tokens: int = 1024
    """The most tokens of a reader's reply, and of the answer."""
    window: int | None = None
    """Tokens that the model takes, prompt and reply together; findings that do not fit into one
    merge are merged in levels. Default: no limit."""
    prompts: str = "prose"
    """`prose`, `compact` or `module:name`."""
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
    json: bool = False
    """Print everything as one JSON object, and nothing else, on standard output."""

    def __post_init__(self) -> None:
        _at_least(self, 1, "max_turns", "chunk_tokens", "memory_tokens", "reply_tokens", "window")
        _at_least(self, 1, "concurrency")
        _at_least(self, 0, "temperature", "seed")
        _at_least(self, 1, "timeout")
