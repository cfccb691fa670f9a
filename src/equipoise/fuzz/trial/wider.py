"""Trials with a plainer network: none, fewer switches and links, or parts that are less narrow."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from equipoise.fuzz.trial.size import widest_mbps
from equipoise.fuzz.trial.trial import Trial
from equipoise.model.problem.network import Link, Network
from equipoise.model.quantity import ResourceName


def plainer_network(trial: Trial) -> Iterator[Trial]:
    """Without a network, or with one that is plainer in one respect, or in all."""
    if trial.network is None:
        return
    yield replace(trial, network=None)
    for kind in (_fewer_switches, _fewer_links, _wider):
        yield from (replace(trial, network=one) for one in kind(trial.network))


def _fewer_switches(network: Network) -> Iterator[Network]:
    """Without one of the switches: what is linked to it is linked to another one."""
    for switch in reversed(network.switches):
        for other in network.switches:
            if switch != other:
                yield _fused(network, switch.id, other.id)


def _fused(network: Network, gone: ResourceName, other: ResourceName) -> Network:
    def moved(name: ResourceName) -> ResourceName:
        return other if name == gone else name

    links = [
        one.but(switch=moved(one.switch), to=None if one.to is None else moved(one.to))
        for one in network.links
    ]
    return Network(
        switches=tuple(one for one in network.switches if one.id != gone),
        links=tuple(one for one in links if one.switch != one.to),
    )


def _fewer_links(network: Network) -> Iterator[Network]:
    """Without one of the links between switches; hosts need theirs."""
    for link in reversed(network.links):
        if link.to is not None:
            yield network.but(links=tuple(one for one in network.links if one != link))


def _wider(network: Network) -> Iterator[Network]:
    """All links as wide as the widest and no limits, or one of them."""
    most = widest_mbps(network)
    free = tuple(one.but(capacity_mbps=None) for one in network.switches)
    wide = tuple(one.but(capacity_mbps=most) for one in network.links)
    yield Network(switches=free, links=wide)
    for place, switch in enumerate(free):
        changed = (*network.switches[:place], switch, *network.switches[place + 1 :])
        yield network.but(switches=changed)
    for place, link in enumerate(wide):
        links: tuple[Link, ...] = (*network.links[:place], link, *network.links[place + 1 :])
        yield network.but(links=links)
