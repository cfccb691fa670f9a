"""Go programs on the virtual clock do what the meaning of package time says, to the nanosecond."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import socket
import subprocess
from pathlib import Path

import pytest

import clock_probe
from clock_probe import WALL_NS, run_to_end, running
from equipoise.adapters.kubernetes.clock.page import START_NS

MS = 1_000_000
EXACT = ("sleep", "timer", "after", "func", "select", "reset", "stop", "ticker")
DEADLINES = ("context", "deadline")
"""They are absolute times, which count the readings of the clock in their instant: 1 ns each."""
READINGS_NS_MAX = 10_000


@pytest.fixture(scope="module")
def probe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return clock_probe.build_probe(tmp_path_factory.mktemp("probe"))


Operation = dict[str, object]


def random_programs(seed: int) -> list[list[Operation]]:
    rng = random.Random(seed)
    # Few different times, so that many goroutines wake at one instant.
    times = [
        rng.randint(1, 50) * MS * rng.choice([1, 1, 7, 1000]) for _ in range(rng.randint(1, 6))
    ]
    return [
        [
            {
                "Kind": rng.choice(EXACT + DEADLINES),
                "NS": rng.choice(times),
                "Other": rng.choice(times),
            }
            for _ in range(rng.randint(1, 8))
        ]
        for _ in range(rng.randint(1, 30))
    ]


@pytest.mark.parametrize("seed", range(12))
def test_goroutines_wake_at_exactly_their_instants(probe: Path, tmp_path: Path, seed: int) -> None:
    programs = random_programs(seed)
    ended = run_to_end(probe, tmp_path, "programs", text=json.dumps(programs))
    seen = {(int(i), int(j)): (at_ns, int(said)) for at_ns, (i, j, said) in ended.lines}
    assert len(seen) == sum(map(len, programs))
    for i, operations in enumerate(programs):
        at_ns, extra_ns = 0, 0
        for j, operation in enumerate(operations):
            duration_ns = int(str(operation["NS"]))
            at_ns += duration_ns
            if operation["Kind"] in DEADLINES:
                extra_ns = READINGS_NS_MAX
            instant_ns, said_ns = seen[i, j]
            assert at_ns <= instant_ns <= at_ns + extra_ns, (i, j, operation)
            assert abs(said_ns - instant_ns) <= READINGS_NS_MAX, (i, j, operation)
            at_ns = instant_ns


def test_two_runs_wake_at_the_same_instants(probe: Path, tmp_path: Path) -> None:
    programs = [
        [operation for operation in operations if operation["Kind"] in EXACT]
        for operations in random_programs(99)
    ]
    text = json.dumps(programs)
    runs = [run_to_end(probe, tmp_path, "programs", text=text).lines for _ in range(3)]
    instants = [sorted((at_ns, words[:2]) for at_ns, words in lines) for lines in runs]
    assert instants[0] == instants[1] == instants[2]


def test_each_reading_within_an_instant_adds_a_nanosecond(probe: Path, tmp_path: Path) -> None:
    ended = run_to_end(probe, tmp_path, "readings")
    said = [int(words[0]) for _, words in ended.lines]
    # The libraries of the probe have read the clock when they started.
    assert WALL_NS < said[0] < WALL_NS + 100
    assert said == [said[0] + number for number in range(1000)]


def test_random_numbers_depend_on_the_seed_and_not_on_other_goroutines(
    probe: Path, tmp_path: Path
) -> None:
    runs = [run_to_end(probe, tmp_path, "draws", seed=seed).lines for seed in (1, 1, 1, 2)]
    drawn = [
        [[words[2:] for _, words in lines if words[1] == str(number)] for number in range(3)]
        for lines in runs
    ]
    assert drawn[0] == drawn[1] == drawn[2]
    assert all(first != other for first, other in zip(drawn[0], drawn[3], strict=True))
    assert all(len({first for first, _ in numbers}) > 190 for numbers in drawn[0])


def test_garbage_collection_works_while_the_clock_stands(probe: Path, tmp_path: Path) -> None:
    ended = run_to_end(probe, tmp_path, "collect")
    (at_ns, collected), (end_ns, slept) = ended.lines
    assert at_ns == 0
    assert int(collected[1]) > 50
    assert int(collected[2]) < 1000
    assert end_ns == 3 * 3600 * 1000 * MS
    assert int(slept[1]) - end_ns < 1000


def test_a_hundred_thousand_timers_fire_at_their_milliseconds(probe: Path, tmp_path: Path) -> None:
    ended = run_to_end(probe, tmp_path, "timers", "100000")
    assert ended.lines == [(200 * MS, ["late", "0"])]
    assert ended.steps == 200


def test_http_requests_time_out_in_virtual_time(probe: Path, tmp_path: Path) -> None:
    ended = run_to_end(probe, tmp_path, "requests")
    assert [words for _, words in ended.lines] == [
        ["/now", "now", "0"],
        ["/later", "later", "3000"],
        ["/never", "timeout", "8000"],
        ["/now", "now", "8000"],
    ]


def test_threads_processes_and_signals_keep_the_count(probe: Path, tmp_path: Path) -> None:
    ended = run_to_end(probe, tmp_path, "threads")
    assert [words for _, words in ended.lines] == [["threads", "3000"], ["end", "4000"]]


def test_a_signal_on_its_way_is_not_idleness(probe: Path, tmp_path: Path) -> None:
    """The main thread takes it, and may be woken late while every other thread already sleeps."""
    ended = run_to_end(probe, tmp_path, "signals", "5000")
    assert ended.lines == [(5000 * MS, ["taken", "5000"])]
    assert ended.steps == 5000


def test_a_program_that_computes_is_never_idle(probe: Path, tmp_path: Path) -> None:
    with running(probe, tmp_path, "busy") as busy:
        assert not asyncio.run(busy.rest(limit_s=0.5))
        assert not busy.page.idle


def test_a_program_in_a_system_call_is_not_idle(probe: Path, tmp_path: Path) -> None:
    """It waits for the outside, so virtual time must not pass."""
    with running(probe, tmp_path, "lines") as reader:
        assert not asyncio.run(reader.rest(limit_s=0.3))
        reader.feed("one\n")
        assert not asyncio.run(reader.rest(limit_s=0.3))
        assert reader.lines == [(0, ["one", "0"])]


def test_a_program_that_waits_for_ever_is_idle_without_a_timer(probe: Path, tmp_path: Path) -> None:
    with running(probe, tmp_path, "deadlock") as stuck:
        assert asyncio.run(stuck.rest())
        assert stuck.page.next_timer_ns == 0


def test_a_page_serves_one_process(probe: Path, tmp_path: Path) -> None:
    with running(probe, tmp_path, "deadlock") as first:
        assert asyncio.run(first.rest())
        done = subprocess.run(
            (str(probe), "readings"),
            env=os.environ | first.page.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 2
        assert "EQUIPOISE_CLOCK" in done.stderr
        assert asyncio.run(first.rest())


def test_without_the_variable_the_program_runs_on_the_real_clock(probe: Path) -> None:
    done = subprocess.run((str(probe), "steps", "20"), env=os.environ, check=False, timeout=60)
    assert done.returncode == 0


def test_a_killed_program_is_noticed(probe: Path, tmp_path: Path) -> None:
    with running(probe, tmp_path, "deadlock") as victim:
        assert asyncio.run(victim.rest())
        victim.process.send_signal(signal.SIGKILL)
        victim.process.wait()
        assert not asyncio.run(victim.run_on())


def test_answers_to_a_server_come_before_the_clock_moves(probe: Path, tmp_path: Path) -> None:
    """A server in this process: each of its lines, and the end of a connection, is worked off."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = "{}:{}".format(*server.getsockname())
        with running(probe, tmp_path, "connect", address) as client:
            asyncio.run(_exchange_lines(client, server))


async def _exchange_lines(client: clock_probe.Probe, server: socket.socket) -> None:
    accepted = [server.accept()[0] for _ in range(2)]
    client.server.pairs = [(conn.getpeername(), conn.getsockname()) for conn in accepted]
    link, other = sorted(accepted, key=lambda conn: conn.getpeername()[1])
    assert await client.rest()
    for round_number in range(200):
        waits_ms = round_number % 3 * 5
        at_ns = client.now_ns
        link.sendall(f"{waits_ms}\n".encode())
        assert await client.rest() if waits_ms else True
        if waits_ms:
            assert client.page.next_timer_ns - START_NS == at_ns + waits_ms * MS
            client.page.advance(client.page.next_timer_ns)
        said = b""
        while not said.endswith(b"\n"):
            said += link.recv(100)
        assert int(said) * MS == at_ns + waits_ms * MS
    other.close()
    assert await client.rest()
    assert client.lines == [(client.now_ns, ["closed", str(client.now_ns // MS)])]
    link.close()
