"""Retrieval: the pieces of a document that are most like the question, by BM25, then one call.

PI-Mem's retrieval baseline, as its released code has it: pieces of 2,000 tokens, Okapi BM25 over
the words of this document alone (lower-cased, between blanks), the question as query, the best six.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidSetting
from ..reading.chunking import Chunks, chunk_document
from ..spaces import TEXT_LIMIT
from .calls import question_text
from .settings import MemorySettings, whole_number
from .single_pass import SinglePass


class Retrieval(SinglePass):
    """Answers from the pieces of a document that a search finds.

    As many of the best as fit into the window, where there is one, and into an observation, a text
    of `TEXT_LIMIT` characters.

    Args:
        question: what to answer, and to search for.
        chunks: the document; it is cut anew, with the same tokenizer.
        settings: as of `SinglePass`.
        prompts: as of `SinglePass`.
        piece_tokens: of a piece.
        top: pieces to show, in the order of the document. Of equally good ones, the earlier.

    Raises:
        InvalidSetting: `piece_tokens` or `top` is no whole number of at least 1, or not even one
            piece fits.
        ImportError: the extra `retrieval` is not installed.
    """

    def __init__(
        self,
        question: str,
        chunks: Chunks,
        *,
        settings: MemorySettings | None = None,
        prompts: Any = "prose",
        piece_tokens: int = 2000,
        top: int = 6,
    ) -> None:
        question = question_text(question)
        piece_tokens = whole_number("piece_tokens", piece_tokens, 1)
        pieces = chunk_document(chunks.document, size=piece_tokens, tokenizer=chunks.tokenizer)
        scores = bm25(question, pieces)
        best = np.argsort(-scores, kind="stable")[: whole_number("top", top, 1)].tolist()
        super().__init__(question, pieces, sorted(best), settings=settings, prompts=prompts)
        while self._too_much() > 0 or not self._fits():
            if len(best) < 2:
                if self._too_much() > 0:
                    raise InvalidSetting(
                        f"a window of {self.settings.window} tokens has no room for a piece of "
                        f"{piece_tokens} beside prompt and answer; widen it, or lower piece_tokens "
                        "or answer_tokens"
                    )
                raise InvalidSetting(
                    f"an observation of {TEXT_LIMIT:,} characters has no room for a piece of "
                    f"{piece_tokens} tokens beside the question; lower piece_tokens, or shorten "
                    "the question"
                )
            best.pop()
            self._show(sorted(best))


def bm25(
    query: str, texts: Sequence[str], *, k1: float = 1.5, b: float = 0.75
) -> NDArray[np.float64]:
    """Score texts by how like a query they are: Okapi BM25 over lower-cased words between blanks.

    Robertson's weights: a word in half of the texts or more weighs nothing, so that of two texts
    each scores 0. A word that the query has twice counts twice. The factor k1 + 1 of the formula is
    left out: it ranks nothing differently.

    Returns:
        Scores, `[texts]`.

    Raises:
        ImportError: the extra `retrieval` is not installed.
    """
    library = _library()
    ids: dict[str, int] = {}
    words = [[ids.setdefault(word, len(ids)) for word in text.lower().split()] for text in texts]
    wanted = [ids[word] for word in query.lower().split() if word in ids]
    if not wanted:
        return np.zeros(len(words))
    index = library.BM25(k1=k1, b=b, method="robertson", dtype="float64")
    index.index((words, ids), show_progress=False)
    scores: NDArray[np.float64] = index.get_scores_from_ids(wanted)
    return scores


def _library() -> Any:
    try:
        import bm25s
    except ImportError as error:
        raise ImportError(
            "the retrieval baseline scores with the package bm25s; install it with "
            "`pip install 'mars-envs[retrieval]'`"
        ) from error
    return bm25s
