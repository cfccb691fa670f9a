"""What is foretold: one thing after the other, each about those who are there at that moment."""

from __future__ import annotations

from functools import cached_property
from typing import Generic

from equipoise.model.event import (
    HostFailed,
    HostJoined,
    HostLeft,
    HostRecovered,
    ProcessorLocked,
    ProcessorSuspected,
    ProcessorTrusted,
    ProcessorUnlocked,
    VmArrived,
    VmCrashed,
    VmLeft,
)
from equipoise.model.files.check.crowd import N
from equipoise.model.files.check.machines import check_host, check_pair, check_place, check_vm
from equipoise.model.files.check.roster import Elements, NamedElements, Roster
from equipoise.model.files.findings import Findings
from equipoise.model.files.tree import Gap
from equipoise.model.files.words import Path, quoted
from equipoise.model.host import Host, HostState
from equipoise.model.story.scenario import Scenario
from equipoise.model.story.unrest import (
    ControllerLost,
    Happening,
    HostRequested,
    MigrationsSlowed,
    MonitoringLost,
    PowerOnStuck,
    RoleStartsFail,
)
from equipoise.model.vm import Vm


def check_happenings(scenario: Scenario, roster: Roster, found: Findings, gap: Gap | None) -> None:
    """Find things that happen to nobody, or after the end."""
    end_ms = scenario.duration_s * 1000
    # What is foretold for one moment happens in the order of the file.
    told = sorted(Elements(scenario.happenings, gap), key=lambda one: one[1].at_ms)
    hosts = _Presence(roster.hosts, gap)
    vms = _Presence(roster.vms, gap)
    for place, happening in told:
        if isinstance(happening, HostJoined):
            hosts.expect(happening.host, ("happenings", place, "host", "id"))
        elif isinstance(happening, VmArrived):
            vms.expect(happening.vm, ("happenings", place, "vm", "id"))
    for place, happening in told:
        path: Path = ("happenings", place)
        if happening.at_ms > end_ms:
            what = f"{happening.at_ms} is after the end of the scenario"
            found.add((*path, "at_ms"), what, f"at most {end_ms}, or raise duration_s")
        if isinstance(happening, VmArrived):
            _check_arrival(happening.vm, (hosts, vms), roster, (*path, "vm"), found)
        _check_subject(happening, (hosts, vms), path, found)


class _Presence(Generic[N]):
    """Who is there at a moment of the story, as far as it is foretold."""

    def __init__(self, known: NamedElements[N], gap: Gap | None) -> None:
        self.known = known
        self._coming: dict[str, tuple[Path, N]] = {}
        self._come: dict[str, tuple[Path, N]] = {}
        self._gone: dict[str, Path] = {}
        self._unsure = frozenset(gap.lost_ids if gap else ())
        """Something is foretold about these that could not be read."""

    def expect(self, one: N, path: Path) -> None:
        """Note that somebody will come, at some time."""
        self._coming.setdefault(one.id, (path, one))

    def come(self, one: N, path: Path, found: Findings) -> None:
        """Somebody comes, and must not be there."""
        name = one.id
        if name not in self._gone and name not in self._unsure:
            where = self._come[name][0] if name in self._come else self._listed(name)
            if where is not None:
                what = f"the id {quoted(name)} is taken by"
                found.add(path, what, "every id once", first=where)
        self._gone.pop(name, None)
        self._come[name] = path, one

    def leave(self, name: str, path: Path) -> None:
        """Somebody goes."""
        self._gone[name] = path
        self._come.pop(name, None)

    def check(self, name: str, path: Path, found: Findings) -> bool:
        """Say whether somebody is there now, and find it wrong if not."""
        if name in self._come or name in self._unsure:
            return True
        if name in self._gone:
            cure = "an earlier at_ms, or leave it out"
            found.add(path, f"{quoted(name)} has gone by", cure, first=self._gone[name])
            return False
        if name in self.known:
            return True
        if name in self._coming:
            cure = "a later at_ms"
            found.add(path, f"{quoted(name)} only comes by", cure, first=self._coming[name][0])
            return False
        return self.known.check(name, path, found)

    def get(self, name: str) -> N | None:
        """One who is there now."""
        return self._come[name][1] if name in self._come else self.known.get(name)

    @cached_property
    def everybody(self) -> NamedElements[N]:
        """All who are ever there, once everybody is expected who will come."""
        items = [*self.known.items, *(one for _, one in self._coming.values())]
        made = NamedElements(self.known.noun, (), items, None, self.known.crowd)
        for name in (*self.known.by_id, *self._unsure):
            made.by_id.setdefault(name, None)
        return made

    def _listed(self, name: str) -> Path | None:
        """Where somebody stands who is there from the start, or whose name a newcomer may get."""
        key = self.known.path
        claimant = self.known.crowd.claimant(name)
        if claimant is not None:
            return ("fleet", *key, claimant.place, "like", "id")
        if self.known.by_id.get(name) is None:
            return None
        return ("cluster", *key, next(at for at, one in self.known if one.id == name), "id")


class _Lit:
    """The hosts of a moment. Which of them are on then is decided by the run, not by the file."""

    def __init__(self, hosts: _Presence[Host]) -> None:
        self._hosts = hosts

    def check(self, name: str, path: Path, found: Findings) -> bool:
        return self._hosts.check(name, path, found)

    def get(self, name: str) -> Host | None:
        host = self._hosts.get(name)
        return None if host is None else host.but(state=HostState.ON)


_Present = tuple[_Presence[Host], _Presence[Vm]]


def _check_arrival(vm: Vm, present: _Present, roster: Roster, path: Path, found: Findings) -> None:
    hosts, vms = present
    check_place(vm, _Lit(hosts), path, found)
    check_vm(vm, roster, path, found)
    if vm.ft_pair is not None:
        check_pair(vm, vm.ft_pair, vms.everybody, (*path, "ft_pair"), found)


def _check_subject(happening: Happening, present: _Present, path: Path, found: Findings) -> None:
    hosts, vms = present
    match happening:
        case HostJoined(host=host):
            check_host(host, (*path, "host"), found)
            hosts.come(host, (*path, "host", "id"), found)
        case VmArrived(vm=vm):
            vms.come(vm, (*path, "vm", "id"), found)
        case HostLeft(host=name):
            if hosts.check(name, (*path, "host"), found):
                hosts.leave(name, path)
        case VmLeft(vm=name):
            if vms.check(name, (*path, "vm"), found):
                vms.leave(name, path)
        case (
            HostFailed(host=name)
            | HostRecovered(host=name)
            | PowerOnStuck(host=name)
            | HostRequested(host=name)
        ):
            hosts.check(name, (*path, "host"), found)
        case VmCrashed(vm=name):
            vms.check(name, (*path, "vm"), found)
        case ControllerLost() | MonitoringLost() | MigrationsSlowed():
            pass  # they are about nobody in particular
        case _:
            _check_processor(happening, present, path, found)


def _check_processor(happening: Happening, present: _Present, path: Path, found: Findings) -> None:
    hosts, vms = present
    match happening:
        case (
            ProcessorLocked(processor=name)
            | ProcessorUnlocked(processor=name)
            | ProcessorSuspected(processor=name)
            | ProcessorTrusted(processor=name)
            | RoleStartsFail(processor=name)
        ):
            if name not in vms.known:
                hosts.check(name, (*path, "processor"), found)
