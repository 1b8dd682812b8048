"""Measuring what judging costs: the arithmetic on given counters, and that no CPU time is lost."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sandbox import Limits, SandboxError, SandboxUnavailable
from sandbox.bench import cpu, engine, measure, modes, report
from sandbox.bench.cpu import Usage
from sandbox.bench.machine import Machine, fork_floor_ms
from sandbox.bench.measure import Measurement, Sample, Settings
from sandbox.bench.report import Range
from sandbox.bench.uptime import CountedBackend, uptime
from sandbox.bubblewrap import BubblewrapBackend
from sandbox.pool import WorkerPool

# Burns CPU time by the process's own clock, so that its use is known: at least so much, and a bit.
BURN = "import time\nwhile time.process_time() < 0.4: pass\n"
NESTED = f"import subprocess, sys\nsubprocess.run([sys.executable, '-I', '-S', '-c', {BURN!r}])\n"
WAIT = "print(flush=True)\ninput()\n"


def python(source: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", source],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("source", [BURN, NESTED, NESTED + WAIT, BURN + WAIT])
def test_cpu_time_of_descendants_dead_or_alive_is_counted_once(source: str) -> None:
    before = cpu.usages()
    with python(source) as process:
        assert process.stdout is not None
        process.stdout.readline()  # it waits, or has ended
        if WAIT not in source:
            process.wait()
        spent_s = cpu.spent_s(before, cpu.usages())
        process.communicate("\n")
    assert 0.38 < spent_s < 0.7


def test_an_orphans_cpu_time_stays_in_the_tree_and_nothing_stays_behind() -> None:
    # The middle process ends without waiting; its child burns and ends later.
    orphan = f"import sys\nsys.stdout.close()\n{BURN}"
    middle = f"import subprocess, sys\nsubprocess.Popen([sys.executable, '-I', '-c', {orphan!r}])"
    with cpu.keeping_orphans():
        before = cpu.usages()
        with python(middle) as process:
            process.communicate("")
        deadline_s = time.monotonic() + 30
        while time.monotonic() < deadline_s and not any(
            stat.dead and stat.parent == os.getpid() for _, stat in cpu._all_stats()
        ):
            time.sleep(0.05)
        settled = cpu.settled()
        assert 0.38 < cpu.spent_s(before, settled) < 0.7
    assert not (settled.keys() - before.keys()) & cpu.usages().keys()


def test_children_that_are_left_out_do_not_count() -> None:
    with python(BURN + WAIT) as process:
        without = {process.pid}
        before = cpu.usages(without=without)
        assert process.stdout is not None
        process.stdout.readline()
        assert cpu.spent_s(before, cpu.usages(without=without)) < 0.3
        process.communicate("\n")


def test_a_process_may_have_any_name() -> None:
    # The fields of proc(5): state, ppid, 9 more, utime, stime, cutime, cstime, 5 more, start,
    # vsize, rss.
    stat = cpu._parsed("77 (a) S 1 (b c)) R 5 0 0 0 0 0 0 0 0 0 11 22 33 44 20 0 1 0 9 8192 7 0\n")
    assert (stat.parent, stat.command) == (5, "a) S 1 (b c)")
    assert (stat.ticks, stat.reaped_ticks, stat.pages) == (33, 77, 7)
    assert not stat.dead


def used(role: str, own_s: float, reaped_s: float) -> Usage:
    return Usage(role=role, own_s=own_s, reaped_s=reaped_s, rss_kb=0)


def test_time_is_told_by_the_kind_of_process() -> None:
    before = {1: used("client", 1.0, 2.0), 2: used("bwrap", 0.5, 0.0)}
    after = {
        1: used("client", 1.5, 2.25),
        2: used("bwrap", 0.5, 0.0),
        3: used("zygote", 0.125, 4.0),
    }
    assert cpu.spent_s(before, after) == 0.5 + 0.25 + 0.125 + 4.0
    roles = cpu.spent_by_role_s(before, after)
    assert {role: value for role, value in roles.items() if value} == {
        "client": 0.5,
        "client's dead": 0.25,
        "zygote": 0.125,
        "zygote's dead": 4.0,
    }


def sample(mode: str, number: int, wall_s: float, cpu_s: float | None, **roles: float) -> Sample:
    return Sample(
        mode=mode,
        round=number,
        programs=4,
        tests=40,
        wall_s=wall_s,
        latencies_s=(0.1, 0.4, 0.2, 0.3),
        cpu_s=cpu_s,
        roles_s=roles,
    )


@pytest.fixture
def measurement() -> Measurement:
    # By hand. CPU per test: host 20, 10, 30 ms; docker run 60, 50, 40 ms; ours 2, 2.5, 5 ms.
    return Measurement(
        settings=Settings(),
        machine=Machine(
            cores=2, cpu="", kernel="", python="", engine="", fork_cpu_ms=0.5, fork_wall_ms=0.6
        ),
        samples=(
            sample("host", 0, 1.0, 0.8),
            sample("host", 1, 2.0, 0.4),
            sample("host", 2, 4.0, 1.2),
            sample("docker-run", 0, 8.0, 2.4),
            sample("docker-run", 1, 8.0, 2.0),
            sample("docker-run", 2, 8.0, 1.6),
            sample("docker", 0, 0.25, 0.08, client=0.04),
            sample("docker", 1, 0.5, 0.1, client=0.08),
            sample("docker", 2, 0.5, 0.2, client=0.12),
        ),
        left_out={"bubblewrap": "no bwrap binary"},
        notes=(),
        load_before=1.0,
        load_after=2.0,
    )


def triple(found: Range | None) -> tuple[float, float, float]:
    assert found is not None
    return (found.low, found.median, found.high)


def test_rows_give_ranges_over_rounds_and_ratios_within_rounds(measurement: Measurement) -> None:
    host, run, ours = report.rows(measurement)
    assert [host.mode, run.mode, ours.mode] == ["host", "docker-run", "docker"]
    assert triple(host.cpu_ms) == pytest.approx((10, 20, 30))
    assert triple(ours.cpu_ms) == pytest.approx((2, 2.5, 5))
    assert ours.programs_per_s == Range(8.0, 8.0, 16.0)
    assert ours.p50_ms == Range(200.0, 200.0, 200.0)
    assert ours.p95_ms == Range(400.0, 400.0, 400.0)
    # Round by round: 20/2, 10/2.5, 30/5 and 60/2, 50/2.5, 40/5.
    assert triple(ours.host_cpu) == pytest.approx((4, 6, 10))
    assert triple(ours.run_cpu) == pytest.approx((8, 20, 30))
    assert ours.host_wall == Range(4.0, 4.0, 8.0)
    assert ours.run_wall == Range(16.0, 16.0, 32.0)


def test_the_table_in_markdown_has_the_range_of_every_figure(measurement: Measurement) -> None:
    head, rule, *rows = report.markdown(report.rows(measurement)).splitlines()
    assert head.count("|") == rule.count("|") == rows[2].count("|")
    assert rows[2].startswith("| ours (docker) | 2.50 (2.00-5.00) | 6.00 (4.00-10.00) | 20.0 (")
    assert rows[2].endswith("| 8.00 (8.00-16.00) | 200 (200-200) | 400 (400-400) |")


def test_goals_are_judged_by_the_medians(measurement: Measurement) -> None:
    goals = report.goals(report.rows(measurement))
    assert [(goal.measured, goal.met) for goal in goals] == [
        (pytest.approx(2.5), True),
        (pytest.approx(6.0), True),
        (pytest.approx(20.0), True),
    ]


def test_cpu_time_that_cannot_be_seen_is_left_out_and_not_guessed() -> None:
    measurement = Measurement(
        settings=Settings(),
        machine=Machine(
            cores=1, cpu="", kernel="", python="", engine="", fork_cpu_ms=1.0, fork_wall_ms=1.0
        ),
        samples=(sample("host", 0, 1.0, 0.5), sample("docker", 0, 0.5, None)),
        left_out={},
        notes=("why",),
        load_before=0.0,
        load_after=0.0,
    )
    ours = report.rows(measurement)[1]
    assert ours.cpu_ms is None
    assert ours.host_cpu is None
    assert ours.host_wall == Range(2.0, 2.0, 2.0)
    assert report.goals([ours]) == []


def test_a_profile_is_the_median_over_rounds(measurement: Measurement) -> None:
    assert report.profile(measurement) == {"docker": {"client": pytest.approx(2.0)}}


@pytest.mark.parametrize(
    ("share", "expected"), [(0.5, 5.0), (0.95, 10.0), (0.1, 1.0), (0.01, 1.0), (1.0, 10.0)]
)
def test_percentiles_are_values_that_occurred(share: float, expected: float) -> None:
    assert report.percentile([float(value) for value in range(10, 0, -1)], share) == expected


def test_settings_that_cannot_work_are_named() -> None:
    with pytest.raises(ValueError, match="cannot measure dockr; choose from host, docker-run"):
        Settings(modes=("host", "dockr"))
    with pytest.raises(ValueError, match="cannot measure nothing"):
        Settings(modes=())
    with pytest.raises(ValueError, match="clients must be at least 1, got 0"):
        Settings(clients=0)


def test_every_way_takes_its_turn_at_every_place() -> None:
    names = ["a", "b", "c"]
    turns = [measure._rotated(names, number) for number in range(3)]
    assert [sorted(place) for place in zip(*turns, strict=True)] == [names] * 3


def test_a_fork_costs_something() -> None:
    cpu_ms, wall_ms = fork_floor_ms(forks=50)
    assert cpu_ms > 0
    assert wall_ms > 0


def test_outputs_are_compared() -> None:
    work = modes.Work("print(input())", (("1\n", "2\n"),))
    with modes.opened("host", clients=1) as host, pytest.raises(SandboxError, match=r"'2\\n'"):
        host.run(0, work)


@pytest.fixture
def no_engine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Neither an engine that answers nor one that could be started."""
    monkeypatch.setattr(measure, "why_no_own_engine", lambda: "starting an engine takes root")
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")


def test_without_an_engine_the_rest_is_measured_and_the_gap_is_told(no_engine: None) -> None:
    told: list[str] = []
    measurement = measure.measure(
        Settings(modes=("docker", "host", "bubblewrap"), rounds=2, programs=2, tests=2),
        progress=lambda name, done, total: told.append(f"{name} {done}/{total}"),
    )
    assert told == ["host 0/4", "bubblewrap 1/4", "bubblewrap 2/4", "host 3/4"]
    assert list(measurement.left_out) == ["docker"]
    assert "no Docker engine answers" in measurement.left_out["docker"]
    for sample in measurement.samples:
        assert sample.cpu_s is not None
        assert sample.cpu_s > 0
        assert len(sample.latencies_s) == 2
    guests = [sample for sample in measurement.samples if sample.mode == "bubblewrap"]
    assert "zygote" in guests[0].roles_s


def test_an_engine_that_is_there_is_taken_where_none_can_be_started(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def no_engine() -> None:
        raise SandboxUnavailable("no mounts allowed")

    monkeypatch.setattr(measure, "why_no_own_engine", lambda: None)
    monkeypatch.setattr(measure, "own_engine", no_engine)
    monkeypatch.setattr("sandbox.factory.ping_engine", lambda: "1.2.3")
    with measure.engine() as (pid, version, note):
        assert (pid, version) == (None, "1.2.3")
        assert "no mounts allowed" in note


def test_one_wrong_answer_ends_the_measurement() -> None:
    class Wrong:
        asked = 0

        def run(self, client: int, work: modes.Work) -> None:
            self.asked += 1
            raise SandboxError("wrong")

    wrong = Wrong()
    with ThreadPoolExecutor(1) as clients, pytest.raises(SandboxError, match="wrong"):
        measure._sample("host", wrong, clients, settings=Settings(), number=0, engine_pid=None)
    assert wrong.asked <= 2


def test_without_the_docker_command_its_rows_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(SandboxError, match="install Docker's command line client"):
        modes.docker(["run"])


def test_uptime_compares_blocks_of_one_pool() -> None:
    result = uptime("bubblewrap", tests=20, tests_per_program=5, block=10)
    assert (result.backend, result.tests) == ("bubblewrap", 20)
    assert [block.tests for block in result.blocks] == [10, 10]
    for block in result.blocks:
        assert block.cpu_ms is not None
        assert block.cpu_ms > 0
        assert block.guest_rss_mb is not None
        assert block.guest_rss_mb > 1
        assert block.host_rss_mb > 1


def test_what_a_replaced_worker_had_used_is_not_lost() -> None:
    counted = CountedBackend(BubblewrapBackend())
    burn = f"{BURN}print(input())"
    with cpu.keeping_orphans(), WorkerPool(counted, size=1, recycle_after=1) as pool:
        before = cpu.settled()
        done = pool.run(burn.encode(), b"1\n", Limits())
        assert done.stdout == b"1\n"
        spent_s = cpu.spent_s(before, cpu.settled()) + counted.lost_s
    assert 0.38 < spent_s < 1.2


needs_own_engine = pytest.mark.skipif(
    engine.why_no_own_engine() is not None, reason=f"no engine: {engine.why_no_own_engine()}"
)


def processes_that_mention(text: str) -> Iterator[str]:
    for entry in os.scandir("/proc"):
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                command = Path(entry.path, "cmdline").read_text("utf-8", "replace")
            except OSError:
                continue
            if text in command:
                yield command


@pytest.mark.docker
@pytest.mark.slow
@needs_own_engine
def test_an_engine_whose_owner_is_killed_goes_away() -> None:
    script = (
        "import os, signal\n"
        "from sandbox.bench.engine import own_engine\n"
        "with own_engine() as engine:\n"
        "    print(engine.url.removeprefix('unix://'), flush=True)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    folder = Path(done.stdout.strip()).parent
    assert folder.name.startswith("mars-envs-bench-"), done.stdout
    deadline_s = time.monotonic() + 60
    while time.monotonic() < deadline_s and (
        folder.exists() or list(processes_that_mention(str(folder)))
    ):
        time.sleep(0.1)
    assert not folder.exists()
    assert list(processes_that_mention(str(folder))) == []
    assert str(folder) not in Path("/proc/self/mounts").read_text()


@pytest.mark.docker
@needs_own_engine
def test_an_engine_that_does_not_start_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "_find", lambda name: "/bin/false")
    monkeypatch.setattr(engine, "_STARTS_S", 5.0)
    monkeypatch.setenv("DOCKER_HOST", "tcp://elsewhere")
    with (
        pytest.raises(SandboxUnavailable, match="did not start"),
        engine.own_engine(),
    ):
        pass
    assert os.environ["DOCKER_HOST"] == "tcp://elsewhere"
