"""A reading episode as text: one line for each turn, and the memory as it stands."""

from __future__ import annotations

from ..terminal import printable
from .episode import Episode
from .tally import Tally, TurnTally
from .workflow import Phase

WIDTH = 64
"""Columns of the strip that stands for the document."""
_LINE = 160
_NAMES = {Phase.READ: "reading", Phase.MERGE: "merging", Phase.ANSWER: "answering"}


def memory_to_text(episode: Episode, *, stop_reason: str = "") -> str:
    """Return the turns of an episode, line by line.

    The strip at the end of a line is the document: `#` where a reader found something, `x` where
    one failed, `.` where nothing was found, a blank where nobody has read yet. Of a document with
    more than 64 chunks a column stands for several; it shows the first of these that applies.

    Args:
        episode: what to show.
        stop_reason: what ended it; empty while it goes on.
    """
    workflow, tally = episode.workflow, episode.tally
    records = {record.turn: record for record in workflow.turns}
    lines = [
        f"{episode.task.task_id}  {_short(episode.task.question)}",
        f"{workflow.n_chunks} chunks, at most {workflow.max_turns} turns",
        "turn   read  found  gold  failed  malformed  dropped  memory",
    ]
    for number in sorted(tally.turns):
        turn, record = tally.turns[number], records.get(number)
        dropped = "" if record is None else str(record.dropped)
        memory = "" if record is None else str(record.memory_tokens)
        figures = (
            f"{number:>4}  {len(turn.read):>5}  {len(turn.found):>5}  {_gold(turn, tally):>4}  "
            f"{len(turn.failed):>6}  {turn.malformed:>9}  {dropped:>7}  {memory:>6}"
        )
        lines.append(f"{figures}  |{document_strip(turn, workflow.n_chunks)}|")
    lines.append(f"memory: {_short(workflow.memory) or '(empty)'}")
    if stop_reason:
        ended = (
            stop_reason if not workflow.exit_reason else f"{stop_reason}, {workflow.exit_reason}"
        )
        lines.append(f"answer: {_short(workflow.answer) or '(none)'}  ({ended})")
    else:
        calls = f"{tally.calls} calls so far"
        lines.append(f"{_NAMES[workflow.phase]}, turn {workflow.turn}; {calls}")
    return "\n".join(lines)


def document_strip(turn: TurnTally, n_chunks: int) -> str:
    """Return what a turn met along the document, in at most `WIDTH` columns."""
    columns = min(WIDTH, n_chunks)
    strip = [" "] * columns
    for mark, chunks in ((".", turn.read), ("x", turn.failed), ("#", turn.found)):
        for chunk in chunks:
            strip[chunk * columns // n_chunks] = mark
    return "".join(strip)


def _gold(turn: TurnTally, tally: Tally) -> str:
    return "" if not tally.gold else f"{len(turn.found & tally.gold)}/{len(tally.gold)}"


def _short(text: str) -> str:
    """Return the beginning of a text on one line, without what could steer a terminal."""
    line = printable(" ".join(text[: 4 * _LINE].split()))
    return line if len(line) <= _LINE else f"{line[: _LINE - 1]}…"
