"""Networks: links from switches to hosts and to other switches, each host on one of them."""

from __future__ import annotations

from equipoise.model.files.check.roster import NamedElements, Roster
from equipoise.model.files.findings import Findings
from equipoise.model.files.tree import Gaps
from equipoise.model.files.words import Path, listed, quoted
from equipoise.model.host import Host
from equipoise.model.problem.network import Link, Network, Switch
from equipoise.model.quantity import ResourceName


def check_network(network: Network | None, roster: Roster, found: Findings, gaps: Gaps) -> None:
    """Find what makes no sense in the network that a file may have."""
    if network is not None:
        inner = {path[1:]: gap for path, gap in gaps.items() if path[0] == "network"}
        check_wires(network, roster.hosts, found.below("network"), inner)


def check_wires(network: Network, hosts: NamedElements[Host], found: Findings, gaps: Gaps) -> None:
    """Find links that lead nowhere, hosts with more than one link or with none, and hosts with no
    way between them."""
    before = len(found)
    switches: NamedElements[Switch] = NamedElements(
        "switch", ("switches",), network.switches, gaps.get(("switches",))
    )
    links: NamedElements[Link] = NamedElements(
        "link", ("links",), network.links, gaps.get(("links",))
    )
    switches.check_ids(found)
    links.check_ids(found)
    linked: dict[str, int] = {}
    for place, link in links:
        path: Path = ("links", place)
        _check_switch(link.switch, switches, (*path, "switch"), found)
        _check_end(link, switches, path, found)
        if link.host is not None and hosts.check(link.host, (*path, "host"), found):
            if link.host in linked:
                what = f"the host {quoted(link.host)} already has the link"
                first: Path = ("links", linked[link.host])
                found.add((*path, "host"), what, "one link for each host", first=first)
            linked.setdefault(link.host, place)
    # Who misspells a host has not forgotten its link: one slip is one problem.
    named = {link.host for _, link in links if link.host is not None}
    lonely = [host.id for _, host in hosts if host.id not in linked]
    if links.is_whole and lonely and named <= linked.keys():
        what = f"no link leads to {listed(lonely)}"
        found.add(("links",), what, "every host needs one, or there is no network")
    if links.is_whole and switches.is_whole and len(found) == before:
        _check_is_one(network, found)


def _check_is_one(network: Network, found: Findings) -> None:
    beside: dict[ResourceName, list[ResourceName]] = {}
    for link in network.links:
        if link.to is not None:
            beside.setdefault(link.switch, []).append(link.to)
            beside.setdefault(link.to, []).append(link.switch)
    ends = [link for link in network.links if link.host is not None]
    to_visit = [link.switch for link in ends[:1]]
    reached = set(to_visit)
    while to_visit:
        fresh = set(beside.get(to_visit.pop(), ())) - reached
        reached |= fresh
        to_visit += fresh
    apart = next((link for link in ends if link.switch not in reached), None)
    if apart is not None:
        what = f"no way leads from {ends[0].host} to {apart.host}"
        found.add(("links",), what, "link their switches to each other")


def _check_end(link: Link, switches: NamedElements[Switch], path: Path, found: Findings) -> None:
    if link.host is None and link.to is None:
        cure = "name the host that it leads to, or in to the other switch"
        found.add((*path, "host"), "is missing, and so is to", cure)
    elif link.host is not None and link.to is not None:
        what = "a link leads to a host or to another switch, not to both"
        found.add((*path, "to"), what, "leave host or to out")
    elif link.to is not None and link.to == link.switch:
        found.add((*path, "to"), f"{quoted(link.to)} is linked to itself", "name another switch")
    elif link.to is not None:
        _check_switch(link.to, switches, (*path, "to"), found)


def _check_switch(name: str, switches: NamedElements[Switch], path: Path, found: Findings) -> None:
    if name not in switches:
        known = switches.known
        among = f"the switches are: {listed(known)}" if known else "no switch is listed"
        found.add(path, f"there is no switch {quoted(name)}", found.guess(name, known) + among)
