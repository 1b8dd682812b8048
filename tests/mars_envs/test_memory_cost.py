"""The cost simulator: against closed forms, a cache that holds every block, and figures that were
worked out by hand."""

from __future__ import annotations

import dataclasses
import random
import runpy
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any

import pytest

from mars_envs.errors import InvalidSetting
from mars_envs.parallel_memory.cost import (
    Beginnings,
    Job,
    Machine,
    PrefixCache,
    Reading,
    Request,
    Segment,
    job_of,
    latency_ceiling,
    machine,
    parallel_job,
    parallel_latency,
    parallel_work,
    recurrent_job,
    recurrent_latency,
    recurrent_work,
    simulate,
    throughput_speedup,
)
from mars_envs.parallel_memory.loop import MemoryLoop
from mars_envs.parallel_memory.play import play
from mars_envs.parallel_memory.scripted import oracle
from mars_envs.parallel_memory.settings import memory_settings
from mars_envs.parallel_memory.workflow import CallRecord
from mars_envs.reading.chunking import chunk_document
from mars_envs.reading.synthetic import synthetic_tasks
from mars_envs.reading.tokenizers import WordTokenizer

# The worked example of docs/pi-mem.md: n = 720, c = 5K, 40K tok/s, 12 ms, d_m = 300, T = 2; one in
# fifty says yes.
EXAMPLE = Reading(chunks=720, chunk_tokens=5_000, yes=(14, 0))
ALONE = Machine(prefill_rate=40_000, decode_seconds=((1, 0.012),), slots=1)
SLOW_TOGETHER = ((1, 0.01), (8, 0.03))


def slots(number: int, **changes: Any) -> Machine:
    return dataclasses.replace(ALONE, slots=number, **changes)


class EveryBlock:
    """A prefix cache as one would write it down: real tokens, real blocks, one entry for each."""

    def __init__(self, block: int, room: int | None) -> None:
        self.block = block
        self.room = room
        self.held: OrderedDict[Hashable, None] = OrderedDict()

    def hashes(self, prompt: Sequence[Segment]) -> list[Hashable]:
        tokens = [(segment, place) for segment in prompt for place in range(segment.tokens)]
        whole = range(self.block, len(tokens) + 1, self.block)
        return [tuple(tokens[:end]) for end in whole]

    def find(self, prompt: Sequence[Segment]) -> int:
        found = 0
        for name in self.hashes(prompt):
            if name not in self.held:
                break
            found += 1
        last = max(0, sum(segment.tokens for segment in prompt) - 1) // self.block
        return min(found, last) * self.block

    def add(self, prompt: Sequence[Segment]) -> None:
        for name in reversed(self.hashes(prompt)):
            self.held[name] = None
            self.held.move_to_end(name)
        while self.room is not None and len(self.held) > self.room:
            self.held.popitem(last=False)


@pytest.mark.parametrize("room", [None, 0, 1, 7, 20])
@pytest.mark.parametrize("seed", range(6))
def test_counting_runs_of_blocks_is_the_same_as_holding_every_block(
    room: int | None, seed: int
) -> None:
    rng = random.Random(seed)
    ours, theirs = PrefixCache(4, room), EveryBlock(4, room)
    for _ in range(150):
        prompt = [
            Segment((depth, rng.randrange(3)), rng.choice((0, 1, 3, 4, 9, 22)))
            for depth in range(rng.randrange(5))
        ]
        assert ours.find(prompt) == theirs.find(prompt)
        ours.add(prompt)
        theirs.add(prompt)
        assert len(ours) == len(theirs.held)


def test_the_last_token_of_a_prompt_is_always_read() -> None:
    cache = PrefixCache(16, None)
    prompt = [Segment("all of it", 64)]
    cache.add(prompt)
    assert cache.find(prompt) == 48


def test_the_recurrent_example_takes_2684_seconds() -> None:
    """720 (5000/40000 + 300 × 12 ms) = 2682 s, and an answer of 200 tokens: 2.4 s."""
    assert recurrent_latency(EXAMPLE, ALONE) == pytest.approx(2684.4)
    assert simulate([recurrent_job(EXAMPLE)], ALONE).latency_s == pytest.approx(2684.4)


@pytest.mark.parametrize("number", [1, 2, 4, 8, 16, 32, 64, 128])
def test_the_parallel_example_takes_190_to_202_seconds_where_decoding_overlaps(number: int) -> None:
    seconds = parallel_latency(EXAMPLE, slots(number), overlapped=True, padded=True)
    assert 190 <= round(seconds) <= 202
    assert 13 <= recurrent_latency(EXAMPLE, ALONE) / seconds <= 14.5


def test_the_ends_of_that_range_are_those_of_1_and_128_slots() -> None:
    """2 × 720 × 5000/40000 = 180 s of reading, with 6 × 128 chunks 192 s. Beside it, per turn the
    longest reply (300 and 7 tokens), a merge of 14 notes of 300 tokens into 300, the answer."""
    beside = 0.012 * (300 + 7 + 300 + 200) + 14 * 300 / 40_000
    for number, reading in ((1, 180), (128, 192)):
        seconds = parallel_latency(EXAMPLE, slots(number), overlapped=True, padded=True)
        assert seconds == pytest.approx(reading + beside)
    assert (round(180 + beside), round(192 + beside)) == (190, 202)


def test_the_formula_as_printed_waits_for_every_round_and_is_slower_with_few_slots() -> None:
    """Alone, each of 1440 reads decodes by itself: 14 of 300 tokens and 1426 of 7."""
    decoding = 0.012 * (14 * 300 + 1426 * 7)
    beside = 0.012 * (300 + 200) + 14 * 300 / 40_000
    assert parallel_latency(EXAMPLE, ALONE) == pytest.approx(180 + decoding + beside)


@pytest.mark.parametrize(
    ("number", "most"), [(8, 211), (16, 202), (32, 202), (64, 202), (128, 202)]
)
def test_the_simulator_is_near_the_example_once_slots_are_refilled(
    number: int, most: float
) -> None:
    cost = simulate([parallel_job(EXAMPLE)], slots(number))
    assert 190 <= cost.latency_s <= most


def test_no_number_of_slots_gets_beyond_the_ceiling() -> None:
    """(0.125 + 3.6) / (2 × 0.125) = 14.9."""
    ceiling = latency_ceiling(EXAMPLE, ALONE)
    assert ceiling == pytest.approx(14.9)
    for number in (1, 16, 128, 720):
        best = simulate([parallel_job(EXAMPLE)], slots(number, batching="overlapped"))
        assert recurrent_latency(EXAMPLE, ALONE) / best.latency_s < ceiling


def test_many_questions_at_once_give_the_three_ratios_of_the_example() -> None:
    """7B: 0.85x, with the second turn cached 1.5x; MoE with long memories: 2.2x. Beside the chunk a
    prompt has the memory (as long as a rewritten one) and 50 tokens; yes-rate 2 % in both turns."""
    dense = Reading(chunks=720, chunk_tokens=5_000, head_tokens=50, memory_tokens=300, yes=(14, 14))
    server = machine("7b")
    assert server.decode_rate == pytest.approx(3_000)
    recurrent = recurrent_work(dense, server)
    assert round(recurrent / parallel_work(dense, server), 2) == 0.85
    assert round(recurrent / parallel_work(dense, server, cached=(0, 1)), 1) == 1.5
    moe = Reading(
        chunks=240,
        chunk_tokens=15_000,
        head_tokens=50,
        memory_tokens=1_200,
        rewrite_tokens=1_200,
        yes=(5, 5),
    )
    server = machine("35b-moe")
    assert server.decode_rate == pytest.approx(2_500)
    assert round(recurrent_work(moe, server) / parallel_work(moe, server), 1) == 2.2


def test_the_short_form_of_the_throughput_ratio_is_above_one_only_where_decoding_dominates() -> (
    None
):
    """(x + 1) / (T (x (1-h) + eps)): at T = 2 and eps = 0 it is 1 at x = 1."""
    assert throughput_speedup(1, turns=2, eps=0) == pytest.approx(1)
    assert throughput_speedup(0.5, turns=2, eps=0) == pytest.approx(1.5)
    assert throughput_speedup(4, turns=2, eps=0) < 1
    assert throughput_speedup(4, turns=2, eps=0.05, cached=0.5) == pytest.approx(5 / 4.1)


def random_reading(rng: random.Random) -> Reading:
    chunks = rng.randrange(1, 40)
    return Reading(
        chunks=chunks,
        chunk_tokens=rng.randrange(1, 600),
        head_tokens=rng.choice((0, 30)),
        memory_tokens=rng.choice((0, 100)),
        yes=tuple(rng.randrange(chunks + 1) for _ in range(rng.randrange(1, 4))),
        no_tokens=rng.choice((0, 7)),
        yes_tokens=rng.randrange(7, 90),
        rewrite_tokens=rng.randrange(200),
        answer_tokens=rng.randrange(60),
    )


@pytest.mark.parametrize("seed", range(40))
def test_in_static_batches_the_simulator_is_the_formula(seed: int) -> None:
    rng = random.Random(seed)
    reading = random_reading(rng)
    server = slots(rng.randrange(1, 20), batching="static", decode_seconds=SLOW_TOGETHER)
    cost = simulate([parallel_job(reading)], server)
    assert cost.makespan_s == pytest.approx(parallel_latency(reading, server))
    assert cost.work_s == pytest.approx(parallel_work(reading, server))
    recurrent = simulate([recurrent_job(reading)], server)
    assert recurrent.makespan_s == pytest.approx(recurrent_latency(reading, server))
    assert recurrent.work_s == pytest.approx(recurrent_work(reading, server))


@pytest.mark.parametrize("seed", range(20))
def test_one_question_is_never_slower_when_slots_are_refilled_and_never_faster_than_its_prefill(
    seed: int,
) -> None:
    """With a time per token that does not depend on the batch, so that no batch can hurt."""
    rng = random.Random(seed)
    reading = random_reading(rng)
    took = {
        name: simulate([parallel_job(reading)], slots(6, batching=name))
        for name in ("static", "continuous", "overlapped")
    }
    assert took["continuous"].latency_s <= took["static"].latency_s + 1e-9
    assert took["overlapped"].latency_s <= took["continuous"].latency_s + 1e-9
    assert took["overlapped"].latency_s >= took["overlapped"].prefill_s


def test_a_full_machine_is_busy_for_the_total_work() -> None:
    """As many recurrent questions as slots, in step: every slot is always taken."""
    reading = Reading(chunks=9, chunk_tokens=500, memory_tokens=40, rewrite_tokens=60)
    server = slots(8, decode_seconds=SLOW_TOGETHER)
    cost = simulate([recurrent_job(reading, name=str(i)) for i in range(8)], server)
    assert cost.makespan_s == pytest.approx(8 * recurrent_work(reading, server))
    assert cost.makespan_s == pytest.approx(cost.work_s)


def test_many_parallel_questions_take_about_their_work_and_no_less() -> None:
    reading = Reading(chunks=64, chunk_tokens=500, yes=(2, 0), yes_tokens=40, rewrite_tokens=40)
    server = slots(8, decode_seconds=SLOW_TOGETHER)
    cost = simulate([parallel_job(reading, name=str(i)) for i in range(12)], server, in_flight=4)
    assert cost.work_s == pytest.approx(12 * parallel_work(reading, server))
    assert 1 <= cost.makespan_s / cost.work_s < 1.1


# Blocks fit exactly: 32 tokens before chunks of 4,096.
HIT = Reading(chunks=16, chunk_tokens=4_096, head_tokens=32, memory_tokens=48, yes=(2, 0))
DOCUMENT = 16 * 4_096


def hit_rate(capacity: int | None, **options: Any) -> float:
    order = options.pop("order", "question_chunk_memory")
    cost = simulate([parallel_job(HIT, order=order)], slots(4, cache_tokens=capacity), **options)
    assert cost.hit_rate(1) == 0, "nothing has been read before"
    return cost.hit_rate(2)


def test_with_room_the_second_turn_finds_every_chunk_in_the_cache() -> None:
    assert hit_rate(None) == 1
    assert hit_rate(DOCUMENT + 4_000) == 1


def test_a_memory_before_the_chunk_leaves_nothing_to_find() -> None:
    assert hit_rate(None, order="reference") == 0


def test_a_cache_smaller_than_what_is_scanned_in_a_circle_finds_nothing() -> None:
    assert hit_rate(DOCUMENT // 2) == 0


@pytest.mark.parametrize("share", [0.25, 0.5, 0.75])
def test_turning_round_finds_what_the_cache_has_room_for(share: float) -> None:
    """Up to one chunk: the memories behind the chunks take some of the room."""
    found = hit_rate(int(DOCUMENT * share), alternate=True)
    assert share - 1 / 16 <= found <= share


def many(schedule: str, *, room: int, **options: Any) -> Any:
    """Four questions on documents of their own; the cache holds `room` of them, and a little."""
    jobs = [parallel_job(HIT, name=str(i)) for i in range(4)]
    server = slots(4, cache_tokens=DOCUMENT * room + 4_000)
    return simulate(jobs, server, schedule=schedule, **options)  # type: ignore[arg-type]


def test_finishing_a_question_before_the_next_keeps_its_chunks_in_the_cache() -> None:
    assert many("turn_major", room=1).hit_rate(2) == 0
    assert many("sample_major", room=1, in_flight=1).hit_rate(2) == 1


def test_preferring_the_earlier_question_is_not_enough_while_others_are_let_in() -> None:
    """While its notes are merged, free slots read other documents over its chunks."""
    assert many("sample_major", room=1).hit_rate(2) == 0
    assert many("sample_major", room=3, in_flight=2).hit_rate(2) == 1


def test_turning_round_helps_where_all_first_turns_come_first() -> None:
    """Less than three in four: the second turn begins with a question that is merged already."""
    assert many("turn_major", room=3).hit_rate(2) == 0
    assert 0.3 < many("turn_major", room=3, alternate=True).hit_rate(2) < 0.75


def test_chunks_before_the_question_are_found_again_by_other_questions() -> None:
    def second(order: Any) -> float:
        jobs = [parallel_job(HIT, name=n, document="one", order=order) for n in ("a", "b")]
        calls = simulate(jobs, slots(4, cache_tokens=None), in_flight=1).served
        first = [call for call in calls if call.job == 1 and call.turn == 1 and call.chunk_tokens]
        return sum(call.cached_chunk_tokens for call in first) / DOCUMENT

    assert second("chunk_question_memory") == 1
    assert second("question_chunk_memory") == 0


def test_rollouts_of_one_question_read_its_document_once() -> None:
    jobs = [parallel_job(HIT, name=str(g), question="q", document="d") for g in range(4)]
    cost = simulate(jobs, slots(4, cache_tokens=None))
    assert cost.hit_rate() == 1 - 1 / (4 * 2), "one of four rollouts times two turns"


def test_the_closed_form_agrees_with_the_simulator_about_a_cached_turn() -> None:
    reading = Reading(chunks=16, chunk_tokens=512, memory_tokens=48, yes=(2, 0))
    server = slots(4, cache_tokens=None, batching="static")
    cost = simulate([parallel_job(reading)], server)
    assert cost.makespan_s == pytest.approx(parallel_latency(reading, server, cached=(0, 1)))
    assert cost.work_s == pytest.approx(parallel_work(reading, server, cached=(0, 1)))


def test_equal_input_gives_equal_output() -> None:
    first, second = (many("turn_major", room=3, alternate=True) for _ in range(2))
    assert first == second


def call(number: int, role: Any, **fields: Any) -> CallRecord:
    values = {"turn": 1, "index": 0, "level": 0, "attempt": 0, "status": "done", **fields}
    return CallRecord(id=number, role=role, **values)


def test_the_calls_of_a_workflow_become_stages_of_calls_side_by_side() -> None:
    calls = [
        call(0, "reader", index=0, prompt_tokens=620, chunk_tokens=500, output_tokens=7),
        call(1, "reader", index=1, prompt_tokens=620, chunk_tokens=500, status="error"),
        call(2, "reader", index=1, attempt=1, prompt_tokens=620, chunk_tokens=500, output_tokens=9),
        call(3, "merger", index=0, prompt_tokens=300, selected_tokens=200, output_tokens=50),
        call(4, "merger", index=1, prompt_tokens=300, selected_tokens=200, output_tokens=50),
        call(5, "merger", level=1, prompt_tokens=200, selected_tokens=100, output_tokens=50),
        call(6, "reader", turn=2, prompt_tokens=670, chunk_tokens=500, memory_tokens=50),
        call(7, "answerer", turn=2, prompt_tokens=150, memory_tokens=50, output_tokens=5),
    ]
    job = job_of(calls, name="q")
    assert [[request.role for request in stage] for stage in job.stages] == [
        ["reader", "reader"],
        ["reader"],  # asked again once it has failed
        ["merger", "merger"],
        ["merger"],
        ["reader"],
        ["answerer"],
    ]
    assert [r.prompt_tokens for stage in job.stages for r in stage] == [
        c.prompt_tokens for c in calls
    ]
    cost = simulate([job], slots(2, cache_tokens=None))
    assert cost.output_tokens == 7 + 9 + 50 + 50 + 50 + 5
    assert cost.cached_tokens > 500, "the chunks that were read before"


def test_a_recurrent_workflow_becomes_one_call_after_the_other() -> None:
    calls = [
        call(i, "memorizer", index=i, prompt_tokens=600, chunk_tokens=500, memory_tokens=20)
        for i in range(3)
    ]
    job = job_of([*calls, call(3, "answerer", prompt_tokens=80, memory_tokens=20)])
    assert [len(stage) for stage in job.stages] == [1, 1, 1, 1]


def test_latency_counts_from_when_a_question_is_let_in() -> None:
    one = Request(role="answerer", turn=1, prompt=(Segment("q", 400),), output_tokens=10)
    jobs = [Job(name=n, stages=((one,),)) for n in ("a", "b")]
    cost = simulate(jobs, ALONE, in_flight=1)
    assert cost.makespan_s == pytest.approx(2 * (0.01 + 0.12))
    assert cost.latencies_s == pytest.approx((0.13, 0.13))


@pytest.mark.parametrize(
    ("batch", "seconds"), [(1, 0.01), (4, 0.01 + 3 / 7 * 0.02), (8, 0.03), (15, 0.05)]
)
def test_time_per_token_lies_on_straight_lines_between_the_given_points(
    batch: int, seconds: float
) -> None:
    server = slots(1, decode_seconds=SLOW_TOGETHER)
    assert server.token_seconds(batch) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "changes",
    [
        {"prefill_rate": 0},
        {"decode_seconds": ()},
        {"decode_seconds": ((4, 0.01), (1, 0.02))},
        {"decode_seconds": ((1, 0.02), (4, 0.01))},
        {"slots": 0},
        {"cache_tokens": -1},
        {"block_tokens": 0},
        {"batching": "magic"},
    ],
)
def test_machines_that_cannot_be_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(InvalidSetting, match=next(iter(changes))):
        dataclasses.replace(ALONE, **changes)


def test_other_input_that_cannot_be_is_refused() -> None:
    with pytest.raises(InvalidSetting, match="there are: 7b"):
        machine("70b")
    with pytest.raises(InvalidSetting, match="yes is 0 to 4"):
        Reading(chunks=4, chunk_tokens=1, yes=(5,))
    with pytest.raises(InvalidSetting, match="expected a job"):
        simulate([], ALONE)
    with pytest.raises(InvalidSetting, match="schedule is one of"):
        many("random", room=1)
    with pytest.raises(InvalidSetting, match="order is one of"):
        parallel_job(HIT, order="shuffled")  # type: ignore[arg-type]
    with pytest.raises(InvalidSetting, match="shares in"):
        parallel_latency(HIT, ALONE, cached=(2,))


@pytest.mark.slow
def test_the_figure_is_drawn_and_its_table_printed(
    repo_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = runpy.run_path(str(repo_dir / "examples" / "plot_memory_cost.py"))
    program["main"](["--output", str(tmp_path / "cost.png")])
    assert (tmp_path / "cost.png").stat().st_size > 20_000
    lines = capsys.readouterr().out.splitlines()
    work = [line for line in lines if line.lstrip().startswith(("7b ", "35b-moe "))]
    assert len(work) == 6, "two machines; recurrent, parallel without and with a cache"


def read_by_the_oracle(order: Any, **changes: Any) -> tuple[MemoryLoop, list[str]]:
    """A loop over a two-hop question in twelve chunks, and its prompts by call."""
    task = synthetic_tasks("kg2", tokens=2_400, n=1, chunk_tokens=200)[0]
    chunks = chunk_document(task.document, size=200)
    settings = memory_settings(order=order, **changes)
    loop = MemoryLoop(task.question, chunks, settings=settings)
    prompts: list[str] = []
    speaker = oracle(task)

    def speak(view: Any) -> str:
        prompts.append(view["prompt"])
        return speaker(view)

    return play(loop, speak), prompts


@pytest.mark.parametrize(
    ("order", "less"),
    [("question_chunk_memory", 0.03), ("chunk_question_memory", 0.08), ("reference", 0.03)],
)
def test_what_records_say_of_the_cache_is_what_the_real_prompts_would_find(
    order: Any, less: float
) -> None:
    """Less by a few tokens: labels, and the question where it stands behind the chunk."""
    loop, prompts = read_by_the_oracle(order)
    server = Machine(
        prefill_rate=1e4, decode_seconds=((1, 0.01),), slots=1, cache_tokens=None, block_tokens=4
    )
    words = WordTokenizer()
    beginnings = Beginnings()
    for call, prompt in zip(loop.calls, prompts, strict=True):
        beginnings.add(call.role, prompt)
    job = job_of(loop.calls, order=order, beginnings=beginnings.tokens(words.count))
    cost = simulate([job], server)
    real = RealPrompts(4)
    found = [real.find_and_add(words.offsets(prompt), prompt) for prompt in prompts]
    reads = [call for call in cost.served if call.role == "reader"]
    assert len(reads) == 3 * 12
    prompt_tokens = sum(call.prompt_tokens for call in reads)
    simulated = sum(call.cached_tokens for call in reads) / prompt_tokens
    actual = sum(t for t, call in zip(found, loop.calls, strict=True) if call.role == "reader")
    assert actual / prompt_tokens - less <= simulated <= actual / prompt_tokens + 0.01


class RealPrompts:
    """A prefix cache over the words of prompts as they stand."""

    def __init__(self, block: int) -> None:
        self.block = block
        self.held: set[tuple[str, ...]] = set()

    def find_and_add(self, offsets: Any, prompt: str) -> int:
        words = tuple(prompt[start:end] for start, end in offsets)
        ends = range(self.block, len(words) + 1, self.block)
        hits = 0
        for end in ends:
            if words[:end] not in self.held:
                break
            hits = end
        self.held.update(words[:end] for end in ends)
        return min(hits, (len(words) - 1) // self.block * self.block)


def test_the_default_order_lets_later_turns_of_the_real_loop_find_their_chunks() -> None:
    def hits(order: Any) -> list[float]:
        loop, _ = read_by_the_oracle(order)
        server = slots(4, cache_tokens=None, block_tokens=4)
        cost = simulate([job_of(loop.calls, order=order)], server)
        return [cost.hit_rate(turn) for turn in (1, 2, 3)]

    first, second, third = hits("question_chunk_memory")
    assert first == 0
    assert min(second, third) > 0.97, "all but the last block of a chunk"
    assert hits("reference") == [0, 0, 0]
