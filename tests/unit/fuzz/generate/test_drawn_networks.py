"""Random networks: they meet the options, depend only on the seed and change nothing else."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest

from builders import coded
from equipoise.adapters.targets.trial import NetworkOptions, PlanSampling
from equipoise.errors import InvalidInput
from equipoise.files.check import find_problems
from equipoise.fuzz.generate import Generator, TrialOptions
from equipoise.fuzz.generate.draw.networks import DrawnNetworks, DrawnRoutes
from equipoise.fuzz.generate.parameters import override_options
from equipoise.fuzz.trial import Trial
from equipoise.fuzz.trial.stored import case_of
from equipoise.model.action import Migrate
from equipoise.model.problem import Network
from equipoise.plan.network import COPY_TOO_FAST, NETWORK_OVERLOADED
from equipoise.plan.network import NetworkPaths as JudgedWays
from equipoise.spec.library import library_constraints

SEVERAL = NetworkOptions(switches=(2, 5), detours=0.5, limited=0.5)


def some(count: int, options: TrialOptions, seed: int = 0) -> list[Trial]:
    maker = Generator(library_constraints()["Spread"], "Spread", options, seed)
    return list(maker.block(range(count)).trials)


def networks(count: int, wires: NetworkOptions, **fields: tuple[int, int]) -> list[Network]:
    found = [trial.network for trial in some(count, TrialOptions(network=wires, **fields))]  # type: ignore[arg-type]
    assert None not in found
    return [network for network in found if network is not None]


def test_trials_have_no_network_by_default() -> None:
    assert {trial.network for trial in some(50, TrialOptions())} == {None}


def test_a_network_changes_nothing_but_when_migrations_happen() -> None:
    plain, wired = some(200, TrialOptions()), some(200, TrialOptions(network=NetworkOptions()))
    assert [trial.initial for trial in plain] == [trial.initial for trial in wired]
    actions = [[[step.action for step in trial.steps] for trial in some] for some in (plain, wired)]
    assert actions[0] == actions[1]
    still = [not any(isinstance(step.action, Migrate) for step in trial.steps) for trial in plain]
    assert sum(still) > 50
    for trial, other, is_still in zip(plain, wired, still, strict=True):
        assert not is_still or trial.steps == other.steps


def test_a_network_is_the_same_whether_drawn_alone_or_with_others() -> None:
    options = TrialOptions(network=SEVERAL)
    maker = Generator(library_constraints()["Spread"], "Spread", options)
    for number, trial in enumerate(some(30, options)):
        alone = maker.trial(number)
        assert (alone.network, alone.steps) == (trial.network, trial.steps)


def test_networks_meet_their_options() -> None:
    wires = NetworkOptions(
        switches=(2, 4),
        hosts_mbps=(1000, 3999),
        trunks_mbps=(500, 500),
        limited=1.0,
        switches_mbps=(7000, 14_000),
    )
    found = networks(200, wires)
    assert {len(network.switches) for network in found} == {2, 3, 4}
    links = [link for network in found for link in network.links]
    assert {link.capacity_mbps for link in links if link.host} == {1000, 2000, 3000}
    assert {link.capacity_mbps for link in links if link.to} == {500}
    assert {switch.capacity_mbps for net in found for switch in net.switches} == {7000, 14_000}


def test_every_host_has_one_link_and_a_path_to_every_other_host() -> None:
    for trial in some(200, TrialOptions(network=SEVERAL, hosts=(1, 6), vms=(0, 2))):
        found = [problem.key for problem in find_problems(case_of(trial))]
        assert [key for key in found if key.startswith("network")] == []


def test_there_are_stars_chains_trees_circles_and_twins() -> None:
    shapes: Counter[str] = Counter()
    for network in networks(300, NetworkOptions(switches=(1, 4), detours=0.3)):
        pairs = [frozenset((link.switch, link.to)) for link in network.links if link.to]
        ends = Counter(end for pair in pairs for end in pair)
        shapes["star"] += not pairs
        shapes["chain"] += len(pairs) == 3 and sorted(ends.values()) == [1, 1, 2, 2]
        shapes["tree"] += len(pairs) == 3 and sorted(ends.values()) == [1, 1, 1, 3]
        shapes["twins"] += len(set(pairs)) < len(pairs)
        shapes["circle"] += len(set(pairs)) >= len(network.switches)
    assert min(shapes[name] for name in ("star", "chain", "tree", "twins", "circle")) > 5


def test_ways_are_drawn_as_they_are_judged() -> None:
    options = TrialOptions(
        hosts=(4, 4), network=NetworkOptions(switches=(1, 6), detours=0.7, limited=0.5)
    )
    block = Generator(library_constraints()["Spread"], "Spread", options).block(range(200))
    ways = DrawnRoutes(DrawnNetworks(block.out.switches, block.out.links), 4)
    for place, trial in enumerate(block.trials):
        assert trial.network is not None
        judged, names = JudgedWays(trial.network), list(trial.initial.hosts)
        for source, target in permutations(range(4), 2):
            lanes, mbps = ways.between(*(np.array([index]) for index in (place, source, target)))
            way = judged.between(names[source], names[target])
            assert way is not None
            assert way.mbps == mbps[0]
            links = sum(lane.startswith("link") for lane in way.lanes)
            assert lanes[0].sum() == links + (links - 1), "every link, and all switches between"


def test_careful_plans_wait_for_each_other_and_take_their_time() -> None:
    wires = NetworkOptions(switches=(1, 2), hosts_mbps=(1000, 3000), trunks_mbps=(1000, 2000))
    narrow = some(300, TrialOptions(network=wires))
    assert all(not trial.objections for trial in narrow)
    moves = [step for trial in narrow for step in trial.steps if isinstance(step.action, Migrate)]
    assert max(move.duration_ms for move in moves) == 9000
    together = [
        step
        for trial in narrow
        for step in trial.steps
        for other in trial.steps
        if isinstance(step.action, Migrate) and isinstance(other.action, Migrate)
        if step is not other and step.start_ms <= other.start_ms < step.end_ms
    ]
    assert len(together) > 20


@pytest.mark.parametrize("plans", [PlanSampling.REJECTED, PlanSampling.ANY])
def test_plans_are_drawn_anyhow_and_rejected_or_not(plans: PlanSampling) -> None:
    said = Counter(
        objection.constraint
        for trial in some(300, TrialOptions(network=NetworkOptions(), plans=plans))
        for objection in trial.objections[:1]
    )
    if plans is PlanSampling.REJECTED:
        assert not said
    else:
        assert min(said[NETWORK_OVERLOADED], said[COPY_TOO_FAST]) > 10


def test_no_migration_is_hurried_with_hurried_0() -> None:
    options = TrialOptions(network=NetworkOptions(hurried=0.0), plans=PlanSampling.ANY)
    seen = {objection.constraint for trial in some(300, options) for objection in trial.objections}
    assert NETWORK_OVERLOADED in seen
    assert COPY_TOO_FAST not in seen


def test_a_file_without_a_network_is_a_trial_without_one() -> None:
    (trial,) = some(1, TrialOptions(network=NetworkOptions()))
    assert case_of(trial).network == trial.network
    assert case_of(replace(trial, network=None)).network is None


@pytest.mark.parametrize(
    ("change", "key", "code"),
    [
        ('network={"switches": [3, 1]}', "network.switches", "empty-range"),
        ('network={"hosts_mbps": [2000, 1000]}', "network.hosts_mbps", "empty-range"),
        ('network={"trunks_mbps": [0, 1000]}', "network.trunks_mbps[0]", "out-of-range"),
        ('network={"switches": [0, 1]}', "network.switches[0]", "out-of-range"),
        ('network={"cables": 1}', "network", "unknown-key"),
    ],
)
def test_options_without_any_value_are_rejected(change: str, key: str, code: str) -> None:
    with pytest.raises(InvalidInput, check=coded(code, key)):
        override_options(TrialOptions(), [change])


def test_an_empty_object_requests_a_default_network() -> None:
    assert override_options(TrialOptions(), ["network={}"]).network == NetworkOptions()
    assert (
        override_options(TrialOptions(network=NetworkOptions()), ["network=null"]).network is None
    )
    changed = override_options(TrialOptions(network=NetworkOptions()), ["network.limited=1"])
    assert changed.network == NetworkOptions(limited=1.0)
