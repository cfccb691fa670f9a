"""Fleets: names that nobody else has, VMs and hosts that make sense, and where the VMs start."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from equipoise.model.files.check.machines import check_host, check_offers, check_vm
from equipoise.model.files.check.roster import Elements, NamedElements, Roster
from equipoise.model.files.findings import Findings
from equipoise.model.files.tree import Gaps
from equipoise.model.files.words import Path, listed, quoted
from equipoise.model.host import Host, HostState
from equipoise.model.story.fleet import Fleet, HostFleet, Start, VmFleet, member_id
from equipoise.model.vm import Vm, VmState

_ID_LENGTH_MAX: Final = 128


def check_fleets(fleet: Fleet, roster: Roster, found: Findings, gaps: Gaps) -> None:
    """Find fleets that cannot be what they say."""
    hosts = Elements(fleet.hosts, gaps.get(("fleet", "hosts")))
    vms = Elements(fleet.vms, gaps.get(("fleet", "vms")))
    _check_names(hosts, roster.hosts, ("fleet", "hosts"), found)
    _check_names(vms, roster.vms, ("fleet", "vms"), found)
    for place, one in hosts:
        check_host(one.like, ("fleet", "hosts", place, "like"), found)
    for place, many in vms:
        path: Path = ("fleet", "vms", place)
        _check_like(many, (*path, "like"), found)
        check_vm(many.like, roster, (*path, "like"), found)
        if many.start is not None:
            _check_start(many.like, many.start, roster.hosts, path, found)


def _check_names(
    fleets: Elements[HostFleet] | Elements[VmFleet],
    listed_ones: NamedElements[Any],
    path: Path,
    found: Findings,
) -> None:
    """Find names that two have, or that nobody can have."""
    own: Path = ("cluster", *listed_ones.path)
    fellows = listed_ones.crowd.fleets
    for place, fleet in fleets:
        name = fleet.like.id
        where: Path = (*path, place, "like", "id")
        if fellows[name].place != place:
            first: Path = (*path, fellows[name].place, "like", "id")
            found.add(where, f"the id {quoted(name)} is taken by", "every id once", first=first)
        longest = member_id(name, fleet.count, fleet.count)
        if len(longest) > _ID_LENGTH_MAX:
            what = f"the ids of its members would have {len(longest)} letters"
            found.add(where, what, f"at most {_ID_LENGTH_MAX}, so a shorter id")
    if not fellows:
        return
    for place, item in listed_ones:
        taken = fellows.get(item.id) or listed_ones.crowd.claimant(item.id)
        if taken is not None:
            what = f"the id {quoted(item.id)} is taken by"
            first = (*path, taken.place, "like", "id")
            found.add((*own, place, "id"), what, "every id once", first=first)


def _check_like(fleet: VmFleet, path: Path, found: Findings) -> None:
    """Find what a VM can say of itself, but not of many."""
    vm, start = fleet.like, fleet.start
    if vm.host is not None:
        what = "where the VMs of a fleet are is said by its start"
        found.add((*path, "host"), what, f"leave it out, and write start: {{hosts: [{vm.host}]}}")
    if vm.ft_pair is not None:
        what = "the VMs of a fleet cannot all be the pair of one"
        found.add((*path, "ft_pair"), what, "list the two in the cluster")
    if vm.agent and start is None:
        what = "an agent belongs to a host, but the fleet has no start"
        found.add((*path, "agent"), what, "give the fleet a start, or leave agent out")
    allowed = (VmState.RUNNING,) if start else (VmState.RUNNING, VmState.READY)
    if vm.state not in allowed:
        what = f"{vm.state} is not what the VMs of a fleet are at the start"
        found.add((*path, "state"), what, "leave it out: with a start they run, else are ready")


def _check_start(
    vm: Vm, start: Start, hosts: NamedElements[Host], path: Path, found: Findings
) -> None:
    path = (*path, "start", "hosts")
    kinds = _kinds(start, hosts, path, found)
    if kinds is None:
        return
    there = sum(count for _, count, _ in kinds)
    if not there:
        found.add(path, "there is no host in it", "name a host, or a fleet of at least one")
    if start.first is not None and start.first > there > 0:
        what = f"{start.first} is more than the hosts there are"
        found.add((*path[:-1], "first"), what, f"at most {there}")
    left = there if start.first is None else start.first
    for place, count, host in kinds:
        if count and left > 0:
            _check_guests(vm, host, (*path, place), found)
        left -= count


def _check_guests(vm: Vm, host: Host, path: Path, found: Findings) -> None:
    if host.state is not HostState.ON:
        what = f"the VMs run from the start, but {quoted(host.id)} is {host.state}"
        found.add(path, what, "name hosts that are on, or leave start out")
    check_offers(vm, host, (*path[:-3], "like"), found)


def _kinds(
    start: Start, hosts: NamedElements[Host], path: Path, found: Findings
) -> list[tuple[int, int, Host]] | None:
    """What hosts there are to start on, with place and number; none if that cannot be told."""
    kinds: list[tuple[int, int, Host]] = []
    fleets, first = hosts.crowd.fleets, _First({}, {})
    for place, name in enumerate(start.hosts):
        fellows = hosts.crowd.fellows(name)
        twice = first.seen(name, fellows.like.id if fellows else None, place)
        host = fleets[name].like if name in fleets else hosts.get(name)
        if twice is not None:
            what = f"{quoted(name)} is named twice, first by"
            found.add((*path, place), what, "once is enough", first=(*path, twice))
        elif host is not None:
            kinds.append((place, fleets[name].count if name in fleets else 1, host))
        elif name not in hosts and name not in hosts.crowd.lost:
            guess = found.guess(name, [*fleets, *hosts.known])
            cure = f"{guess}there are: {listed([*hosts.by_id, *fleets])}"
            found.add((*path, place), f"there is no host or fleet {quoted(name)}", cure)
    return kinds if len(kinds) == len(start.hosts) else None


class _First(NamedTuple):
    """Where hosts and fleets were first named; a host is named by its fleet as well."""

    names: dict[str, int]
    fleets_of: dict[str, int]

    def seen(self, name: str, fleet: str | None, place: int) -> int | None:
        """Say where a host or fleet was named before, and remember it."""
        before = self.names.get(name, self.fleets_of.get(name))
        if fleet is not None:
            before = self.names.get(fleet) if before is None else before
            self.fleets_of.setdefault(fleet, place)
        self.names.setdefault(name, place)
        return before
