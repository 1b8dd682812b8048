"""How different the programs of a tree or a team are, and what each agent brings to it.

The MARS² papers report diversity without published definitions; these are ours, made of
nothing but the programs and how they behaved: no embedding, no judge. All are pure functions and
give values per tree; statistics over trees are made where results are reported.

| module | what |
| --- | --- |
| `distances` | token edit distance, distance of syntax trees, shape of a program |
| `pairs` | means over pairs of programs, within and between agents |
| `counts` | distinct behaviours or shapes among K programs (DA@K), unbiased |
| `contribution` | what each agent adds: sole and first solutions, Shapley value; solved by depth |
| `describe` | all of them for many trees, as plain data |
"""

from .contribution import Contribution, contributions, coverage_shapley, solved_by_depth
from .counts import distinct, distinct_at_k
from .describe import describe_diversity, describe_programs
from .distances import edit_distance, shape, syntax_bag, syntax_distance, token_distance, tokens
from .pairs import PairMean, mean_between, mean_pairwise, mean_within

__all__ = [
    "Contribution",
    "PairMean",
    "contributions",
    "coverage_shapley",
    "describe_diversity",
    "describe_programs",
    "distinct",
    "distinct_at_k",
    "edit_distance",
    "mean_between",
    "mean_pairwise",
    "mean_within",
    "shape",
    "solved_by_depth",
    "syntax_bag",
    "syntax_distance",
    "token_distance",
    "tokens",
]
