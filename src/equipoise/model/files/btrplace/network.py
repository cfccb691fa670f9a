"""The network of an instance: its switches and links."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from equipoise.model.files.btrplace import form
from equipoise.model.files.btrplace.names import host_name
from equipoise.model.files.check.network import check_wires
from equipoise.model.files.check.roster import NamedElements
from equipoise.model.files.findings import Findings
from equipoise.model.files.words import Path, quoted
from equipoise.model.host import Host
from equipoise.model.problem.network import Link, Network, Switch
from equipoise.model.quantity import ResourceName

MBPS_MAX: Final = 10**9
"""More than any cable carries: what has no bound is written as a larger number, or below nought."""

_ENDS: Final = ("node", "switch")


def network_of(view: form.NetworkView, hosts: Sequence[Host], found: Findings) -> Network:
    """Read a network, and find what is wrong with it."""
    _check_routing(view.routing, found)
    switches = (_switch(one, ("switches", place), found) for place, one in enumerate(view.switches))
    links = (_link(one, ("links", place), found) for place, one in enumerate(view.links))
    network = Network(switches=tuple(switches), links=tuple(links))
    if all(one.end.kind in _ENDS for one in view.links):  # else nobody knows who has a link
        _check(network, hosts, found)
    return network


def _check(network: Network, hosts: Sequence[Host], found: Findings) -> None:
    """Find what is wrong with a network of ours, and say it by the keys of theirs."""
    ours = Findings()
    check_wires(network, NamedElements("host", (), hosts, None), ours, {})
    for one in ours.all():
        *above, key = one.path
        path = (*above, "physicalElement", "id") if key in ("host", "to") else one.path
        found.add(path, one.what, one.cure, one.first)


def check_copying(
    known: Mapping[int, form.VmAttributes], running: Iterable[int], found: Findings
) -> None:
    """Find VMs whose way over a network would take another time than BtrPlace knows."""
    for vm, one in known.items():
        for key, said in (
            ("hotDirtySize", one.hot_dirty_size is not None),
            ("hotDirtyDuration", one.hot_dirty_duration is not None),
            ("coldDirtyRate", one.cold_dirty_rate is not None),
            ("postCopy", one.post_copy),
        ):
            if said:
                what = "how the memory of a VM is copied cannot be said here"
                found.add(("vms", str(vm), key), what, "leave it out: it is copied once")
    for vm in running:
        if vm not in known or known[vm].mem_used is None:
            what = "is missing, and nobody knows how long it takes to move the VM over the network"
            found.add(("vms", str(vm), "memUsed"), what, "the MiB that the VM uses")


def _check_routing(routing: form.Routing, found: Findings) -> None:
    if routing.kind == "default":
        return
    what = f"{quoted(routing.kind)} is not a way to find routes that is known here"
    if routing.kind == "static":
        what = "routes that are given one by one cannot be read: here they follow from the links"
    found.add(("routing", "type"), what, "default")


def _switch(switch: form.Switch, path: Path, found: Findings) -> Switch:
    bound = _bound(switch.capacity, "switch", path, found)
    return Switch(id=_switch_name(switch.id), capacity_mbps=bound)


def _link(link: form.Link, path: Path, found: Findings) -> Link:
    end = link.end
    if end.kind not in _ENDS:
        what = f"a link does not lead to {quoted(end.kind)}"
        found.add((*path, "physicalElement", "type"), what, "node or switch")
    return Link(
        id=ResourceName(f"link{link.id}"),
        switch=_switch_name(link.switch),
        host=None if end.kind == "switch" else host_name(end.id),
        to=_switch_name(end.id) if end.kind == "switch" else None,
        capacity_mbps=_bound(link.capacity, "link", path, found) or MBPS_MAX,
    )


def _switch_name(number: int) -> ResourceName:
    return ResourceName(f"switch{number}")


def _bound(capacity: int, noun: str, path: Path, found: Findings) -> int | None:
    if capacity == 0:
        what = f"a {noun} of 0 Mbit/s carries nothing"
        found.add((*path, "capacity"), what, "1 or more, or -1 for no bound")
    return capacity if 0 < capacity < MBPS_MAX else None
