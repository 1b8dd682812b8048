"""What agents of a memory environment are told: by whom it was said, and that prompts hold it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from .moments import Moment

_WORD = re.compile(r"\w+")


class Texts:
    """Follows what is said in one episode, and so what may be known."""

    def __init__(self) -> None:
        self._replies: dict[tuple[int, int], str] = {}
        """By turn and chunk."""
        self._said = ""
        self._last_merge: str | None = None
        """A reply that may have been the last merge of its turn."""
        self._memory: str | None = None
        """The reply that made the memory."""

    def hear(self, agent: str, moment: Moment, seen: Mapping[str, Any]) -> None:
        """Take what an agent came to that saw `seen`, and check what it was given to merge."""
        info, text = moment.infos[agent], moment.actions.get(agent, "")
        if seen["role"] == "merger":
            self._check_notes(agent, info["turn"], seen)
            self._last_merge = text if info["status"] == "done" else None
        elif seen["role"] == "reader":
            self._replies[info["turn"], info["chunk_index"]] = text
        self._said += f"\n{text}".casefold()

    def see(self, agent: str, moment: Moment) -> None:
        """Check what is asked of an agent.

        Raises:
            AssertionError: it is told what nobody said, or not told what it should know.
        """
        seen, info = moment.observations[agent], moment.infos[agent]
        if seen["role"] in ("reader", "answerer"):
            self._check_memory(agent, seen, info)
        check_prompt_holds(agent, seen, cut=info["prompt_truncated"])

    def _check_memory(self, agent: str, seen: Mapping[str, Any], info: Mapping[str, Any]) -> None:
        if self._last_merge is not None:
            self._memory, self._last_merge = self._last_merge, None
        source = self._said if self._memory is None else self._memory
        missing = _missing(seen["memory"], source)
        assert not missing, (
            f"{agent} sees the memory {seen['memory']!r:.200}, but {missing} is not in "
            f"{source!r:.200}; the memory is what the last merge made of it"
        )
        check_tokens(
            f"info['memory_tokens'] is {info['memory_tokens']}, and {agent} sees the memory",
            info["memory_tokens"],
            seen["memory"],
        )
        assert seen["memory"] or not info["memory_tokens"], (
            f"{agent} sees no memory, but info['memory_tokens'] is {info['memory_tokens']}; "
            "whoever reads or answers is given the memory"
        )

    def _check_notes(self, agent: str, turn: int, seen: Mapping[str, Any]) -> None:
        for note in json.loads(seen["selected"] or "[]"):
            alone = note["first"] == note["last"]
            said = self._replies.get((turn, note["first"]), "") if alone else self._said
            missing = _missing(note["text"], said)
            assert not missing, (
                f"{agent} is given {note['text']!r:.200} as a note from the chunks "
                f"{note['first']} to {note['last']}, but {missing} is not in what was said of "
                f"them: {said!r:.200}"
            )


def check_prompt_holds(agent: str, seen: Mapping[str, Any], *, cut: bool) -> None:
    """Check that every word of the parts of a request is in its prompt, unless that is cut."""
    notes = [note["text"] for note in json.loads(seen["selected"] or "[]")]
    parts = [(name, seen[name]) for name in ("question", "memory", "chunk")]
    for name, text in [] if cut else [*parts, *(("notes", note) for note in notes)]:
        missing = _missing(text, seen["prompt"])
        assert not missing, (
            f"the prompt of {agent} lacks {missing} of the {name} {text!r:.200}; a policy that "
            "sees the prompt alone must know all that the others see"
        )


def check_tokens(what: str, tokens: int, text: str) -> None:
    """Check a number of tokens: some where there are words, never more than bytes."""
    most = len(text.encode("utf-8", "replace")) + 1
    few = bool(tokens) or not _WORD.search(text)
    assert few and tokens <= most, (  # noqa: PT018  # one thing: the number cannot be of this text
        f"{what} {text!r:.200}; a text with words has tokens, and not more than bytes"
    )


def _missing(part: str, whole: str) -> list[str]:
    """Return some words of `part` that `whole` lacks, whatever their case; cut words are there."""
    whole = whole.casefold()
    return sorted(word for word in set(_WORD.findall(part.casefold())) if word not in whole)[:5]
