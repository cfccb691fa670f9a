"""The wait until a host is on, with a fake clock."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from builders import figures
from equipoise.adapters.bmc.access import FallbackControl
from equipoise.adapters.bmc.host_power import (
    HostPower,
    PowerAccepted,
    PowerNotReached,
    PowerReached,
    PowerReading,
    PowerRefusal,
    PowerRefusalCause,
    WaitClock,
    switch_and_wait,
)

DENIED = PowerRefusal(by="redfish", cause=PowerRefusalCause.DENIED, reason="the password is wrong")
BUSY = PowerRefusal(by="fake", cause=PowerRefusalCause.CONTROLLER_ERROR, reason="busy")


class FakeClock:
    """A clock that advances only in pauses."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.clock = WaitClock(now=lambda: self.now_s, pause=self.pause)

    def pause(self, seconds: float) -> None:
        assert seconds > 0
        self.now_s += seconds


@dataclass
class FakeHost:
    """A host that changes its power some seconds after a command."""

    time: FakeClock
    power: HostPower = HostPower.OFF
    boots_s: float = 20.0
    refuses: PowerRefusal | None = None
    seen: list[PowerReading | PowerRefusal] = field(default_factory=list)
    """The first readings, instead of the true power."""
    calls: list[str] = field(default_factory=list)
    due: tuple[float, HostPower] | None = None

    def wake(self) -> PowerAccepted | PowerRefusal:
        return self._turn("wake", HostPower.ON)

    def sleep(self) -> PowerAccepted | PowerRefusal:
        return self._turn("sleep", HostPower.OFF)

    def state(self) -> PowerReading | PowerRefusal:
        self.calls.append("state")
        if self.due is not None and self.time.now_s >= self.due[0]:
            self.power, self.due = self.due[1], None
        return self.seen.pop(0) if self.seen else PowerReading(by="fake", power=self.power)

    def _turn(self, verb: str, power: HostPower) -> PowerAccepted | PowerRefusal:
        self.calls.append(verb)
        if self.refuses is not None:
            return self.refuses
        self.due = (self.time.now_s + self.boots_s, power)
        return PowerAccepted(by="fake")


def test_the_result_has_the_duration() -> None:
    host = FakeHost(FakeClock())
    done = switch_and_wait(host, HostPower.ON, host.time.clock, timeout_s=60, poll_s=5)
    assert done == PowerReached(power=HostPower.ON, by="fake", took_s=20.0)
    assert host.calls == ["state", "wake", *["state"] * 4]


def test_a_host_that_is_on_gets_no_command() -> None:
    host = FakeHost(FakeClock(), power=HostPower.ON)
    done = switch_and_wait(host, HostPower.ON, host.time.clock)
    assert done == PowerReached(power=HostPower.ON, by="fake", took_s=0.0, already=True)
    assert host.calls == ["state"]


def test_sleep_waits_until_the_host_is_off() -> None:
    host = FakeHost(FakeClock(), power=HostPower.ON)
    done = switch_and_wait(host, HostPower.OFF, host.time.clock)
    assert done == PowerReached(power=HostPower.OFF, by="fake", took_s=20.0)
    assert host.calls[1] == "sleep"


def test_an_accepted_command_without_effect_times_out() -> None:
    host = FakeHost(FakeClock(), boots_s=10**9)
    done = switch_and_wait(host, HostPower.ON, host.time.clock, timeout_s=12, poll_s=5)
    assert isinstance(done, PowerNotReached)
    assert (done.took_s, done.refusal.cause) == (12.0, PowerRefusalCause.TIMEOUT)
    assert done.refusal.cause.code == "power-timeout"
    assert figures(done.refusal.reason) == [12]


def test_a_refusal_is_returned() -> None:
    host = FakeHost(FakeClock(), refuses=BUSY)
    assert switch_and_wait(host, HostPower.ON, host.time.clock) == PowerNotReached(
        refusal=BUSY, took_s=0.0
    )
    unseen = FakeHost(FakeClock(), seen=[DENIED])
    assert switch_and_wait(unseen, HostPower.ON, unseen.time.clock) == PowerNotReached(
        refusal=DENIED, took_s=0.0
    )
    assert unseen.calls == ["state"]


def test_a_controller_may_be_silent_while_it_switches() -> None:
    off = PowerReading(by="fake", power=HostPower.OFF)
    host = FakeHost(FakeClock(), seen=[off, BUSY, BUSY])
    done = switch_and_wait(host, HostPower.ON, host.time.clock)
    assert isinstance(done, PowerReached)
    gone = FakeHost(FakeClock(), seen=[off, *[BUSY] * 99])
    missed = switch_and_wait(gone, HostPower.ON, gone.time.clock, timeout_s=10, poll_s=5)
    assert isinstance(missed, PowerNotReached)
    assert str(BUSY) in missed.refusal.reason


@given(
    st.floats(0, 100), st.floats(0.5, 100), st.floats(0.5, 30), st.lists(st.just(BUSY), max_size=5)
)
def test_the_wait_ends_in_time_and_never_reports_on_too_early(
    boots_s: float, timeout_s: float, poll_s: float, silent: list[PowerRefusal]
) -> None:
    off = PowerReading(by="fake", power=HostPower.OFF)
    host = FakeHost(FakeClock(), boots_s=boots_s, seen=[off, *silent])
    start = host.time.now_s
    done = switch_and_wait(host, HostPower.ON, host.time.clock, timeout_s, poll_s)
    assert host.time.now_s - start <= timeout_s + 1e-6
    if isinstance(done, PowerReached):
        assert done.took_s >= boots_s - 1e-6
    else:
        assert boots_s > timeout_s - poll_s * (len(silent) + 1) - 1e-6


def test_the_next_protocol_is_tried_after_a_failure() -> None:
    fake_clock = FakeClock()
    dead = FakeHost(fake_clock, seen=[DENIED] * 9, refuses=DENIED)
    alive = FakeHost(fake_clock)
    done = switch_and_wait(FallbackControl([dead, alive]), HostPower.ON, fake_clock.clock)
    assert done == PowerReached(power=HostPower.ON, by="fake", took_s=20.0, tried=(DENIED,))
    assert dead.calls == ["state"], "the protocol that worked comes first from then on"


def test_a_refusal_lists_the_failures_of_all_protocols() -> None:
    fake_clock = FakeClock()
    ways = FallbackControl(
        [FakeHost(fake_clock, refuses=DENIED), FakeHost(fake_clock, refuses=BUSY)]
    )
    answer = ways.sleep()
    assert isinstance(answer, PowerRefusal)
    assert str(answer) == f"{DENIED}; {BUSY}"
