"""The space of texts."""

from __future__ import annotations

import pickle
import time

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Text, flatten, flatten_space
from gymnasium.vector.utils import create_shared_memory

from mars_envs import UnicodeText
from mars_envs.spaces import replace_surrogates


@pytest.mark.parametrize("text", ["", " ", "a\nb", "é漢🙂", "\x00", "\u202e", "x" * 100])
def test_any_encodable_text_is_a_member(text: str) -> None:
    assert UnicodeText(100).contains(text)


@pytest.mark.parametrize("value", ["x" * 101, "\ud800", "a\udfffb", b"bytes", 3, None, ["a"]])
def test_other_values_are_not(value: object) -> None:
    assert not UnicodeText(100).contains(value)


def test_short_texts_can_be_excluded() -> None:
    space = UnicodeText(5, min_length=2)
    assert not space.contains("a")
    assert all(2 <= len(space.sample()) <= 5 for _ in range(50))


def test_samples_are_short_members_whatever_the_bound() -> None:
    space = UnicodeText(2**20, seed=0)
    samples = [space.sample() for _ in range(200)]
    assert all(sample in space and len(sample) <= 32 for sample in samples)
    assert len(set(samples)) > 150
    assert any(not sample.isascii() for sample in samples)


def test_equal_seeds_sample_alike() -> None:
    assert UnicodeText(9, seed=4).sample() == UnicodeText(9, seed=4).sample()


def test_a_length_mask_is_honoured() -> None:
    assert len(UnicodeText(100).sample(mask=(7, None))) == 7


def test_membership_of_megabytes_is_quick() -> None:
    space = UnicodeText(2**23)
    start = time.perf_counter()
    assert ("x" * 2**22) in space
    assert ("é" * 2**22) in space
    assert time.perf_counter() - start < 2, "the charset loop of Text takes about a second"


def test_it_is_a_text_space_for_libraries_that_dispatch_on_types() -> None:
    assert isinstance(UnicodeText(3), Text)


def test_equality_is_of_bounds_and_kind() -> None:
    assert UnicodeText(3) == UnicodeText(3, seed=1)
    assert UnicodeText(3) != UnicodeText(4)
    assert UnicodeText(3) != Text(3)


def test_its_repr_is_short() -> None:
    assert repr(UnicodeText(3)) == "UnicodeText(0, 3)"


def test_it_pickles() -> None:
    assert pickle.loads(pickle.dumps(UnicodeText(3))) == UnicodeText(3)


def test_flattening_fails_loudly() -> None:
    for call in (lambda: flatten_space(UnicodeText(3)), lambda: flatten(UnicodeText(3), "é")):
        with pytest.raises(TypeError, match=r"UnicodeText\(0, 3\) cannot be flattened"):
            call()
    dictionary = gym.spaces.Dict(prompt=UnicodeText(3))
    with pytest.raises(TypeError, match="cannot be flattened"):
        flatten_space(dictionary)
    assert not UnicodeText(3).is_np_flattenable


def test_shared_memory_names_the_way_out() -> None:
    with pytest.raises(TypeError, match=r"vector_kwargs=.'shared_memory': False."):
        create_shared_memory(UnicodeText(3), n=2)


def test_lone_surrogates_are_replaced_one_by_one() -> None:
    assert replace_surrogates("a\ud800b\udfff🙂") == "a\ufffdb\ufffd🙂"
    assert replace_surrogates("plain") == "plain"


def test_seeding_by_generator_is_accepted() -> None:
    assert UnicodeText(3, seed=np.random.default_rng(0)).sample() is not None
