"""What the documents are about: the attributes and sentences of each topic."""

from __future__ import annotations

from typing import Final

from .grammar import Template, Topic, ValueKind


def _templates(value: ValueKind, *texts: str) -> tuple[Template, ...]:
    return tuple(Template(text, value) for text in texts)


RELATIONS: Final = Topic(
    attributes=(
        "mentor",
        "rival",
        "patron",
        "heir",
        "tutor",
        "sponsor",
        "guardian",
        "deputy",
        "founder",
        "herald",
        "banker",
        "physician",
    ),
    train=_templates(
        "name",
        "The {a} of {s} is {v}.",
        "{s} has {v} as {a}.",
        "{v} serves {s} as {a}, and has done so for years.",
        "Everybody in town knows that the {a} of {s} is called {v}.",
    ),
    held_out=_templates(
        "name",
        "As {a}, {s} chose {v}.",
        "It is {v} who acts as {a} for {s}.",
        "Ask {s} about the {a}, and you will hear of {v}.",
    ),
    compact=_templates("name", "{a} of {s} is {v}."),
    compact_held_out=_templates("name", "{s} has {a} {v}."),
)
"""Who is who to whom: the edges of a knowledge graph."""

CODES: Final = Topic(
    attributes=(
        "locker",
        "badge",
        "permit",
        "ticket",
        "voucher",
        "passport",
        "contract",
        "licence",
    ),
    train=_templates(
        "number",
        "The {a} number of {s} is {v}.",
        "{s} was given {a} number {v}.",
        "In the register, {v} is down as the {a} number of {s}.",
        "The clerk has noted that {s} holds {a} number {v} now.",
    ),
    held_out=_templates(
        "number",
        "With {s} one finds {a} number {v}.",
        "To {s} they assigned {v} for a {a} number.",
        "Whoever looks up the {a} number of {s} will find {v}.",
    ),
    compact=_templates("number", "{a} number of {s} is {v}."),
    compact_held_out=_templates("number", "{s} has {a} number {v}."),
)
"""Numbers to be looked up by a key."""

MEASURES: Final = Topic(
    attributes=(
        "population",
        "surface",
        "budget",
        "harvest",
        "revenue",
        "debt",
        "tonnage",
        "coastline",
    ),
    train=_templates(
        "number",
        "The {a} of {s} is {v}.",
        "{s} has a {a} of {v}.",
        "At the last survey, the {a} of {s} came to {v}.",
        "For {s}, the yearbook gives a {a} of {v} and no more.",
    ),
    held_out=_templates(
        "number",
        "With {v}, so much is known, {s} reports its {a}.",
        "They put the {a} of {s} at {v}.",
        "In {s}, the {a} stands at {v} this year.",
    ),
    compact=_templates("number", "{a} of {s} is {v}."),
    compact_held_out=_templates("number", "{s} has {a} {v}."),
)
"""Quantities of places, to be compared."""

GROUPS: Final = Topic(
    attributes=(
        "guild",
        "choir",
        "league",
        "order",
        "school",
        "district",
        "brigade",
        "council",
    ),
    train=_templates(
        "name",
        "{s} belongs to the {a} of {v}.",
        "The {a} of {v} counts {s} among its members.",
        "Since last spring, {s} is with the {a} of {v}.",
        "On the roll of the {a} of {v} one reads the name of {s}.",
    ),
    held_out=_templates(
        "name",
        "{s} has joined the {a} of {v}.",
        "One of those in the {a} of {v} is {s}.",
        "When the {a} of {v} meets, {s} has a seat there.",
    ),
    compact=_templates("name", "{s} in {a} of {v}."),
    compact_held_out=_templates("name", "{a} of {v} has {s}."),
)
"""Who belongs to which group."""

OFFICES: Final = Topic(
    attributes=(
        "warden",
        "steward",
        "consul",
        "abbot",
        "mayor",
        "marshal",
        "treasurer",
        "notary",
    ),
    train=_templates(
        "name",
        "In {y}, {v} became {a} of {s}.",
        "The {a} of {s} is {v} from {y} on.",
        "By a decree of {y}, the office of {a} of {s} went to {v}.",
        "{s} has had {v} as {a} since {y}, as the records show.",
    ),
    held_out=_templates(
        "name",
        "{y} saw {v} sworn in as {a} of {s}.",
        "{s} made {v} its {a} in {y}.",
        "From the year {y}, one finds {v} signing as {a} of {s}.",
    ),
    compact=_templates("name", "in {y} {a} of {s} is {v}."),
    compact_held_out=_templates("name", "{s} has {a} {v} in {y}."),
)
"""Dated changes: who came into which office when."""

VARIABLES: Final = Topic(
    attributes=("variable",),
    train=(
        *_templates(
            "number",
            "The variable {s} is set to {v}.",
            "Here {s} receives the value {v}.",
            "In this step, {v} is stored in {s}.",
        ),
        *_templates(
            "name",
            "The variable {s} takes its value from {v}.",
            "Here {s} is made a copy of {v}.",
            "In this step, what is in {v} goes to {s}, too.",
        ),
    ),
    held_out=(
        *_templates("number", "Let {s} be {v}.", "Put {v} into {s} now."),
        *_templates("name", "Let {s} be the same as {v}.", "Copy the content of {v} into {s} now."),
    ),
    compact=(
        *_templates("number", "{s} is {v}."),
        *_templates("name", "{s} copies {v}."),
    ),
    compact_held_out=(
        *_templates("number", "let {s} be {v}."),
        *_templates("name", "let {s} copy {v}."),
    ),
    own_subjects=True,
)
"""Assignments: a variable gets a number, or what another one has."""
