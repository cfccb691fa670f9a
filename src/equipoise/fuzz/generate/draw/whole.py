"""Whole trials: clusters with plans for them, and the arguments of a constraint."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from equipoise.fuzz.generate.draw.arguments import draw_arguments
from equipoise.fuzz.generate.draw.chance import Chance
from equipoise.fuzz.generate.draw.numbers import Trials
from equipoise.fuzz.generate.draw.stage import Stages
from equipoise.fuzz.generate.options import Options
from equipoise.fuzz.generate.parameters import Drawable

_ABOUT_ARGUMENTS = -1


def draw_trials(
    stages: Stages, options: Options, parameters: Sequence[Drawable], modes: Sequence[bool]
) -> Trials:
    """Make trials of clusters and plans, by arguments for a constraint."""
    hosts, vms = stages.hosts, stages.vms
    chance = Chance(stages.keys).about(_ABOUT_ARGUMENTS, np.arange(len(stages.keys)))
    return Trials(
        counts=np.stack([hosts.count, vms.count, stages.count], axis=1),
        continuous=np.array(modes)[chance.below(len(modes))],
        host_state=hosts.state,
        host_label=hosts.label,
        capacity=hosts.capacity,
        vm_state=vms.state,
        vm_host=vms.host,
        vm_label=vms.label,
        tenant=vms.tenant,
        consumption=vms.consumption,
        agent=vms.agent,
        replaceable=vms.replaceable,
        pair=vms.pair,
        steps=stages.steps,
        arguments=draw_arguments(chance, options, stages, parameters),
        switches=stages.networks.switches,
        links=stages.networks.links,
    )
