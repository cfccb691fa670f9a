"""What becomes of a trial when it is shrunk: each kind of reduction, and all of them together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from builders import a_cluster, a_host, a_step, a_vm
from equipoise.fuzz.campaign.findings import signature_of
from equipoise.fuzz.trial import Trial, TrialOutcome, judge, shrink
from equipoise.fuzz.trial.shrink import TrialSize, reductions
from equipoise.model.action import Allocate, Boot, Migrate, PowerOn, Resume, Suspend, describe
from equipoise.model.host import HostReserve, HostState
from equipoise.model.plan import Step
from equipoise.model.problem import Network
from equipoise.model.quantity import HostId, ResourceName, RuleId, VmId
from equipoise.model.rule import KeepApart
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.vm import CpuSettings, VmState
from equipoise.plan.network import NETWORK_OVERLOADED
from equipoise.spec.library import library_constraints
from equipoise.spec.requirement import Requirement
from small_networks import a_link, a_switch, star


def a_trial(name: str, initial: Snapshot, *steps: Step, **arguments: Any) -> Trial:
    """A trial of a constraint of the library."""
    given = {key: _value(value) for key, value in arguments.items()}
    return Trial(
        Requirement(library_constraints()[name], name, given, continuous=True), initial, steps
    )


def _value(value: Any) -> Any:
    return frozenset(map(_value, value)) if isinstance(value, set | list) else value


def moving(vm: str, source: str, target: str) -> Migrate:
    return Migrate(vm=VmId(vm), source=HostId(source), target=HostId(target))


def suspending(vm: str, host: str) -> Suspend:
    return Suspend(vm=VmId(vm), source=HostId(host))


def resuming(vm: str, host: str) -> Resume:
    return Resume(vm=VmId(vm), source=HostId(host), target=HostId(host))


def names(trial: Trial) -> tuple[list[str], list[str]]:
    """Who is left: hosts and VMs."""
    return list(trial.initial.hosts), list(trial.initial.vms)


def done(trial: Trial) -> list[str]:
    return [describe(step.action) for step in trial.steps]


def times(trial: Trial) -> list[tuple[int, int]]:
    return [(step.start_ms, step.end_ms) for step in trial.steps]


def everything(_: Trial) -> bool:
    return True


PAIR = a_cluster(a_host("h1"), a_host("h2"), vms=[a_vm("v1", "h1"), a_vm("v2", "h2")])


class TestFewerSteps:
    def test_half_of_them_goes_at_once(self) -> None:
        steps = [a_step(f"s{n}", PowerOn(host=HostId("h1"))) for n in range(4)]
        asked: list[Trial] = []

        def notes(trial: Trial) -> bool:
            asked.append(trial)
            return False

        shrink(a_trial("MaxPods", PAIR, *steps), notes)
        assert [[step.id for step in request.steps] for request in asked[:2]] == [
            ["s0", "s1"],
            ["s2", "s3"],
        ]

    def test_references_to_removed_steps_are_dropped(self) -> None:
        first = a_step("s1", suspending("v2", "h2"))
        second = a_step("s2", moving("v1", "h1", "h2"), 1000, 2000, "s1")
        smaller = list(reductions(a_trial("Root", PAIR, first, second, v="v1")))
        without = [trial for trial in smaller if done(trial) == ["migrate v1 from h1 to h2"]]
        assert without
        assert all(step.after == () for trial in without for step in trial.steps)

    def test_steps_away_and_back_are_removed_together(self) -> None:
        steps = [
            a_step("s2", resuming("v1", "h1"), 1000, 2000),
            a_step("s3", moving("v1", "h1", "h2"), 2000, 3000),
            a_step("s1", suspending("v1", "h1"), 0, 1000),
            a_step("s4", suspending("v1", "h2"), 3000, 4000),
        ]
        needed = {"migrate v1 from h1 to h2", "suspend v1 on h2"}
        found = shrink(
            a_trial("Root", PAIR, *steps, v="v1"),
            lambda one: not one.objections and needed <= set(done(one)),
        )
        assert done(found) == sorted(needed)


class TestFewerMachines:
    def test_a_vm_goes_with_its_steps_and_out_of_all_arguments(self) -> None:
        steps = [a_step("s1", suspending("v1", "h1")), a_step("s2", suspending("v2", "h2"))]
        trial = a_trial("Split", PAIR, *steps, parts=[{"v1"}, {"v2"}])
        found = shrink(trial, lambda one: "suspend v2 on h2" in done(one))
        assert names(found) == (["h2"], ["v2"])
        assert done(found) == ["suspend v2 on h2"]
        assert found.demand.arguments == {"parts": frozenset()}

    def test_a_group_that_loses_its_last_member_goes(self) -> None:
        trial = a_trial("Split", PAIR, parts=[{"v1"}, {"v2"}])
        without = next(
            reduction
            for reduction in reductions(trial)
            if names(reduction) == (["h1", "h2"], ["v2"])
        )
        assert without.demand.arguments == {"parts": frozenset({frozenset({"v2"})})}

    def test_a_vm_that_the_demand_is_about_stays(self) -> None:
        found = shrink(a_trial("Fence", PAIR, v="v2", ns={"h1", "h2"}), everything)
        assert names(found) == (["h2"], ["v2"])
        assert found.demand.arguments == {"v": "v2", "ns": frozenset()}

    def test_a_host_that_the_demand_is_about_stays(self) -> None:
        found = shrink(a_trial("Quarantine", PAIR, n="h2"), everything)
        assert names(found)[0] == [found.demand.arguments["n"]]

    def test_one_host_stays_for_a_file_has_one(self) -> None:
        assert names(shrink(a_trial("MaxPods", PAIR), everything)) == (["h1"], [])

    def test_a_list_keeps_its_order(self) -> None:
        vms = [a_vm(f"v{n}", "h1") for n in (1, 2, 3)]
        trial = a_trial("Seq", a_cluster(vms=vms), vs=("v2", "v3", "v1"))
        found = shrink(trial, lambda one: len(one.demand.arguments["vs"]) == 2)
        assert found.demand.arguments == {"vs": ("v2", "v1")}

    def test_a_host_goes_with_all_that_is_there_and_all_that_touches_it(self) -> None:
        steps = [
            a_step("s1", suspending("v2", "h2")),
            a_step("s2", suspending("v1", "h1")),
            a_step("s3", moving("v1", "h1", "h2")),
        ]
        trial = a_trial("Among", PAIR, *steps, vs={"v1", "v2"}, parts=[{"h1"}, {"h2"}])
        found = next(
            reduction for reduction in reductions(trial) if names(reduction) == (["h1"], ["v1"])
        )
        assert done(found) == ["suspend v1 on h1"]
        assert found.demand.arguments == {
            "vs": frozenset({"v1"}), "parts": frozenset({frozenset({"h1"})}),
        }  # fmt: skip

    def test_two_hosts_become_one_if_their_vms_are_needed(self) -> None:
        steps = [a_step("s1", moving("v1", "h1", "h2")), a_step("s2", suspending("v2", "h2"))]
        found = shrink(
            a_trial("Spread", PAIR, *steps, vs={"v1", "v2"}), lambda one: len(one.initial.vms) == 2
        )
        assert set(found.initial.placement.values()) == set(found.initial.hosts)
        assert len(found.initial.hosts) == 1

    def test_a_move_within_one_host_is_none(self) -> None:
        steps = [a_step("s1", moving("v1", "h1", "h2")), a_step("s2", suspending("v2", "h2"))]
        trial = a_trial("Root", PAIR, *steps, v="v1")
        (fused,) = (
            reduction
            for reduction in reductions(trial)
            if names(reduction) == (["h2"], ["v1", "v2"])
        )
        assert done(fused) == ["suspend v2 on h2"]
        assert fused.initial.vms[VmId("v1")].host == "h2"

    def test_a_pair_is_not_put_on_one_host(self) -> None:
        cluster = a_cluster(
            a_host("h1"), a_host("h2"),
            vms=[a_vm("v1", "h1", ft_pair="v2"), a_vm("v2", "h2", ft_pair="v1")],
        )  # fmt: skip
        trial = a_trial("FtApart", cluster)
        assert all(
            len(reduction.initial.vms) < 2 or len(reduction.initial.hosts) == 2
            for reduction in reductions(trial)
        )
        alone = [reduction for reduction in reductions(trial) if len(reduction.initial.vms) == 1]
        assert {vm.ft_pair for trial in alone for vm in trial.initial.vms.values()} == {None}

    def test_the_time_and_the_version_stay(self) -> None:
        later = Snapshot.of(PAIR.inventory(), at_ms=70, version=8)
        found = shrink(a_trial("MaxPods", later), everything)
        assert (found.initial.at_ms, found.initial.version) == (70, 8)

    def test_a_host_named_in_settings_stays(self) -> None:
        rule = KeepApart(id=RuleId("r"), vms=(VmId("v1"), VmId("v2")))
        cluster = a_cluster(vms=[a_vm(f"v{n}", "h1") for n in (1, 2, 3)], rules=[rule])
        found = shrink(a_trial("MaxPods", cluster), everything)
        assert names(found) == (["h1"], ["v1", "v2"])
        assert found.initial.settings == cluster.settings


class TestSmallerArguments:
    @pytest.mark.parametrize(
        ("number", "keeps", "left"),
        [
            (900, lambda number: number >= 0, 0),
            (900, lambda number: number > 0, 1),
            (900, lambda number: number >= 611, 611),
            (-900, lambda number: number <= -7, -7),
        ],
    )
    def test_a_number_comes_as_near_to_0_as_it_can(
        self, number: int, keeps: Callable[[int], bool], left: int
    ) -> None:
        trial = a_trial("NumInstances", PAIR, nb=number)
        found = shrink(trial, lambda one: keeps(one.demand.arguments["nb"]), asks_max=100)
        assert found.demand.arguments == {"nb": left}

    def test_what_is_counted_and_its_number_become_fewer_together(self) -> None:
        cluster = a_cluster(vms=[a_vm(f"v{n}", "h1") for n in range(6)])
        trial = a_trial("RunningCapacity", cluster, ns={"h1"}, nb=5)
        found = shrink(
            trial, lambda one: len(one.initial.vms) - 1 == one.demand.arguments["nb"] > 0
        )
        assert names(found) == (["h1"], ["v0", "v1"])
        assert found.demand.arguments == {"ns": frozenset(), "nb": 1}

    def test_a_set_loses_unneeded_members(self) -> None:
        trial = a_trial("Spread", PAIR, vs={"v1", "v2"})
        found = shrink(trial, lambda one: len(one.initial.vms) == 2)
        assert found.demand.arguments == {"vs": frozenset()}

    def test_a_packing_loses_groups_and_groups_lose_members(self) -> None:
        vms = [a_vm(f"v{n}", "h1") for n in range(5)]
        trial = a_trial("Split", a_cluster(vms=vms), parts=[{"v0", "v1"}, {"v2", "v3"}, {"v4"}])
        found = shrink(
            trial, lambda one: len(one.initial.vms) == 5 and len(one.demand.arguments["parts"]) == 2
        )
        assert found.demand.arguments == {
            "parts": frozenset({frozenset({"v0"}), frozenset({"v2"})})
        }

    def test_text_stays_as_it_is(self) -> None:
        trial = a_trial("NodeAffinity", PAIR, v="v1", key="zone", values={"a", "v2"})
        found = shrink(trial, lambda one: len(one.demand.arguments["values"]) == 2)
        assert found.demand.arguments == {
            "v": "v1",
            "key": "zone",
            "values": frozenset({"a", "v2"}),
        }


class TestRounderTimes:
    def test_gaps_are_closed_and_the_order_stays(self) -> None:
        steps = [
            a_step("s1", suspending("v1", "h1"), 17, 1500),
            a_step("s2", suspending("v2", "h2"), 900, 77_000),
        ]
        trial = a_trial("Spread", PAIR, *steps, vs=set())
        order = times(trial)

        def interleaves(one: Trial) -> bool:
            return len(one.steps) == 2 and [
                left < right for a in times(one) for left in a for b in times(one) for right in b
            ] == [left < right for a in order for left in a for b in order for right in b]

        assert times(shrink(trial, interleaves)) == [(0, 2000), (1000, 3000)]

    def test_steps_begin_early_and_last_a_second(self) -> None:
        steps = [
            a_step("s1", suspending("v1", "h1"), 3, 1500),
            a_step("s2", suspending("v2", "h2"), 2000, 4000),
        ]
        found = shrink(a_trial("Spread", PAIR, *steps, vs=set()), lambda one: len(one.steps) == 2)
        assert times(found) == [(0, 1000), (0, 1000)]

    def test_milliseconds_become_seconds(self) -> None:
        steps = [
            a_step("s1", suspending("v1", "h1"), 0, 1),
            a_step("s2", resuming("v1", "h1"), 1, 3),
        ]
        trial = a_trial("Root", PAIR, *steps, v="v1")
        found = shrink(trial, lambda one: not one.objections and len(one.steps) == 2)
        assert times(found) == [(0, 1000), (1000, 2000)]

    def test_dependent_fields_are_reduced_together(self) -> None:
        steps = [a_step(f"s{n}", suspending(f"v{n}", f"h{n}"), 3000, 4000) for n in (1, 2)]
        steps[1] = steps[1].but(end_ms=6000)

        def together(one: Trial) -> bool:
            starts = [step.start_ms for step in one.steps]
            lasting = [step.duration_ms for step in one.steps]
            return len(set(starts)) == 1 and lasting == [1000, 3000]

        assert times(shrink(a_trial("Sync", PAIR, *steps, vs=set()), together)) == [
            (0, 1000), (0, 3000),
        ]  # fmt: skip

    def test_one_step_is_rounded_where_the_other_must_stay(self) -> None:
        steps = [
            a_step("s1", suspending("v1", "h1"), 2500, 4100),
            a_step("s2", suspending("v2", "h2"), 700, 2300),
        ]
        found = shrink(
            a_trial("Spread", PAIR, *steps, vs=set()),
            lambda one: len(one.steps) == 2 and times(one)[0] == (2500, 4100),
        )
        assert times(found) == [(2500, 4100), (0, 1000)]

    def test_a_start_that_matters_stays(self) -> None:
        found = shrink(
            a_trial("Spread", PAIR, a_step("s1", suspending("v1", "h1"), 7000, 9000), vs=set()),
            lambda one: any(step.start_ms > 2500 for step in one.steps),
        )
        assert times(found) == [(3000, 4000)]

    def test_an_end_that_matters_stays(self) -> None:
        step = a_step("s1", suspending("v1", "h1"), 0, 5000)
        found = shrink(
            a_trial("Spread", PAIR, step, vs=set()),
            lambda one: any(step.end_ms > 2500 for step in one.steps),
        )
        assert times(found) == [(0, 3000)]


class TestPlainerMachines:
    CLUSTER = a_cluster(
        a_host(
            "h1", state=HostState.MAINTENANCE, reserve=HostReserve(cpu_mhz=5), labels={"a": "b"},
            capacity={"pods": 40, "gpus": 9},
        ),
        vms=[
            a_vm(
                "v1", "h1", state=VmState.SLEEPING, cpu=CpuSettings(reservation_mhz=9),
                tenant="t", consumption={"pods": 30, "gpus": 1}, labels={"zone": "a", "rack": "b"},
                agent=True, template="debian", replaceable=True,
            )
        ],
    )  # fmt: skip

    def test_all_of_them_become_bare_at_once_if_nothing_matters(self) -> None:
        found = shrink(a_trial("Running", self.CLUSTER, v="v1"), everything, asks_max=1)
        assert found.initial == a_cluster(vms=[a_vm("v1", "h1", state=VmState.SLEEPING)])

    def test_only_relevant_fields_stay(self) -> None:
        found = shrink(
            a_trial("Running", self.CLUSTER, v="v1"),
            lambda one: (
                one.initial.vms[VmId("v1")].labels.get("rack") == "b"
                and one.initial.hosts[HostId("h1")].state is not HostState.ON
            ),
        )
        assert found.initial == a_cluster(
            a_host("h1", state=HostState.MAINTENANCE),
            vms=[a_vm("v1", "h1", state=VmState.SLEEPING, labels={"rack": "b"})],
        )

    def test_amounts_become_small_and_are_still_offered(self) -> None:
        pods = ResourceName("pods")
        found = shrink(
            a_trial("Running", self.CLUSTER, v="v1"),
            lambda one: one.initial.vms[VmId("v1")].consumption.get(pods, 0) > 2,
        )
        assert found.initial.vms[VmId("v1")].consumption == {pods: 3}
        assert found.initial.hosts[HostId("h1")].capacity == {pods: 0}

    def test_a_pair_is_parted_on_both_sides(self) -> None:
        cluster = a_cluster(
            a_host("h1"), a_host("h2"),
            vms=[a_vm("v1", "h1", ft_pair="v2"), a_vm("v2", "h2", ft_pair="v1", tenant="t")],
        )  # fmt: skip
        found = shrink(
            a_trial("FtApart", cluster),
            lambda one: (
                len(one.initial.vms) == 2
                and [vm.tenant for vm in one.initial.vms.values()] == [None, "t"]
            ),
        )
        assert [vm.ft_pair for vm in found.initial.vms.values()] == [None, None]

    def test_a_step_allocates_little_and_gives_no_reason(self) -> None:
        give = Allocate(vm=VmId("v1"), resource=ResourceName("pods"), amount=80)
        found = shrink(
            a_trial("Running", PAIR, a_step("s1", give).but(reason="because"), v="v1"),
            lambda one: any(
                isinstance(step.action, Allocate) and step.action.amount > 4 for step in one.steps
            ),
        )
        assert found.steps == (a_step("s1", give.but(amount=5)),)

    def test_a_step_loses_its_dependencies(self) -> None:
        first = a_step("s1", suspending("v1", "h1"))
        second = a_step("s2", suspending("v2", "h2"), 1000, 2000, "s1")
        trial = a_trial("Running", PAIR, first, second, v="v1")
        found = shrink(trial, lambda one: len(one.steps) == 2)
        assert [step.after for step in found.steps] == [(), ()]


# All together


class NeverTwoOnOneHost:
    """Rejects every plan that boots a VM on a host with other VMs, whatever the constraint."""

    def accepts(self, trial: Trial) -> bool:
        if trial.objections or trial.violation is not None:
            return False
        taken = set(trial.initial.placement.values())
        return all(
            not isinstance(step.action, Boot) or step.action.target not in taken
            for step in trial.steps
        )


class NeverBoots:
    """Refuses every plan that boots a VM."""

    def accepts(self, trial: Trial) -> bool:
        right = not trial.objections and trial.violation is None
        return right and not any(isinstance(step.action, Boot) for step in trial.steps)


class Breaks:
    """Cannot cope with empty sets, nor with VMs that sleep."""

    def accepts(self, trial: Trial) -> bool:
        if any(step.action == suspending("v1", "h1") for step in trial.steps):
            raise KeyError("v1")
        if not trial.demand.arguments["vs"]:
            raise ValueError("no VMs")
        return not trial.objections and trial.violation is None


class TestADefect:
    HOSTS = tuple(a_host(f"h{n}", capacity={"pods": 9}) for n in range(1, 5))
    VMS = (
        a_vm("v1", "h1", consumption={"pods": 2}, tenant="t"),
        a_vm("v2", "h2"),
        a_vm("v3", None),
        a_vm("v4", "h3"),
        a_vm("v5", None, labels={"zone": "a"}),
    )
    STEPS = (
        a_step("s1", suspending("v1", "h1"), 100, 1700),
        a_step("s2", Boot(vm=VmId("v3"), target=HostId("h3")), 1700, 4400),
        a_step("s3", resuming("v1", "h1"), 1800, 4000),
        a_step("s4", moving("v2", "h2", "h4"), 200, 9000),
        a_step("s5", Boot(vm=VmId("v5"), target=HostId("h1")), 4000, 5000),
    )
    TRIAL = a_trial("Spread", a_cluster(*HOSTS, vms=VMS), *STEPS, vs={"v1", "v2"})

    def shrunk(self, scheduler: Any, outcome: TrialOutcome) -> Trial:
        verdict = judge(scheduler, self.TRIAL)
        assert verdict.outcome is outcome
        sort = signature_of(self.TRIAL, verdict)
        return shrink(
            self.TRIAL, lambda trial: signature_of(trial, judge(scheduler, trial)) == sort
        )

    def test_needs_one_vm_and_one_host(self) -> None:
        found = self.shrunk(NeverBoots(), TrialOutcome.OVER)
        assert found.initial == a_cluster(a_host("h3"), vms=[a_vm("v3", None)])
        assert found.steps == (a_step("s2", Boot(vm=VmId("v3"), target=HostId("h3"))),)
        assert found.demand.arguments == {"vs": frozenset()}

    def test_needs_two_vms_and_one_host(self) -> None:
        found = self.shrunk(NeverTwoOnOneHost(), TrialOutcome.OVER)
        assert len(found.initial.hosts) == 1
        assert len(found.initial.vms) == 2
        assert times(found) == [(0, 1000)]

    def test_that_is_a_crash_stays_the_same_crash(self) -> None:
        found = self.shrunk(Breaks(), TrialOutcome.CRASH)
        assert judge(Breaks(), found).message == "KeyError: 'v1'"
        assert done(found) == ["suspend v1 on h1"]
        assert found.initial == a_cluster(a_host("h1"), vms=[a_vm("v1", "h1")])

    def test_an_error_of_ours_is_not_caught(self) -> None:
        def breaks(_: Trial) -> bool:
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            shrink(self.TRIAL, breaks)

    def test_the_number_of_questions_is_limited(self) -> None:
        judged: list[Trial] = []

        def notes(trial: Trial) -> bool:
            judged.append(trial)
            return True

        found = shrink(self.TRIAL, notes, asks_max=3)
        assert len(judged) == 3
        assert found is judged[-1]
        assert shrink(self.TRIAL, everything, asks_max=0) is self.TRIAL

    def test_few_questions_are_enough(self) -> None:
        asked = 0

        def counts(trial: Trial) -> bool:
            nonlocal asked
            asked += 1
            return judge(NeverTwoOnOneHost(), trial).outcome is TrialOutcome.OVER

        assert TrialSize.of(shrink(self.TRIAL, counts)) < TrialSize.of(self.TRIAL)
        assert asked < 200


def wired(network: Network) -> Trial:
    """Two VMs leave h1 at once; h3 is not needed."""
    hosts = [a_host(name) for name in ("h1", "h2", "h3")]
    initial = a_cluster(*hosts, vms=[a_vm("v1", "h1"), a_vm("v2", "h1")])
    steps = (
        a_step("s1", moving("v1", "h1", "h2"), 0, 9000),
        a_step("s2", moving("v2", "h1", "h2"), 0, 9000),
    )
    return replace(a_trial("Spread", initial, *steps, vs={"v1", "v2"}), network=network)


def test_a_network_that_has_no_part_in_it_goes() -> None:
    found = shrink(wired(star("h1", "h2", "h3")), lambda one: len(one.steps) > 0)
    assert found.network is None


def test_only_the_relevant_part_of_a_network_stays() -> None:
    """Of two switches, a narrow link, a limit and a twin, one switch and two wide links."""
    network = Network(
        switches=(a_switch("a", 9000), a_switch("b", 8000)),
        links=(
            a_link("l1", "a", 2000, host="h1"),
            a_link("l2", "b", 4000, host="h2"),
            a_link("l3", "a", 3000, host="h3"),
            a_link("l4", "b", 5000, to="a"),
            a_link("l5", "b", 6000, to="a"),
        ),
    )
    found = shrink(wired(network), lambda one: _is_overloaded(one) and len(one.steps) == 2)
    assert found.network is not None
    assert [switch.id for switch in found.network.switches] == ["a"]
    assert {switch.capacity_mbps for switch in found.network.switches} == {None}
    assert [(link.host, link.to) for link in found.network.links] == [("h1", None), ("h2", None)]
    assert len({link.capacity_mbps for link in found.network.links}) == 1
    assert list(found.initial.hosts) == ["h1", "h2"]


def test_a_link_that_matters_because_it_is_narrow_stays_so() -> None:
    network = star("h1", "h2", "h3", h1=4000, h2=4000, h3=2000)

    def keeps(one: Trial) -> bool:
        links = () if one.network is None else one.network.links
        return len({link.capacity_mbps for link in links}) > 1

    found = shrink(wired(network), keeps)
    assert keeps(found)
    assert len(found.initial.hosts) == 2


def test_hosts_are_never_left_without_a_way_to_each_other() -> None:
    network = Network(
        switches=(a_switch("a"), a_switch("b")),
        links=(
            a_link("l1", "a", host="h1"),
            a_link("l2", "b", host="h2"),
            a_link("l3", "b", host="h3"),
            a_link("l4", "b", to="a"),
        ),
    )
    for reduction in reductions(wired(network)):
        if reduction.network is not None and len(reduction.network.switches) == 2:
            ends = {link.switch for link in reduction.network.links if link.host is not None}
            joined = any(link.to is not None for link in reduction.network.links)
            assert joined or len(ends) < 2


def _is_overloaded(trial: Trial) -> bool:
    return any(objection.constraint == NETWORK_OVERLOADED for objection in trial.objections)
