"""Laws of trials: machines can carry them out, files keep them, and our planner agrees."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.adapters.targets.trial import NetworkOptions, PlanSampling
from equipoise.fuzz.generate import Generator, TrialOptions
from equipoise.fuzz.schedulers.planner import Planner
from equipoise.fuzz.trial import Trial, TrialOutcome, judge
from equipoise.fuzz.trial.stored import StoredTrial, case_of, read_lines, trial_of, write_line
from equipoise.model.action import Migrate
from equipoise.model.problem import Network
from equipoise.spec.library import library_constraints
from plain_network import network_violations

NAMES = list(library_constraints())
SPANS = st.tuples(st.integers(0, 4), st.integers(0, 4)).map(lambda some: (min(some), max(some)))

WIRES = st.builds(
    NetworkOptions,
    switches=st.sampled_from([(1, 1), (1, 3), (4, 6)]),
    hosts_mbps=st.sampled_from([(1000, 1000), (2000, 10_000), (100, 9_999)]),
    trunks_mbps=st.sampled_from([(500, 2000), (2000, 10_000)]),
    switches_mbps=st.sampled_from([(500, 4000), (7000, 20_000)]),
    limited=st.sampled_from([0.0, 0.5, 1.0]),
    detours=st.sampled_from([0.0, 0.5, 1.0]),
)


@st.composite
def trials(draw: st.DrawFn) -> Trial:
    """Any trial that the generator may draw."""
    name = draw(st.sampled_from(NAMES))
    options = TrialOptions(
        hosts=draw(SPANS.filter(lambda span: span[0] > 0)),
        vms=draw(SPANS.filter(lambda span: span[1] > 0)),
        actions=draw(SPANS),
        seconds=draw(SPANS.filter(lambda span: span[0] > 0)),
        waits=draw(SPANS),
        switched=draw(st.sampled_from([0.0, 0.3, 1.0])),
        network=draw(st.none() | WIRES),
    )
    maker = Generator(library_constraints()[name], name, options, draw(st.integers(0, 10**6)))
    return maker.trial(draw(st.integers(0, 10**6)))


@given(trial=trials())
def test_machines_can_carry_it_out(trial: Trial) -> None:
    assert trial.objections == ()


@given(trial=trials())
def test_links_carry_what_is_on_its_way_by_listing_all_ways(trial: Trial) -> None:
    network = trial.network or Network()
    moves = [step for step in trial.steps if isinstance(step.action, Migrate)]
    assert trial.network is None or not network_violations(network, trial.initial, moves)


@given(trial=trials())
def test_a_file_keeps_it(trial: Trial) -> None:
    stored = StoredTrial(
        target="t", constraint=trial.demand.name, outcome=TrialOutcome.OVER, case=case_of(trial)
    )
    (read,) = read_lines(write_line(stored), "f")
    again = trial_of(read)
    assert read == stored
    assert (again.initial, again.steps) == (trial.initial, trial.steps)
    assert again.network == trial.network
    assert dict(again.demand.arguments) == dict(trial.demand.arguments)
    assert (again.violation is None) == (trial.violation is None)


@pytest.mark.parametrize("name", NAMES)
def test_our_planner_agrees(name: str) -> None:
    maker, planner = Generator(library_constraints()[name], name, seed=7), Planner()
    # A block is drawn at once, which costs a tenth of as many single trials.
    for number, trial in enumerate(maker.block(range(40)).trials):
        verdict = judge(planner, trial)
        assert verdict.outcome is TrialOutcome.AGREE, (number, verdict)


@pytest.mark.parametrize("plans", PlanSampling)
def test_our_planner_agrees_about_networks(plans: PlanSampling) -> None:
    options = TrialOptions(network=NetworkOptions(), plans=plans)
    maker = Generator(library_constraints()["Fence"], "Fence", options, seed=7)
    said = [(trial, judge(Planner(), trial)) for trial in maker.block(range(150)).trials]
    assert {verdict.outcome for _, verdict in said} <= {
        TrialOutcome.AGREE,
        TrialOutcome.UNSUPPORTED,
    }
    agreed = sum(verdict.outcome is TrialOutcome.AGREE for _, verdict in said)
    assert agreed > 140
