"""Small networks for tests: stars, and random ones."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from equipoise.model.problem import Network
from equipoise.model.problem.problem import NetworkLink, NetworkSwitch
from equipoise.model.quantity import HostId, ResourceName

MBPS = (1000, 2000, 3000, 4000)


def a_switch(name: str, mbps: int | None = None) -> NetworkSwitch:
    return NetworkSwitch(id=ResourceName(name), capacity_mbps=mbps)


def a_link(name: str, switch: str, mbps: int = 1000, **end: Any) -> NetworkLink:
    """Return a link to a ``host``, or ``to`` another switch."""
    return NetworkLink(
        id=ResourceName(name), switch=ResourceName(switch), capacity_mbps=mbps, **end
    )


def star(*hosts: str, switch: NetworkSwitch | None = None, **mbps: int) -> Network:
    """Return a network with all hosts at one switch; links have 1,000 Mbit/s by default."""
    links = tuple(a_link(f"l-{host}", "sw", mbps.get(host, 1000), host=host) for host in hosts)
    return Network(switches=(switch or a_switch("sw"),), links=links)


def a_network(chance: Random, hosts: Sequence[str]) -> Network:
    """Return any network: connected or not, with several paths between two nodes or with none."""
    names = [f"sw{number}" for number in range(1, chance.randint(1, 4) + 1)]
    switches = [a_switch(name, chance.choice([None, None, *MBPS])) for name in names]
    links = [
        a_link(f"to-{host}", chance.choice(names), chance.choice(MBPS), host=HostId(host))
        for host in hosts
    ]
    for number in range(chance.randrange(2 * len(names)) if len(names) > 1 else 0):
        near, far = chance.sample(names, 2)
        links.append(a_link(f"l{number}", near, chance.choice(MBPS), to=ResourceName(far)))
    chance.shuffle(links)
    return Network(switches=tuple(switches), links=tuple(links))
