"""Which notes to merge where a cap leaves some out: Okapi BM25 among the notes themselves.

Not the BM25 of `retrieval`, which is to be that of the published baseline: its weights are 0 for a
word that half of the texts have, so it cannot tell two notes apart, and it needs an extra. Here the
weight is log(1 + (n - h + 1/2) / (h + 1/2)) for h of n notes, as in Lucene, never 0.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

_WORD = re.compile(r"\w+")
_K1, _B = 1.5, 0.75


def most_relevant(texts: Sequence[str], query: str, k: int) -> list[int]:
    """Return the places of the `k` texts that are most like a query, in their order.

    Of equals, the earlier ones.

    Example:
        >>> most_relevant(["red kilo", "blue lima", "a red lima"], "red lima?", 1)
        [2]
    """
    bags = [Counter(_WORD.findall(text.lower())) for text in texts]
    lengths = [sum(bag.values()) for bag in bags]
    mean = sum(lengths) / len(lengths) if lengths else 0.0
    scores = [0.0] * len(bags)
    for word in sorted(set(_WORD.findall(query.lower()))):
        holders = sum(word in bag for bag in bags)
        rarity = math.log(1 + (len(bags) - holders + 0.5) / (holders + 0.5))
        for place, bag in enumerate(bags):
            if count := bag[word]:
                norm = _K1 * (1 - _B + _B * lengths[place] / mean)
                scores[place] += rarity * count * (_K1 + 1) / (count + norm)
    best = sorted(range(len(bags)), key=lambda place: (-scores[place], place))[:k]
    return sorted(best)
