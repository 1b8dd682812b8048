"""The learned reader: its pieces do what they say, and a short training learns to read."""

from __future__ import annotations

import itertools
import json
import math
import random
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from mars_envs.parallel_memory.methods import make_workflow
from mars_envs.parallel_memory.play import play
from mars_envs.parallel_memory.replies import Answer, Merge, Read, parse_read
from mars_envs.parallel_memory.scripted import oracle
from mars_envs.parallel_memory.settings import memory_settings
from mars_envs.reading.chunking import chunk_document
from mars_envs.reading.synthetic import synthetic_tasks
from mars_envs.reading.task import ReadingTask

torch = pytest.importorskip("torch")

READ = (
    "q who is the rival of the heir of Vamorib ?\nc heir of Vamorib is Tisk . aunt of Bo is Tisk ."
)


@pytest.fixture(scope="module")
def example(load_module: Callable[[Path], ModuleType]) -> Iterator[ModuleType]:
    """Return the script; its parts are in `sys.modules` beside it."""
    path = Path(__file__).resolve().parents[2] / "examples" / "learned_reader.py"
    sys.path.insert(0, str(path.parent))
    yield load_module(path)
    sys.path.remove(str(path.parent))


@pytest.fixture(scope="module")
def parts(example: ModuleType) -> Any:
    """Return the modules of `learned_reader_parts` by name."""
    prefix = "learned_reader_parts."
    found = {name.removeprefix(prefix): m for name, m in sys.modules.items() if prefix in name}
    return type("Parts", (), found)


def tasks_of(family: str, n: int, **options: Any) -> list[ReadingTask]:
    """Return tasks of four chunks."""
    options = {"tokens": 4 * 64, "chunk_tokens": 64, "style": "compact", "seed": 5, **options}
    return list(synthetic_tasks(family, n=n, **options))


def lessons_of(parts: Any, task: ReadingTask) -> list[tuple[str, str]]:
    """Return the prompts of both methods' episodes, with the teacher's replies."""
    seen: list[tuple[str, str]] = []
    chunks = chunk_document(task.document, size=64)
    for method in ("pi_mem", "recurrent"):
        workflow = make_workflow(
            method, task.question, chunks, settings=memory_settings(), prompts="compact"
        )
        driver = oracle(task, miss=0.2, false_yes=0.3)
        play(workflow, parts.lessons.watched(driver, task, seen))
    return seen


# --- spans


def test_the_best_spans_are_those_that_no_other_choice_beats(parts: Any) -> None:
    rng = random.Random(0)
    for _ in range(300):
        scores = [rng.choice([rng.gauss(0, 2), -math.inf]) for _ in range(rng.randrange(9))]
        price = rng.choice([0.0, 0.5, 2.0])

        def worth(chosen: tuple[int, ...], scores: list[float], price: float) -> float:
            starts = sum(c and not before for before, c in zip((0, *chosen), chosen, strict=False))
            return sum(s for s, c in zip(scores, chosen, strict=True) if c) - price * starts

        best = max(worth(c, scores, price) for c in itertools.product((0, 1), repeat=len(scores)))
        spans = parts.spans.best_spans(scores, price=price)
        found = tuple(int(any(a <= i < b for a, b in spans)) for i in range(len(scores)))
        assert worth(found, scores, price) == pytest.approx(best)
        assert all(b < c for (_, b), (c, _) in itertools.pairwise(spans)) or price == 0


def test_the_best_span_is_the_one_with_the_highest_sum(parts: Any) -> None:
    rng = random.Random(1)
    for _ in range(300):
        scores = [rng.choice([rng.gauss(-0.5, 2), -math.inf]) for _ in range(rng.randrange(1, 9))]
        sums = [sum(scores[a:b]) for a in range(len(scores)) for b in range(a + 1, len(scores) + 1)]
        span = parts.spans.best_span(scores)
        if max(sums) == -math.inf:
            assert span is None
        else:
            assert sum(scores[slice(*span)]) == pytest.approx(max(sums))


# --- what the network reads


def test_equal_words_are_kin_and_only_memory_chunk_and_notes_can_be_copied(parts: Any) -> None:
    vocabulary = parts.words.Vocabulary.of([READ], always=parts.encoding.PARTS)
    prompt = parts.encoding.encode(READ + "\nm heir of VAMORIB is Tisk .\nread", vocabulary)
    words = prompt.words()
    same = prompt.kin[:, None] == prompt.kin[None]
    for i, j in itertools.combinations(range(len(words)), 2):
        assert same[i, j] == (words[i] == words[j] and words[i] not in ".?")
    copied = " ".join(word for word, ok in zip(words, prompt.copied, strict=True) if ok)
    assert copied == "heir of vamorib is tisk . aunt of bo is tisk . heir of vamorib is tisk ."


def test_names_are_read_as_names_whatever_they_are(parts: Any) -> None:
    vocabulary = parts.words.Vocabulary.of(["q who is the rival of the heir of ? c aunt m read"])
    model = parts.model.new_reader(len(vocabulary), seed=0)
    renamed = READ.replace("Vamorib", "Quux").replace("Tisk", "Zzyzx").replace("Bo", "Fnord")
    scores = []
    for text in (READ, renamed):
        prompt = parts.encoding.encode(f"{text}\nread", vocabulary)
        with torch.inference_mode():
            scores.append(model(parts.model.Batch.of([prompt]))[1].numpy())
    assert np.array_equal(*scores)


def test_padding_changes_nothing(parts: Any) -> None:
    vocabulary = parts.words.Vocabulary.of([READ])
    model = parts.model.new_reader(len(vocabulary), seed=0)
    short = parts.encoding.encode(f"{READ}\nread", vocabulary)
    long = parts.encoding.encode(f"{READ} {READ[45:]}\nm {READ[45:]}\nupdate", vocabulary)
    with torch.inference_mode():
        alone = model(parts.model.Batch.of([short]))
        padded = model(parts.model.Batch.of([long, short]))
    assert padded[0][1].item() == pytest.approx(alone[0].item(), abs=1e-5)
    assert padded[1][1, : len(short)].numpy() == pytest.approx(alone[1][0].numpy(), abs=1e-5)


def test_it_is_as_small_as_it_claims(example: ModuleType, parts: Any) -> None:
    full = example.FULL
    model = parts.model.new_reader(400, seed=0, width=full.width, layers=full.layers)
    assert parts.model.count_parameters(model) <= 400_000
    assert full.chunk_tokens <= 128


# --- what it says, and what it is taught


@pytest.mark.parametrize("family", ["kv", "kg2"])
def test_who_copies_what_is_marked_says_what_the_teacher_says(parts: Any, family: str) -> None:
    roles = set()
    for task in tasks_of(family, 6):
        pairs = lessons_of(parts, task)
        vocabulary = parts.words.Vocabulary.of([prompt for prompt, _ in pairs])
        for prompt, reply in pairs:
            one = parts.lessons.lesson(prompt, reply, vocabulary)
            said = parts.speaking.say(one.prompt, one.yes, 20 * one.copy - 10)
            role = prompt.rpartition("\n")[2]
            roles.add((role, one.yes))
            if role == "answer":
                assert said == reply
                continue
            note, told = (parse_read(r).note if role == "read" else r for r in (said, reply))
            # Copied in the order of the prompt, on one line: the same sentences.
            assert sorted(sentences(note)) == sorted(sentences(told))
    assert roles == {
        *itertools.product(("read", "answer", "update"), (True, False)),
        ("merge", True),
    } or roles == {*itertools.product(("read", "answer", "update", "merge"), (True, False))}


def sentences(text: str | None) -> list[str]:
    return [part.strip() for part in (text or "").replace("\n", " ").split(".") if part.strip()]


def test_the_teacher_forgets_what_is_no_evidence(parts: Any) -> None:
    (task,) = tasks_of("kv", 1)
    view = {
        "role": "merger",
        "memory": "heir of Bo is Al.",
        "selected": json.dumps([{"first": 0, "last": 0, "text": task.evidence[0].text}]),
    }
    assert parts.lessons.teacher(task)(view) == task.evidence[0].text


def test_what_the_memory_has_is_kept_there_and_what_is_new_goes_behind_it(parts: Any) -> None:
    vocabulary = parts.words.Vocabulary.of([READ])
    memory = "rival of Tisk is Orel. heir of Vamorib is Tisk."
    prompt = f"{READ}\nm {memory}\nupdate"
    for reply, text in (
        ("heir of Vamorib is Tisk .\nrival of Tisk is Orel .", memory),
        (
            "aunt of Bo is Tisk .\nrival of Tisk is Orel .",
            "rival of Tisk is Orel. aunt of Bo is Tisk .",
        ),
    ):
        one = parts.lessons.lesson(prompt, reply, vocabulary)
        assert one.kind == ("update kept" if text == memory else "update new")
        assert parts.speaking.say(one.prompt, one.yes, 20 * one.copy - 10) == text


def test_a_reply_that_is_no_copy_is_no_lesson(parts: Any) -> None:
    vocabulary = parts.words.Vocabulary.of([READ])
    with pytest.raises(parts.lessons.UnlikeCopy, match="Orel"):
        parts.lessons.lesson(f"{READ}\nread", Read.yes("rival of Orel is Bo ."), vocabulary)


def test_who_knows_nothing_says_so_and_who_says_yes_says_what(parts: Any) -> None:
    vocabulary = parts.words.Vocabulary.of([READ])
    prompt = parts.encoding.encode(f"{READ}\nread", vocabulary)
    low = np.full(len(prompt), -5.0, np.float32)
    assert parts.speaking.say(prompt, False, -low) == Read.no()
    assert parse_read(parts.speaking.say(prompt, True, low)).note  # the least unlikely word
    empty = parts.encoding.encode("q who ?\nm\nanswer", vocabulary)
    assert parts.speaking.say(empty, True, np.zeros(len(empty), np.float32)) == Answer("unknown")


# --- trials


@pytest.mark.parametrize("method", ["pi_mem", "recurrent", "recurrent, 3 passes"])
@pytest.mark.parametrize("spoilt", ["right", "misread", "lost", "missed"])
def test_an_outcome_says_where_an_episode_went_wrong(parts: Any, method: str, spoilt: str) -> None:
    kind, options = parts.study.METHODS[method]
    (task,) = tasks_of("kv", 1, depths=(0.0,))  # in the first chunk, so that it can be lost again

    def speak(view: Mapping[str, Any]) -> str:
        if view["role"] == "answerer" and spoilt == "misread":
            return Answer("nothing")
        if spoilt == "missed" and view["role"] in ("reader", "memorizer"):
            return Read.no() if view["role"] == "reader" else Merge("")
        late = view["chunk_index"] == view["n_chunks"] - 1 and bool(view["memory"])
        if spoilt == "lost" and (late or (view["role"] == "merger" and view["turn"] > 1)):
            return Read.yes("a rumour") if view["role"] == "reader" else Merge("a rumour")
        return oracle(task)(view)

    trial = parts.trials.play_all(
        lambda tasks: kind(tasks=tasks, chunk_tokens=64, prompts="compact", **options),
        [task],
        lambda _, views: [speak(view) for view in views],
    )[0]
    assert trial.outcome == spoilt
    assert trial.calls >= 5
    assert sum(row[0] + row[2] for row in trial.reads) == 4 * trial.turns


# --- figures


def test_an_interval_of_trainings_covers_what_it_should(parts: Any) -> None:
    # Items of chance p_s in training s, p_s itself drawn around 0.6: 95 % intervals over 20
    # trainings should hold 0.6 about 19 times out of 20, a few less with so few trainings: of 100
    # that is 95, and 77 is more than four standard errors below 90.
    rng = np.random.default_rng(0)
    held = 0
    for number in range(100):
        chances = np.clip(rng.normal(0.6, 0.1, size=(20, 1)), 0, 1)
        figure = parts.report.nested_estimate(
            rng.random((20, 30)) < chances, resamples=300, seed=number
        )
        held += figure.low <= 0.6 <= figure.high
    assert held > 77


def test_a_figure_without_spread_has_no_interval_but_a_rate_has(parts: Any) -> None:
    assert math.isnan(parts.report.nested_estimate(np.zeros((2, 5))).low)
    trials = [[parts.trials.Trial(correct=1.0) for _ in range(5)] for _ in range(2)]
    assert parts.report.accuracy(trials).low == pytest.approx(0.025 ** (1 / 10))


# --- the study


@pytest.mark.slow
def test_a_short_training_reads_better_than_chance_and_is_not_repeated(
    example: ModuleType, parts: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = example.main(["--out", str(tmp_path)])
    assert (tmp_path / "learned_reader.png").read_bytes().startswith(b"\x89PNG")
    saved = json.loads((tmp_path / "results.json").read_text())
    assert saved == json.loads(json.dumps(found))
    by_cell = {(cell["chunks"], cell["method"]): cell for cell in found["cells"]}
    for cell in by_cell.values():
        # Guessing at a sentence of the document is right less than once in ten times.
        assert cell["low"] > 0.2, cell
        assert cell["gold_yes_rates"][0] > 0.5 > 0.2 > cell["other_yes_rates"][0]
    for name in ("learn", "try_cell"):
        monkeypatch.setattr(example, name, lambda *_, name=name, **__: pytest.fail(name))
    again = example.main(["--out", str(tmp_path)])
    assert again == found


def test_results_of_another_plan_are_not_mixed_in(
    example: ModuleType, parts: Any, tmp_path: Path
) -> None:
    parts.study.Store(tmp_path, example.LOOK)
    parts.study.Store(tmp_path, replace(example.LOOK, lengths=(128,)))  # more cells, no other plan
    with pytest.raises(SystemExit, match="another plan"):
        parts.study.Store(tmp_path, example.FULL)
    assert asdict(example.FULL) == asdict(parts.study.Plan(**asdict(example.FULL)))


def test_what_it_takes_is_told(example: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        example.main(["--help"])
    assert "--full" in capsys.readouterr().out
