"""Laws of energy: used and saved energy add up to that of the same world without standby."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from builders import a_plan, a_step
from equipoise.model.action import PowerOff, PowerOn
from equipoise.model.host import Host, HostState, PowerProfile
from equipoise.model.plan import ConcurrencyLimits, Step
from equipoise.model.scenario.physics import PowerPhysics
from equipoise.model.scenario.scenario import Scenario
from equipoise.sim.measure.measures import Energy
from equipoise.sim.runner import ScenarioRunner, SimulationResult
from equipoise.store import MemoryJournal
from plain_scenarios import scenarios, some_hosts

CLOSE = 1e-9


def played(scenario: Scenario) -> SimulationResult:
    play = ScenarioRunner(scenario, MemoryJournal())
    play.run(1000 * scenario.duration_s)
    return play.result()


def known(host: Host) -> Host:
    """A host without figures for power on saves nothing, so it must not draw more in standby."""
    return host if host.power.known else host.but(power=PowerProfile())


def awake(scenario: Scenario) -> Scenario:
    """The same world without standby."""
    hosts = tuple(
        host.but(state=HostState.ON) if host.state is HostState.STANDBY else host
        for host in scenario.cluster.hosts
    )
    return scenario.but(cluster=scenario.cluster.but(hosts=hosts), plan=None)


@st.composite
def switches(draw: st.DrawFn, host: Host) -> list[Step]:
    """A sequence of power-ons and power-offs of an empty host."""
    sleeps, at_ms, steps = host.state is HostState.STANDBY, 0, []
    for number in range(draw(st.integers(0, 4))):
        start_ms = at_ms + draw(st.integers(0, 50_000))
        at_ms = start_ms + draw(st.integers(1, 90_000))
        action = PowerOn(host=host.id) if sleeps else PowerOff(host=host.id)
        after = [f"{host.id}-{number - 1}"] if number else []
        steps.append(a_step(f"{host.id}-{number}", action, start_ms, at_ms, *after))
        sleeps = not sleeps
    return steps


@st.composite
def sleepy(draw: st.DrawFn) -> Scenario:
    """A small cluster with some hosts more that have no VMs, and sleep and wake."""
    scenario = draw(scenarios())
    states = st.sampled_from([HostState.ON, HostState.STANDBY, HostState.STANDBY])
    extra = [
        draw(some_hosts(f"e{number}")).but(state=draw(states))
        for number in range(draw(st.integers(1, 3)))
    ]
    steps = [step for host in extra for step in draw(switches(host))]
    hosts = tuple(known(host) for host in (*scenario.cluster.hosts, *extra))
    # The hosts that VMs run on fail as they do; no decider boots the VMs elsewhere.
    limits = ConcurrencyLimits(actions_per_host=9, actions_total=99)
    switching = draw(st.none() | st.just(PowerPhysics(power_on_s=20, power_off_s=7)))
    return scenario.but(
        deciders=(),
        cluster=scenario.cluster.but(hosts=hosts, limits=limits),
        physics=scenario.physics.but(switching=switching),
        plan=a_plan(*steps) if steps else None,
    )


def agree(one: float, other: float) -> bool:
    return abs(one - other) <= CLOSE * max(1, abs(one), abs(other))


@given(sleepy())
def test_used_and_saved_energy_equal_a_run_without_standby(
    scenario: Scenario,
) -> None:
    slept, never = played(scenario), played(awake(scenario))
    assert slept.violations == ()
    assert never.measures.energy.saved_kwh == 0
    assert never.measures.energy.host_hours_asleep == 0
    found = slept.measures.energy
    assert agree(found.kwh + found.saved_kwh, never.measures.energy.kwh)
    missed, either_way = slept.measures.unsatisfied, never.measures.unsatisfied
    assert agree(missed.cpu_mhz_h, either_way.cpu_mhz_h), "hosts in standby had no VMs"
    assert agree(missed.memory_mib_h, either_way.memory_mib_h)


@given(sleepy())
def test_standby_time_and_savings_are_bounded(
    scenario: Scenario,
) -> None:
    found = played(scenario).measures.energy
    hours = scenario.duration_s / 3600
    hosts = scenario.cluster.hosts
    assert 0 <= found.host_hours_asleep <= len(hosts) * hours + CLOSE
    idle = sum(host.power.curve[0] for host in hosts) / 1000
    assert found.saved_kwh <= idle * hours + CLOSE
    check_prices(found)


def check_prices(found: Energy) -> None:
    tariff = found.tariff
    together = (found.kwh + found.saved_kwh) * tariff.price_per_kwh
    assert agree(found.price + found.saved_price, together)
    assert found.saved_pct <= 100 + CLOSE
