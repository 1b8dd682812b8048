"""Prompts for models with a vocabulary of words: a key at the head of each line, no prose.

    q what is the red of ada ?      the question
    c ada has red kilo              the chunk
    m ada is in lima                the memory; `m` alone: nothing is known yet
    read                            what to do

`merge` has a line `n ...` for each note, `answer` neither notes nor a chunk. Each text is put on
one line, words between single blanks, so no text can pass for another line. Labels are left out: a
number of a chunk is a word that a small model has never seen.
"""

from __future__ import annotations

from .prompts import AnswerView, ClosedBookView, DirectView, MergeView, ReadView, UpdateView


def read(view: ReadView) -> str:
    """Ask a reader whether its chunk has anything new, or for a summary of it."""
    return _arrange(view, "read" if view.check else "note")


def merge(view: MergeView) -> str:
    """Ask for one memory out of the old one and what was found."""
    notes = (_line("n", note) for note in view.notes)
    return _lines(_line("q", view.question), _line("m", view.memory), *notes, "merge")


def answer(view: AnswerView) -> str:
    """Ask for the answer, from the memory alone."""
    return _lines(_line("q", view.question), _line("m", view.memory), "answer")


def update(view: UpdateView) -> str:
    """Ask a recurrent reader for the whole new memory."""
    return _arrange(view, "update")


def gated_update(view: UpdateView) -> str:
    """Ask a recurrent reader for a new memory, if there is a better one, and whether to go on."""
    return _arrange(view, "gate")


def direct(view: DirectView) -> str:
    """Ask for the answer, from passages of the document."""
    passages = (_line("c", passage) for passage in view.passages)
    return _lines(_line("q", view.question), *passages, "answer")


def closed_book(view: ClosedBookView) -> str:
    """Ask for the answer, from nothing."""
    return _lines(_line("q", view.question), "answer")


def _arrange(view: ReadView | UpdateView, task: str) -> str:
    question, memory = _line("q", view.question), _line("m", view.memory)
    chunk = _line("c", view.chunk)
    if view.order == "reference":
        return _lines(question, memory, chunk, task)
    if view.order == "chunk_question_memory":
        return _lines(chunk, question, memory, task)
    return _lines(question, chunk, memory, task)


def _line(key: str, text: str) -> str:
    return " ".join((key, *text.split()))


def _lines(*lines: str) -> str:
    return "\n".join(lines)
