"""How much hosts may commit: by their own factor, or by that of the cluster."""

from __future__ import annotations

import pytest

from builders import a_cluster, a_host, an_inventory
from equipoise.model.event import HostJoined, SettingsChanged
from equipoise.model.host import HostReserve
from equipoise.model.quantity import HostId
from equipoise.model.state import transition
from equipoise.model.state.snapshot import Snapshot


@pytest.mark.parametrize(
    ("amount", "factor", "expected"),
    [(100, 2.3, 230), (10, 1.1, 11), (3, 1.5, 4), (7, 0.01, 0), (10**12, 1000, 10**15)],
)
def test_factors_are_exact_and_the_limit_is_rounded_down(
    amount: int, factor: float, expected: int
) -> None:
    host = a_host(memory_mib=amount, memory_overcommit=factor)
    assert host.configured_memory_max_mib == expected
    assert a_host(cores=min(amount, 10**5), cpu_overcommit=factor).vcpus_max == (
        expected if amount <= 10**5 else 10**8
    )


def test_without_a_factor_memory_is_committed_once_and_vcpus_have_no_limit() -> None:
    host = a_host(memory_mib=16_384, reserve=HostReserve(memory_mib=384))
    assert host.configured_memory_max_mib == 16_000
    assert host.vcpus_max is None


def limits(snapshot: Snapshot) -> list[tuple[int, int | None]]:
    return [(host.configured_memory_max_mib, host.vcpus_max) for host in snapshot.hosts.values()]


def test_a_host_has_the_factors_of_the_cluster_unless_it_states_its_own() -> None:
    hosts = [
        a_host("h1", memory_mib=1000),
        a_host("h2", memory_mib=1000, memory_overcommit=1, cpu_overcommit=3),
    ]
    state = a_cluster(*hosts, memory_overcommit=1.5, cpu_overcommit=2)
    assert limits(state) == [(1500, 8), (1000, 12)]
    assert Snapshot.of(state.inventory()) == state


def test_hosts_that_join_and_settings_that_change_count() -> None:
    state = a_cluster(
        a_host("h1", memory_mib=1000),
        a_host("h2", memory_mib=1000, memory_overcommit=3),
        memory_overcommit=1.5,
    )
    state = transition.apply(state, HostJoined(at_ms=1, host=a_host("h3", memory_mib=100)))
    assert limits(state) == [(1500, None), (3000, None), (150, None)]
    settings = state.settings.but(memory_overcommit=2, cpu_overcommit=1)
    state = transition.apply(state, SettingsChanged(at_ms=2, settings=settings))
    assert limits(state) == [(2000, 4), (3000, 4), (200, 4)]
    plain = an_inventory().overcommitted(a_host("h4"))
    assert (plain.id, plain.memory_overcommit) == (HostId("h4"), None)
