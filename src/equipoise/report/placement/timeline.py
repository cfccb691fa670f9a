"""Placement over time: where every VM is while a plan runs, and the lines of text that show it.

The text has a row per host and a column per period. Links and switches that several migrations
share have a row each, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Final, NamedTuple

from equipoise.model.action import Kill, Migrate, Shutdown, describe, kind_of
from equipoise.model.host import HostState
from equipoise.model.plan import Step
from equipoise.model.problem.problem import ActionKind, Network
from equipoise.model.quantity import HostId, VmId
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.vm import Vm, VmState
from equipoise.plan.network import NetworkPaths
from equipoise.spec.moments import MomentPhase, moments

StepsInFlight = Mapping[tuple[VmId | None, HostId | None], Sequence[Step]]
"""The steps on each VM and on each switched host; a VM can have the name of a host."""


class VmPresence(NamedTuple):
    """The presence of a VM on a host, or on none."""

    vm: VmId
    host: HostId | None
    state: VmState
    step: Step | None = None
    """The step on the VM."""
    arriving: bool = False
    """Whether the VM has capacity on this host, but does not run here yet."""


class PresencePeriod(NamedTuple):
    """A constant presence, from a first to a last period."""

    presence: VmPresence
    first: int
    last: int


class HostStatePeriod(NamedTuple):
    """A constant host state, from a first to a last period."""

    state: HostState
    step: Step | None
    """The step on the host itself."""
    first: int
    last: int


@dataclass(frozen=True)
class PlacementTimeline:
    """The states of a cluster, and the instants between them."""

    instants_ms: tuple[int, ...]
    """Times at which a step starts or ends, in order."""
    states: tuple[Snapshot, ...]
    """The state of each period: before the first instant, between instants, after the last."""
    network: Network | None = None
    """The network of the migrations, if it is known."""

    def period_at(self, at_ms: int | None) -> int:
        """Return the index of the period that starts at an instant; 0 without an instant."""
        if at_ms is None:
            return 0
        return sum(instant <= at_ms for instant in self.instants_ms)

    @cached_property
    def stays(self) -> tuple[PresencePeriod, ...]:
        """All presences by VM and time; at one time, the current host comes before the target."""
        return tuple(stay for vm in self.states[0].vms for stay in self._stays(vm))

    def host_state_periods(self, host: HostId) -> Iterator[HostStatePeriod]:
        """Yield the states of a host in order."""
        seen = [
            (state.hosts[host].state, next(iter(underway.get((None, host), ())), None))
            for state, underway in zip(self.states, self._underway, strict=True)
        ]
        for (state, step), group in groupby(enumerate(seen), key=itemgetter(1)):
            places = [place for place, _ in group]
            yield HostStatePeriod(state, step, places[0], places[-1])

    def _stays(self, vm: VmId) -> list[PresencePeriod]:
        """Return the presences of a VM in the order of their starts."""
        found: dict[VmPresence, PresencePeriod] = {}
        ended: list[PresencePeriod] = []
        for place, state in enumerate(self.states):
            seen = list(_presences(state.vms[vm], self._underway[place].get((vm, None), ())))
            ended += [stay for presence, stay in found.items() if presence not in seen]
            begun = {
                presence: found.get(presence, PresencePeriod(presence, place, place))
                for presence in seen
            }
            found = {presence: stay._replace(last=place) for presence, stay in begun.items()}
        return sorted([*ended, *found.values()], key=_presence_order)

    @cached_property
    def _underway(self) -> tuple[StepsInFlight, ...]:
        """The steps of each period."""
        return tuple(_by_subject(state) for state in self.states)


def placement_timeline(
    initial: Snapshot, steps: Iterable[Step], network: Network | None = None
) -> PlacementTimeline:
    """Return the timeline of a plan."""
    instants: list[int] = []
    states = [initial]
    for moment in moments(initial, tuple(steps)):
        # Steps that end and start at one instant are one change of the picture, so only the state
        # after the starts counts.
        if moment.phase is MomentPhase.STARTS:
            instants.append(moment.at_ms)
            states.append(moment.state.freeze())
    return PlacementTimeline(tuple(instants), tuple(states), network)


def _presence_order(stay: PresencePeriod) -> tuple[int, bool]:
    return stay.first, stay.presence.arriving


def _by_subject(state: Snapshot) -> StepsInFlight:
    found: dict[tuple[VmId | None, HostId | None], list[Step]] = {}
    for running in state.in_flight.values():
        seen = running.step.footprint
        found.setdefault((seen.vm, seen.switched), []).append(running.step)
    return found


def _presences(vm: Vm, steps: Sequence[Step]) -> Iterator[VmPresence]:
    yield VmPresence(vm.id, vm.host, vm.state, steps[0] if steps else None)
    for step in steps:
        target = step.footprint.target
        if target is not None and target != vm.host:
            yield VmPresence(vm.id, target, vm.state, step, arriving=True)


class LinkUsePeriod(NamedTuple):
    """A constant use of a link, from a first to a last period."""

    mbps: int
    first: int
    last: int


class SharedLink(NamedTuple):
    """A link in one of its directions, or a switch."""

    lane: str
    capacity_mbps: int
    by_period: tuple[int, ...]

    @property
    def carried(self) -> Iterator[LinkUsePeriod]:
        """Yield the periods with traffic in order."""
        for mbps, group in groupby(enumerate(self.by_period), key=lambda item: item[1]):
            places = [place for place, _ in group]
            if mbps:
                yield LinkUsePeriod(mbps, places[0], places[-1])

    def usage_text(self, mbps: int) -> str:
        """Return the used and the available bandwidth."""
        return f"{mbps} of {self.capacity_mbps} Mbit/s"


def shared_links(timeline: PlacementTimeline) -> list[SharedLink]:
    """Return the links and switches that several migrations use at once."""
    if timeline.network is None:
        return []
    paths = NetworkPaths(timeline.network)
    usage = [_link_use(state, paths) for state in timeline.states]
    shared = dict.fromkeys(
        lane for period in usage for lane, speeds in period.items() if len(speeds) > 1
    )
    return [
        SharedLink(lane, paths.capacity[lane], tuple(sum(period.get(lane, ())) for period in usage))
        for lane in shared
    ]


def _link_use(state: Snapshot, paths: NetworkPaths) -> dict[str, list[int]]:
    """Return the bandwidth of each running migration, by link."""
    usage: dict[str, list[int]] = {}
    for running in state.in_flight.values():
        action = running.step.action
        if isinstance(action, Migrate):
            path = paths.between(action.source, action.target)
            if path is not None:
                for lane in path.lanes:
                    usage.setdefault(lane, []).append(path.mbps)
    return usage


NO_HOST: Final = "no host"
"""The lane of VMs without a host. No host has this name, because it has a space."""

_STEP_VERBS: Final = {
    ActionKind.MIGRATE: "leaves",
    ActionKind.REINSTANTIATE: "is replaced",
    ActionKind.BOOT: "boots",
    ActionKind.SHUTDOWN: "shuts down",
    ActionKind.SUSPEND: "is suspended",
    ActionKind.RESUME: "resumes",
    ActionKind.ALLOCATE: "is resized",
    ActionKind.FORGE: "is forged",
    ActionKind.KILL: "is killed",
    ActionKind.POWER_ON: "powers on",
    ActionKind.POWER_OFF: "powers off",
    ActionKind.ENTER_MAINTENANCE: "enters maintenance",
    ActionKind.LEAVE_MAINTENANCE: "leaves maintenance",
}
_ARRIVAL_VERBS: Final = {
    ActionKind.MIGRATE: "arrives",
    ActionKind.REINSTANTIATE: "is recreated",
    ActionKind.BOOT: "boots",
    ActionKind.RESUME: "resumes",
}
_STATE_TEXTS: Final = {
    VmState.INIT: "is not created",
    VmState.READY: "is ready",
    VmState.RUNNING: "runs",
    VmState.SLEEPING: "sleeps",
    VmState.TERMINATED: "has ended",
}


def step_verb(step: Step) -> str:
    """Return the verb of a step for a host or a VM at its current place."""
    used = step.footprint
    leaves = used.target not in (None, used.source) and used.source is not None
    kind = ActionKind(kind_of(step.action))
    return "leaves" if leaves and kind is ActionKind.RESUME else _STEP_VERBS[kind]


def presence_text(presence: VmPresence) -> str:
    """Return the state of a VM, or the verb of its step."""
    if presence.step is None:
        return _STATE_TEXTS[presence.state]
    if presence.arriving:
        return _ARRIVAL_VERBS[ActionKind(kind_of(presence.step.action))]
    return step_verb(presence.step)


def format_seconds(at_ms: int) -> str:
    """Return a time in seconds, to the millisecond."""
    return f"{at_ms / 1000:.3f}".rstrip("0").rstrip(".")


def period_text(timeline: PlacementTimeline, first: int, last: int) -> str:
    """Return the time range of some periods."""
    instants = timeline.instants_ms
    start = "" if first == 0 else f"from {format_seconds(instants[first - 1])} s"
    end = "" if last == len(instants) else f"until {format_seconds(instants[last])} s"
    return f"{start} {end}".strip() or "all the time"


def presence_period_text(timeline: PlacementTimeline, stay: PresencePeriod) -> str:
    """Return a presence in one line."""
    presence = stay.presence
    state = "has capacity" if presence.arriving else _STATE_TEXTS[presence.state]
    where = NO_HOST if presence.host is None else presence.host
    why = "" if presence.step is None else f": {describe(presence.step.action)}"
    times = period_text(timeline, stay.first, stay.last)
    return f"{presence.vm} {state} on {where}, {times}{why}"


_NONE: Final = "-"
_WRONG: Final = "!"
_SLEEPS, _ARRIVES, _LEAVES, _CHANGES = "(v)", ">v", "v>", "v~"
_MEANS: Final = {
    _SLEEPS: "sleeps",
    _ARRIVES: "arrives",
    _LEAVES: "leaves or ends",
    _CHANGES: "changes",
    _WRONG: "violation",
}


def placement_text(timeline: PlacementTimeline, wrong: int | None = None) -> list[str]:
    """Return the VMs of each host and period, and a line that explains the signs.

    The period ``wrong``, the first with a violation, is marked.
    """
    rows = [["", *_heads(timeline, wrong)]]
    rows += [[host, *_row(timeline, host)] for host in timeline.states[0].hosts]
    nowhere = [NO_HOST, *_row(timeline, None)]
    rows += [nowhere] if any(cell != _NONE for cell in nowhere[1:]) else []
    rows += [[part.lane, *_used(part)] for part in shared_links(timeline)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    drawn = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    return [*drawn, *_key_line(timeline, wrong)]


def _heads(timeline: PlacementTimeline, wrong: int | None) -> Iterator[str]:
    instants = [format_seconds(at_ms) for at_ms in timeline.instants_ms]
    between = [f"{start}-{end} s" for start, end in pairwise(instants)]
    for place, name in enumerate(["before", *between, "after"] if instants else ["always"]):
        yield f"{name} {_WRONG}" if place == wrong else name


def _row(timeline: PlacementTimeline, host: HostId | None) -> Iterator[str]:
    here = [stay for stay in timeline.stays if stay.presence.host == host]
    for place, state in enumerate(timeline.states):
        known = [] if host is None else [state.hosts[host].state]
        away = [f"[{state}]" for state in known if state is not HostState.ON]
        cells = [_cell(stay.presence) for stay in here if stay.first <= place <= stay.last]
        yield " ".join([*away, *cells]) or _NONE


def _used(part: SharedLink) -> Iterator[str]:
    for mbps in part.by_period:
        yield f"{mbps}/{part.capacity_mbps}" if mbps else _NONE


def _cell(presence: VmPresence) -> str:
    written = f"{presence.vm}:{presence.state}" if presence.host is None else presence.vm
    for sign in _signs(presence):
        before, after = sign.split("v")
        written = f"{before}{written}{after}"
    return written


def _signs(presence: VmPresence) -> Iterator[str]:
    """Yield the signs of a VM, each written around ``v``."""
    if presence.arriving:
        yield _ARRIVES
        return
    if presence.state is VmState.SLEEPING:
        yield _SLEEPS
    if presence.step is not None:
        ends = isinstance(presence.step.action, Kill | Shutdown)
        goes = presence.step.footprint.target not in {None, presence.host}
        yield _LEAVES if ends or goes else _CHANGES


def _key_line(timeline: PlacementTimeline, wrong: int | None) -> list[str]:
    used = {sign for stay in timeline.stays for sign in _signs(stay.presence)}
    used |= set() if wrong is None else {_WRONG}
    keys = [f"{sign} {meaning}" for sign, meaning in _MEANS.items() if sign in used]
    return [", ".join(keys)] if keys else []
