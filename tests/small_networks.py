"""Small networks for tests: stars, and any that chance can think of."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from equipoise.model.problem import Network
from equipoise.model.problem.network import Link, Switch
from equipoise.model.quantity import HostId, ResourceName

MBPS = (1000, 2000, 3000, 4000)


def a_switch(name: str, mbps: int | None = None) -> Switch:
    return Switch(id=ResourceName(name), capacity_mbps=mbps)


def a_link(name: str, switch: str, mbps: int = 1000, **end: Any) -> Link:
    """A link to a ``host``, or ``to`` another switch."""
    return Link(id=ResourceName(name), switch=ResourceName(switch), capacity_mbps=mbps, **end)


def star(*hosts: str, switch: Switch | None = None, **mbps: int) -> Network:
    """All hosts on one switch, with links of 1,000 Mbit/s or as said."""
    links = tuple(a_link(f"l-{one}", "sw", mbps.get(one, 1000), host=one) for one in hosts)
    return Network(switches=(switch or a_switch("sw"),), links=links)


def a_network(chance: Random, hosts: Sequence[str]) -> Network:
    """Any network, also one in pieces, with several ways to the same place, or with none."""
    names = [f"sw{number}" for number in range(1, chance.randint(1, 4) + 1)]
    switches = [a_switch(name, chance.choice([None, None, *MBPS])) for name in names]
    links = [
        a_link(f"to-{host}", chance.choice(names), chance.choice(MBPS), host=HostId(host))
        for host in hosts
    ]
    for number in range(chance.randrange(2 * len(names)) if len(names) > 1 else 0):
        one, other = chance.sample(names, 2)
        links.append(a_link(f"l{number}", one, chance.choice(MBPS), to=ResourceName(other)))
    chance.shuffle(links)
    return Network(switches=tuple(switches), links=tuple(links))
