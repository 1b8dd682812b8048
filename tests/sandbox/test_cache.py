"""The cache of runs: what is kept, what is shared, and that no one waits for ever."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from sandbox.cache import CacheStats, FlightCache, key


def make(
    max_bytes: int = 1 << 20, *, keep: Callable[[str], bool] = lambda value: True
) -> FlightCache[str]:
    return FlightCache(size=len, keep=keep, max_bytes=max_bytes)


class Runner:
    """Gives `value-<key>` for each key and remembers what it ran."""

    def __init__(self, keys: list[bytes], delay_s: float = 0.0) -> None:
        self.keys = keys
        self.delay_s = delay_s
        self.ran: list[bytes] = []

    def __call__(self, wanted: list[int], took: Callable[[str], bool]) -> None:
        for position in wanted:
            time.sleep(self.delay_s)
            self.ran.append(self.keys[position])
            if took(f"value-{self.keys[position].decode()}"):
                break


def test_a_known_value_is_not_run_again() -> None:
    cache, runner = make(), Runner([b"a", b"b"])
    assert cache.resolve(runner.keys, runner) == [("value-a", False), ("value-b", False)]
    assert cache.resolve(runner.keys, runner) == [("value-a", True), ("value-b", True)]
    assert runner.ran == [b"a", b"b"]
    stats = cache.stats
    assert (stats.hits, stats.misses, stats.entries) == (2, 2, 2)


def test_the_same_key_twice_in_one_call_runs_once() -> None:
    cache, runner = make(), Runner([b"a", b"b", b"a"])
    assert [known for _, known in cache.resolve(runner.keys, runner)] == [False, False, True]
    assert runner.ran == [b"a", b"b"]
    assert cache.stats.hits == 1


def test_what_may_not_be_kept_is_run_again() -> None:
    cache, runner = make(keep=lambda value: value != "value-a"), Runner([b"a", b"b"])
    cache.resolve(runner.keys, runner)
    assert [known for _, known in cache.resolve(runner.keys, runner)] == [False, True]
    assert runner.ran == [b"a", b"b", b"a"]


def test_the_least_recently_used_go_first() -> None:
    cache = make(max_bytes=3 * 1100)
    for name in (b"a", b"b", b"c", b"a", b"d"):
        cache.resolve([name], Runner([name]))
    again = {name: cache.resolve([name], Runner([name]))[0][1] for name in (b"a", b"c", b"d")}
    assert again == {b"a": True, b"c": True, b"d": True}
    assert cache.resolve([b"b"], Runner([b"b"]))[0][1] is False
    assert cache.stats.size_bytes <= 3 * 1100


def test_a_value_larger_than_the_cache_leaves_it_empty() -> None:
    cache = make(max_bytes=1)
    assert cache.resolve([b"a"], Runner([b"a"])) == [("value-a", False)]
    assert cache.stats == CacheStats(misses=1)


def test_nothing_after_the_last_needed_is_run() -> None:
    cache, runner = make(), Runner([b"a", b"b", b"c"])
    got = cache.resolve(runner.keys, runner, last=lambda position, value: value == "value-b")
    assert [value for value, _ in got] == ["value-a", "value-b"]
    assert runner.ran == [b"a", b"b"]


def test_a_known_last_value_spares_what_follows_but_not_what_precedes() -> None:
    cache, runner = make(), Runner([b"a", b"b", b"c"])
    cache.resolve([b"b"], Runner([b"b"]))
    got = cache.resolve(runner.keys, runner, last=lambda position, value: value == "value-b")
    assert got == [("value-a", False), ("value-b", True)]
    assert runner.ran == [b"a"]


def test_keys_that_were_not_run_can_be_asked_for_again() -> None:
    cache, runner = make(), Runner([b"a", b"b"])
    cache.resolve(runner.keys, runner, last=lambda position, value: True)
    assert cache.resolve([b"b"], Runner([b"b"])) == [("value-b", False)]


def test_threads_that_ask_at_once_share_one_run() -> None:
    cache, runner = make(), Runner([b"a"], delay_s=0.1)
    with ThreadPoolExecutor(8) as threads:
        got = list(threads.map(lambda _: cache.resolve([b"a"], runner)[0], range(8)))
    assert runner.ran == [b"a"]
    assert sorted(known for _, known in got) == [False] + [True] * 7
    assert (cache.stats.hits, cache.stats.misses) == (7, 1)


def test_a_run_that_fails_is_made_by_another_thread() -> None:
    cache = make()
    failing = threading.Event()

    def fail(wanted: list[int], took: Callable[[str], bool]) -> None:
        failing.set()
        time.sleep(0.1)
        raise OSError("broken")

    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(cache.resolve, [b"a"], fail)
        failing.wait()
        second = threads.submit(cache.resolve, [b"a"], Runner([b"a"]))
        with pytest.raises(OSError, match="broken"):
            first.result(5)
        assert second.result(5) == [("value-a", False)]


def test_threads_with_the_same_keys_in_opposite_order_do_not_deadlock() -> None:
    cache = make(keep=lambda value: False)
    forward, backward = [b"a", b"b", b"c"], [b"c", b"b", b"a"]
    with ThreadPoolExecutor(8) as threads:
        jobs = [
            threads.submit(cache.resolve, keys, Runner(keys, delay_s=0.001))
            for _ in range(25)
            for keys in (forward, backward)
        ]
        for job in jobs:
            assert len(job.result(30)) == 3


def test_keys_depend_on_where_one_part_ends_and_the_next_begins() -> None:
    assert key("ab", "c") != key("a", "bc")
    assert key("ab") != key("ab", "")
    assert key("a\ud800") != key("a")
    assert key(b"a") == key("a")


def test_a_cache_without_room_is_refused() -> None:
    with pytest.raises(ValueError, match="max_bytes"):
        make(max_bytes=0)
