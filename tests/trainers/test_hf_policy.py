"""The Hugging Face policy: exact log-probs, its own batches, rows that leave each other alone."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from trainers import Generation, Request, Sampling
from trainers.errors import ConfigError, ModelNotFound
from trainers.policies import GenerationFailed, Policy
from trainers.policies.hf import HFPolicy
from trainers.tiny_coders import ARCHITECTURES, build_coder, save_coder, warm_up

PROMPTS = ("add 8, times 2\n", "a\n", "mod 4, sub 3\nn=int(input())\nprint((n%4)-3)\nok\n", "x, y")


def ask(prompt: str, *, seed: int = 0, temperature: float = 1.0, max_tokens: int = 12) -> Request:
    return Request(
        prompt=prompt,
        agent="coder_0",
        env_id="env",
        task_id="task",
        observation={},
        info={},
        sampling=Sampling(temperature=temperature, max_tokens=max_tokens),
        seed=seed,
    )


def answer(policy: HFPolicy, *requests: Request) -> list[Generation]:
    async def main() -> list[Generation]:
        return await asyncio.gather(*map(policy.generate, requests))

    return asyncio.run(main())


def teacher_forced(policy: HFPolicy, generation: Generation, temperature: float) -> torch.Tensor:
    """Log-probs of the sampled tokens, computed alone, without padding or cache."""
    ids = torch.tensor([[*generation.prompt_ids, *generation.completion_ids]])
    with torch.no_grad():
        logits = policy.model(ids).logits[0] / temperature
    start = len(generation.prompt_ids)
    logps = torch.log_softmax(logits[start - 1 : -1], dim=-1)
    return logps.gather(1, ids[0, start:, None])[:, 0]


def llama() -> Any:
    config = LlamaConfig(
        vocab_size=55,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=64,
        initializer_range=0.2,
        bos_token_id=None,
        eos_token_id=[1, 7],
    )
    torch.manual_seed(0)
    return LlamaForCausalLM(config)


@pytest.fixture
def policy() -> HFPolicy:
    return HFPolicy("tiny", *build_coder("qwen3", seed=0))


class CountingPolicy(HFPolicy):
    """Notes the prompts of each batch."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.batches: list[list[str]] = []

    def _answer_next(self, batch: list[Any]) -> list[Generation]:
        answers = super()._answer_next(batch)
        self.batches.append([waiting.request.prompt for waiting in batch])
        return answers


def test_it_is_a_policy(policy: HFPolicy) -> None:
    assert isinstance(policy, Policy)
    assert policy.version == 0


@pytest.mark.parametrize("kind", [*ARCHITECTURES, "llama"])
@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_log_probs_agree_with_teacher_forcing_in_a_batch_of_mixed_lengths(
    kind: str, temperature: float
) -> None:
    model, tokenizer = build_coder("qwen3" if kind == "llama" else kind, seed=0)
    policy = HFPolicy("p", llama() if kind == "llama" else model, tokenizer)
    requests = [
        ask(prompt, seed=i, temperature=temperature, max_tokens=3 + 9 * (i % 2))
        for i, prompt in enumerate(PROMPTS * 3)
    ]
    for generation in answer(policy, *requests):
        expected = teacher_forced(policy, generation, temperature)
        torch.testing.assert_close(torch.tensor(generation.logprobs), expected, atol=1e-4, rtol=0)


def test_greedy_takes_the_most_likely_token_and_reports_the_models_log_probs(
    policy: HFPolicy,
) -> None:
    for generation in answer(policy, *(ask(p, temperature=0) for p in PROMPTS)):
        ids = torch.tensor([[*generation.prompt_ids, *generation.completion_ids]])
        with torch.no_grad():
            logits = policy.model(ids).logits[0, len(generation.prompt_ids) - 1 : -1]
        assert logits.argmax(-1).tolist() == list(generation.completion_ids)
        expected = teacher_forced(policy, generation, 1.0)
        torch.testing.assert_close(torch.tensor(generation.logprobs), expected, atol=1e-4, rtol=0)


def test_a_row_does_not_depend_on_its_neighbours(policy: HFPolicy) -> None:
    together = answer(policy, *(ask(p, seed=i) for i, p in enumerate(PROMPTS)))
    for i, prompt in enumerate(PROMPTS):
        (alone,) = answer(policy, ask(prompt, seed=i))
        assert alone.completion_ids == together[i].completion_ids
        assert alone.logprobs == pytest.approx(together[i].logprobs, abs=1e-4)


def test_the_seed_decides_and_any_integer_will_do(policy: HFPolicy) -> None:
    seeds = [0, 0, 1, -1, 2**80]
    texts = [g.completion_ids for g in answer(policy, *(ask("a\n", seed=s) for s in seeds))]
    assert texts[0] == texts[1]
    assert len(set(texts[1:])) == 4


def test_samples_follow_the_models_distribution(policy: HFPolicy) -> None:
    n = 4000
    drawn = answer(policy, *(ask("add 8\n", seed=s, max_tokens=1) for s in range(n)))
    ids = torch.tensor([policy.encode("add 8\n")])
    with torch.no_grad():
        p = torch.softmax(policy.model(ids).logits[0, -1].double(), -1)
    counts = torch.bincount(torch.tensor([g.completion_ids[0] for g in drawn]), minlength=len(p))
    chi2 = ((counts - n * p) ** 2 / (n * p)).sum().item()
    # 54 degrees of freedom: mean 54, standard deviation 10.4.
    assert chi2 < 54 + 4 * 10.4


def test_a_completion_ends_with_its_stop_token_or_at_its_limit() -> None:
    model, tokenizer = build_coder("qwen3", seed=0)
    warm_up(model, tokenizer, [("a\n", "add")], steps=40, batch=4)
    policy = HFPolicy("p", model, tokenizer)
    stopped, cut = answer(
        policy, ask("a\n", temperature=0), ask("a\n", temperature=0, max_tokens=2)
    )
    assert (stopped.text, stopped.finish_reason) == ("add", "stop")
    assert stopped.completion_ids[-1] == tokenizer.eos_token_id
    assert (cut.text, cut.finish_reason) == ("ad", "length")
    assert len(cut.completion_ids) == len(cut.logprobs) == 2


def test_every_stop_token_of_the_models_configuration_ends_a_completion(policy: HFPolicy) -> None:
    several = HFPolicy("p", llama(), policy.tokenizer)
    assert several.stop_ids == {1, 7}
    drawn = answer(several, *(ask("a\n", seed=s, max_tokens=40) for s in range(40)))
    ends = {g.completion_ids[-1] for g in drawn if g.finish_reason == "stop"}
    assert ends == {1, 7}
    for generation in drawn:
        assert not {1, 7} & set(generation.completion_ids[:-1])


def test_a_generation_says_who_made_it_with_which_weights(policy: HFPolicy) -> None:
    policy.version = 3
    (generation,) = answer(policy, ask("a\n"))
    assert (generation.policy, generation.policy_version) == ("tiny", 3)
    assert list(generation.prompt_ids) == policy.encode("a\n")
    assert generation.text == policy.tokenizer.decode(
        generation.completion_ids, skip_special_tokens=True
    )


def test_requests_of_one_moment_form_one_batch_in_order_of_arrival() -> None:
    policy = CountingPolicy("p", *build_coder("gpt_neox", seed=0))
    answer(policy, *map(ask, PROMPTS))
    assert policy.batches == [list(PROMPTS)]


def test_requests_that_other_tasks_make_in_the_same_tick_join_the_batch() -> None:
    policy = CountingPolicy("p", *build_coder("gpt_neox", seed=0))

    async def late(prompt: str) -> Generation:
        await asyncio.sleep(0)
        return await policy.generate(ask(prompt))

    async def main() -> None:
        await asyncio.gather(policy.generate(ask("a\n")), late("b\n"), late("c\n"))

    asyncio.run(main())
    assert policy.batches == [["a\n", "b\n", "c\n"]]


def test_a_batch_is_no_larger_than_max_batch() -> None:
    policy = CountingPolicy("p", *build_coder("gpt_neox", seed=0), max_batch=3)
    generations = answer(policy, *(ask("a\n", seed=s) for s in range(7)))
    assert [len(batch) for batch in policy.batches] == [3, 3, 1]
    assert len({g.completion_ids for g in generations}) == 7


def test_requests_that_arrive_during_a_batch_share_the_next_one() -> None:
    policy = CountingPolicy("p", *build_coder("gpt_neox", seed=0))

    async def main() -> None:
        first = asyncio.create_task(policy.generate(ask("a\n", max_tokens=100)))
        await asyncio.sleep(0.02)
        rest = [asyncio.create_task(policy.generate(ask(p))) for p in ("b\n", "c\n")]
        await asyncio.gather(first, *rest)

    asyncio.run(main())
    assert policy.batches == [["a\n"], ["b\n", "c\n"]]


def test_a_cancelled_request_costs_nothing_and_the_policy_goes_on() -> None:
    policy = CountingPolicy("p", *build_coder("gpt_neox", seed=0))

    async def main() -> Generation:
        doomed = asyncio.create_task(policy.generate(ask("b\n")))
        await asyncio.sleep(0)
        doomed.cancel()
        return await policy.generate(ask("a\n"))

    assert asyncio.run(main()).policy == "p"
    assert policy.batches == [["a\n"]]
    assert answer(policy, ask("c\n"))[0].policy == "p"


def test_an_error_of_the_model_reaches_every_request_of_the_batch(policy: HFPolicy) -> None:
    def broken(*args: Any, **options: Any) -> None:
        raise RuntimeError("out of memory")

    forward, policy.model.forward = policy.model.forward, broken

    async def main() -> list[Any]:
        requests = [policy.generate(ask(p)) for p in PROMPTS]
        return await asyncio.gather(*requests, return_exceptions=True)

    assert [str(error) for error in asyncio.run(main())] == ["out of memory"] * len(PROMPTS)
    policy.model.forward = forward
    assert answer(policy, ask("a\n"))[0].policy == "tiny"


def test_the_model_stays_in_the_mode_it_was_in(policy: HFPolicy) -> None:
    policy.model.train()
    answer(policy, ask("a\n"))
    assert policy.model.training


def test_a_prompt_that_does_not_fit_fails_with_the_numbers(policy: HFPolicy) -> None:
    with pytest.raises(GenerationFailed, match=r"200 tokens .* context is 128"):
        answer(policy, ask("a" * 200))
    with pytest.raises(GenerationFailed, match="no tokens"):
        answer(policy, ask(""))
    with pytest.raises(GenerationFailed, match="positive, got 0"):
        answer(policy, ask("a", max_tokens=0))


def test_a_completion_stops_where_the_context_ends(policy: HFPolicy) -> None:
    policy.stop_ids = frozenset()
    (generation,) = answer(policy, ask("a" * 120, max_tokens=50))
    assert (len(generation.completion_ids), generation.finish_reason) == (8, "length")


def test_a_chat_model_is_asked_through_its_template(policy: HFPolicy) -> None:
    with pytest.raises(ConfigError, match="chat template"):
        HFPolicy("p", policy.model, policy.tokenizer, chat=True)
    policy.tokenizer.chat_template = (
        "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}"
        "{% if add_generation_prompt %}a: {% endif %}"
    )
    chat = HFPolicy("p", policy.model, policy.tokenizer, chat=True)
    assert policy.tokenizer.decode(chat.encode("hi")) == "user: hi\na: "


def test_a_saved_model_answers_as_before(policy: HFPolicy, tmp_path: Path) -> None:
    save_coder(policy.model, policy.tokenizer, tmp_path / "coder")
    loaded = HFPolicy.from_pretrained(tmp_path / "coder")
    assert loaded.name == "coder"
    request = ask("add 8\n", seed=4)
    assert answer(loaded, request)[0].completion_ids == answer(policy, request)[0].completion_ids


def test_a_missing_model_is_named_and_the_remedy_given(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFound, match=r"no model folder .*absent.*save_pretrained"):
        HFPolicy.from_pretrained(tmp_path / "absent")
    with pytest.raises(ModelNotFound, match=r"nobody/nothing.*HF_HUB_OFFLINE"):
        HFPolicy.from_pretrained("nobody/nothing", local_files_only=True)
    with pytest.raises(ModelNotFound, match="in this folder"):
        HFPolicy.from_pretrained(tmp_path)
