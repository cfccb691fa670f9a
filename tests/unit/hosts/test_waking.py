"""Waiting until a host is on, without waiting."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from equipoise.hosts.wake.port import Accepted, Cause, Clock, Power, Refusal, Seen
from equipoise.hosts.wake.waking import Missed, Reached, asleep, woken
from equipoise.hosts.wake.ways import InTurn

DENIED = Refusal(by="redfish", cause=Cause.DENIED, sentence="the password is wrong")
BUSY = Refusal(by="fake", cause=Cause.TROUBLE, sentence="busy")


class Hourglass:
    """Time that passes when somebody pauses."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.clock = Clock(now=lambda: self.now_s, pause=self.pause)

    def pause(self, seconds: float) -> None:
        assert seconds > 0
        self.now_s += seconds


@dataclass
class Machine:
    """A host that changes its power some seconds after it was asked."""

    glass: Hourglass
    power: Power = Power.OFF
    boots_s: float = 20.0
    refuses: Refusal | None = None
    seen: list[Seen | Refusal] = field(default_factory=list)
    """What it says at first, instead of the truth."""
    calls: list[str] = field(default_factory=list)
    due: tuple[float, Power] | None = None

    def wake(self) -> Accepted | Refusal:
        return self._turn("wake", Power.ON)

    def sleep(self) -> Accepted | Refusal:
        return self._turn("sleep", Power.OFF)

    def state(self) -> Seen | Refusal:
        self.calls.append("state")
        if self.due is not None and self.glass.now_s >= self.due[0]:
            self.power, self.due = self.due[1], None
        return self.seen.pop(0) if self.seen else Seen(by="fake", power=self.power)

    def _turn(self, verb: str, power: Power) -> Accepted | Refusal:
        self.calls.append(verb)
        if self.refuses is not None:
            return self.refuses
        self.due = (self.glass.now_s + self.boots_s, power)
        return Accepted(by="fake")


def test_it_says_how_long_it_took() -> None:
    machine = Machine(Hourglass())
    done = woken(machine, machine.glass.clock, timeout_s=60, poll_s=5)
    assert done == Reached(power=Power.ON, by="fake", took_s=20.0)
    assert machine.calls == ["state", "wake", *["state"] * 4]


def test_who_is_on_is_left_alone() -> None:
    machine = Machine(Hourglass(), power=Power.ON)
    done = woken(machine, machine.glass.clock)
    assert done == Reached(power=Power.ON, by="fake", took_s=0.0, already=True)
    assert machine.calls == ["state"]


def test_sleeping_is_the_same_the_other_way_round() -> None:
    machine = Machine(Hourglass(), power=Power.ON)
    done = asleep(machine, machine.glass.clock)
    assert done == Reached(power=Power.OFF, by="fake", took_s=20.0)
    assert machine.calls[1] == "sleep"


def test_an_acceptance_that_never_comes_true_ends_with_the_time() -> None:
    machine = Machine(Hourglass(), boots_s=10**9)
    done = woken(machine, machine.glass.clock, timeout_s=12, poll_s=5)
    assert isinstance(done, Missed)
    assert (done.took_s, done.refusal.cause) == (12.0, Cause.TIMEOUT)
    assert "accepted, but is not on after 12 s; at last it was off" in done.refusal.sentence


def test_a_refusal_is_passed_on() -> None:
    machine = Machine(Hourglass(), refuses=BUSY)
    assert woken(machine, machine.glass.clock) == Missed(refusal=BUSY, took_s=0.0)
    unseen = Machine(Hourglass(), seen=[DENIED])
    assert woken(unseen, unseen.glass.clock) == Missed(refusal=DENIED, took_s=0.0)
    assert unseen.calls == ["state"]


def test_a_controller_that_is_silent_while_it_switches_is_waited_for() -> None:
    off = Seen(by="fake", power=Power.OFF)
    machine = Machine(Hourglass(), seen=[off, BUSY, BUSY])
    done = woken(machine, machine.glass.clock)
    assert isinstance(done, Reached)
    gone = Machine(Hourglass(), seen=[off, *[BUSY] * 99])
    missed = woken(gone, gone.glass.clock, timeout_s=10, poll_s=5)
    assert isinstance(missed, Missed)
    assert "could not be seen (fake: busy)" in missed.refusal.sentence


@given(
    st.floats(0, 100), st.floats(0.5, 100), st.floats(0.5, 30), st.lists(st.just(BUSY), max_size=5)
)
def test_it_always_ends_in_time_and_never_says_on_too_early(
    boots_s: float, timeout_s: float, poll_s: float, silent: list[Refusal]
) -> None:
    off = Seen(by="fake", power=Power.OFF)
    machine = Machine(Hourglass(), boots_s=boots_s, seen=[off, *silent])
    start = machine.glass.now_s
    done = woken(machine, machine.glass.clock, timeout_s, poll_s)
    assert machine.glass.now_s - start <= timeout_s + 1e-6
    if isinstance(done, Reached):
        assert done.took_s >= boots_s - 1e-6
    else:
        assert boots_s > timeout_s - poll_s * (len(silent) + 1) - 1e-6


def test_the_next_way_is_tried_and_the_failure_told() -> None:
    glass = Hourglass()
    dead = Machine(glass, seen=[DENIED] * 9, refuses=DENIED)
    alive = Machine(glass)
    done = woken(InTurn([dead, alive]), glass.clock)
    assert done == Reached(power=Power.ON, by="fake", took_s=20.0, tried=(DENIED,))
    assert dead.calls == ["state"], "the way that answered is asked first from then on"


def test_all_ways_refusing_is_a_refusal_that_tells_of_each() -> None:
    glass = Hourglass()
    ways = InTurn([Machine(glass, refuses=DENIED), Machine(glass, refuses=BUSY)])
    answer = ways.sleep()
    assert isinstance(answer, Refusal)
    assert str(answer) == "redfish: the password is wrong; fake: busy"
