"""Consolidation by configured size, on request."""

from __future__ import annotations

import pytest

from builders import a_cluster, a_host, a_vm
from equipoise.api.advice import recommend
from equipoise.model.action import PowerOff
from equipoise.model.host import PowerProfile
from equipoise.model.policy.power import PowerMeasure, PowerPolicy
from equipoise.model.vm import CpuSettings, Demand


@pytest.mark.parametrize(
    ("measure", "vcpus", "limit_mhz", "sleeps"),
    [
        (PowerMeasure.DEMAND, 3, None, True),
        # Nine vCPUs of 1 GHz on three hosts of 4 GHz: two hosts would be used to 112 %.
        (PowerMeasure.CONFIGURATION, 3, None, False),
        (PowerMeasure.CONFIGURATION, 1, None, True),
        (PowerMeasure.CONFIGURATION, 3, 500, True),
    ],
)
def test_a_host_sleeps_only_if_what_is_configured_fits_on_the_others(
    measure: PowerMeasure, vcpus: int, limit_mhz: int | None, sleeps: bool
) -> None:
    watts = PowerProfile(idle_watts=100, peak_watts=200, standby_watts=5)
    hosts = [a_host(f"h{n}", power=watts) for n in range(3)]
    vms = [
        a_vm(
            f"v{n}",
            f"h{n}",
            vcpus=vcpus,
            demand=Demand(cpu_mhz=100, memory_mib=100),
            cpu=CpuSettings(limit_mhz=limit_mhz),
        )
        for n in range(3)
    ]
    policy = PowerPolicy(measure=measure, hosts_on_min=1)
    found = recommend(a_cluster(*hosts, vms=vms, power=policy), power=True)
    assert any(isinstance(step.action, PowerOff) for step in found.plan.steps) is sleeps
