"""Clusters with plans for them: whatever a constraint may be about."""

from __future__ import annotations

from dataclasses import dataclass

from equipoise.fuzz.generate.draw.chance import Chance
from equipoise.fuzz.generate.draw.cluster import Hosts, Some, Vms, draw_hosts, draw_vms
from equipoise.fuzz.generate.draw.network import Networks, draw_networks, no_networks
from equipoise.fuzz.generate.draw.plan import draw_plans
from equipoise.fuzz.generate.options import Options
from equipoise.model.plan import Limits
from equipoise.spec.batch.cases import Array


@dataclass(slots=True)
class Stages(Some):
    """Clusters with plans."""

    keys: Array
    hosts: Hosts
    vms: Vms
    steps: Array
    count: Array
    networks: Networks

    def only(self, which: Array) -> Stages:
        """Some of them."""
        return Stages(
            keys=self.keys[which],
            hosts=self.hosts.only(which),
            vms=self.vms.only(which),
            steps=self.steps[which],
            count=self.count[which],
            networks=self.networks.only(which),
        )


def draw_stages(keys: Array, options: Options, least: Array, limits: Limits) -> Stages:
    """Draw a cluster and a plan for each key; ``least`` is how many hosts and VMs there must be."""
    chance = Chance(keys)
    hosts = draw_hosts(chance, options, least[:, 0])
    vms = draw_vms(chance, options, hosts, least[:, 1])
    wires = options.network
    networks = no_networks(len(keys)) if wires is None else draw_networks(chance, wires, hosts)
    steps, count = draw_plans(chance, options, hosts, vms, networks, limits)
    return Stages(keys, hosts, vms, steps, count, networks)
