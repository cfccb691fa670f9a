"""The network of an instance: its switches and links."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from equipoise.model.files.btrplace import form
from equipoise.model.files.btrplace.names import host_name
from equipoise.model.files.check.network import check_network
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
    switches = (
        Switch(id=_switch_name(one.id), capacity_mbps=_bound(one.capacity)) for one in view.switches
    )
    links = (_link(one, ("links", place), found) for place, one in enumerate(view.links))
    network = Network(switches=tuple(switches), links=tuple(links))
    if all(one.end.kind in _ENDS for one in view.links):  # else nobody knows who has a link
        check_network(network, NamedElements("host", (), hosts, None), found, {})
    return network


def _check_routing(routing: form.Routing, found: Findings) -> None:
    if routing.kind == "default":
        return
    what = f"{quoted(routing.kind)} is not a way to find routes that is known here"
    if routing.kind == "static":
        what = "routes that are given one by one cannot be read: here they follow from the links"
    found.add(("routing", "type"), what, "default")


def _link(link: form.Link, path: Path, found: Findings) -> Link:
    end = link.end
    if end.kind not in _ENDS:
        what = f"a link does not lead to {quoted(end.kind)}"
        found.add((*path, "physicalElement", "type"), what, "node or switch")
    if link.capacity == 0:
        found.add((*path, "capacity"), "a link of 0 Mbit/s carries nothing", "1 or more")
    return Link(
        id=ResourceName(f"link{link.id}"),
        switch=_switch_name(link.switch),
        host=None if end.kind == "switch" else host_name(end.id),
        to=_switch_name(end.id) if end.kind == "switch" else None,
        capacity_mbps=_bound(link.capacity) or MBPS_MAX,
    )


def _switch_name(number: int) -> ResourceName:
    return ResourceName(f"switch{number}")


def _bound(capacity: int) -> int | None:
    return capacity if 0 < capacity < MBPS_MAX else None
