"""Room: VMs that fit on no host, and guarantees that all hosts together cannot give.

Never judges who is where: that a host is too full is a state, which a story may well begin with.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from equipoise.model.event import HostJoined, VmArrived
from equipoise.model.files.check.roster import Elements, Roster
from equipoise.model.files.findings import Findings
from equipoise.model.files.tree import Gaps
from equipoise.model.files.words import Path
from equipoise.model.host import Host
from equipoise.model.story.scenario import Scenario
from equipoise.model.vm import Vm, VmState


class _Size(NamedTuple):
    """What a host has for VMs."""

    cpu_mhz: int
    memory_mib: int


def check_room(scenario: Scenario, roster: Roster, found: Findings, gaps: Gaps) -> None:
    """Find VMs for which there is no room anywhere, if all hosts are known."""
    happenings = Elements(scenario.happenings, gaps.get(("happenings",)))
    if not (roster.hosts.is_whole and roster.hosts.crowd.is_whole and happenings.is_whole):
        return
    sizes = list(dict.fromkeys(map(_size, _hosts(scenario, roster))))
    if not sizes:
        return
    for path, vm in _vms(scenario, roster):
        _check_vm(vm, sizes, scenario.physics.overhead_mib, path, found)
    _check_guarantees(scenario, roster, found, gaps)


def _size(host: Host) -> _Size:
    return _Size(host.usable_cpu_mhz, host.usable_memory_mib)


def _hosts(scenario: Scenario, roster: Roster) -> Iterator[Host]:
    """One of each kind of host that there is or may come."""
    yield from scenario.cluster.hosts
    coming = {churn.fleet for churn in scenario.unrest.hosts}
    for name, fellows in roster.hosts.crowd.fleets.items():
        if fellows.count or name in coming:
            yield fellows.like
    yield from (one.host for one in scenario.happenings if isinstance(one, HostJoined))


def _vms(scenario: Scenario, roster: Roster) -> Iterator[tuple[Path, Vm]]:
    for place, vm in roster.vms:
        if vm.state is not VmState.TERMINATED:
            yield ("cluster", "vms", place), vm
    for fellows in roster.vms.crowd.fleets.values():
        yield ("fleet", "vms", fellows.place, "like"), fellows.like
    for place, happening in enumerate(scenario.happenings):
        if isinstance(happening, VmArrived):
            yield ("happenings", place, "vm"), happening.vm


def _check_vm(vm: Vm, sizes: list[_Size], overhead: int, path: Path, found: Findings) -> None:
    cpu, memory = vm.cpu.reservation_mhz, vm.memory_mib + overhead
    if any(cpu <= size.cpu_mhz and memory <= size.memory_mib for size in sizes):
        return
    most_cpu = max(size.cpu_mhz for size in sizes)
    most_memory = max(size.memory_mib for size in sizes)
    if memory > most_memory:
        besides = f" with overhead_mib {overhead}" if overhead else ""
        what = f"{vm.memory_mib}{besides} is more than any host has for VMs"
        most = most_memory - overhead
        cure = f"at most {most}, or a larger host" if most > 0 else "a larger host"
        found.add((*path, "memory_mib"), what, cure)
    if cpu > most_cpu:
        what = f"{cpu} is more than any host has for VMs"
        found.add((*path, "cpu", "reservation_mhz"), what, f"at most {most_cpu}, or a larger host")
    if memory <= most_memory and cpu <= most_cpu:
        what = "the hosts that have its memory do not have its CPU reservation"
        found.add((*path, "cpu", "reservation_mhz"), what, "reserve less, or add a larger host")


def _check_guarantees(scenario: Scenario, roster: Roster, found: Findings, gaps: Gaps) -> None:
    """Find fleets that run from the start with more guaranteed than there is, fleet by fleet."""
    cpu_left = sum(host.usable_cpu_mhz for host in scenario.cluster.hosts)
    memory_left = sum(host.usable_memory_mib for host in scenario.cluster.hosts)
    for crowd in roster.hosts.crowd.fleets.values():
        cpu_left += crowd.count * crowd.like.usable_cpu_mhz
        memory_left += crowd.count * crowd.like.usable_memory_mib
    for place, fleet in Elements(scenario.fleet.vms, gaps.get(("fleet", "vms"))):
        if fleet.start is None or not fleet.count:
            continue
        count, path = fleet.count, ("fleet", "vms", place, "like")
        each_mhz, each_mib = fleet.like.cpu.reservation_mhz, fleet.like.memory.reservation_mib
        if count * each_mhz > cpu_left:
            what = f"{each_mhz} for each of {count} VMs is more than all hosts can guarantee"
            found.add((*path, "cpu", "reservation_mhz"), what, f"at most {cpu_left // count}")
        if count * each_mib > memory_left:
            what = f"{each_mib} for each of {count} VMs is more than all hosts can guarantee"
            found.add((*path, "memory", "reservation_mib"), what, f"at most {memory_left // count}")
        cpu_left = max(cpu_left - count * each_mhz, 0)
        memory_left = max(memory_left - count * each_mib, 0)
