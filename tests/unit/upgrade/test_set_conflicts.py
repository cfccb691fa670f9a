"""Conflicts between change sets and between requests."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from equipoise.model.upgrade.catalog import Catalog, ComponentId, ComponentRequirement
from equipoise.model.upgrade.event import BatchDecided, SetEnded, SetUndoStarted, TaskFinished
from equipoise.model.upgrade.infrastructure import DependencyKind
from equipoise.model.upgrade.request import ChangeSet, CommandKind, MaintenanceWindow, SetId
from equipoise.model.upgrade.work import TaskKind, UpgradeTask
from equipoise.upgrade.requests.compatibility import are_compatible
from upgrade_clusters import (
    CATALOG,
    UpgradeHarness,
    a_campaign,
    a_host,
    a_request,
    a_set,
    a_tenant,
    a_vm,
    binds,
    hypervisors,
    never,
    switches,
    upgrade_of,
)

NEW_SWITCH = ComponentRequirement(
    component=ComponentId("switch"), versions=("v2",), along=DependencyKind.COMMUNICATION
)
ONE_WAY = Catalog(
    descriptions=tuple(
        described.but(needs=(NEW_SWITCH,))
        if (described.component, described.version) == ("hypervisor", "v2")
        else described
        for described in CATALOG.descriptions
    )
)
"""A new hypervisor needs new switches; a new switch is compatible with all versions."""


def two_by_two(*sets: ChangeSet, fails: Callable[[UpgradeTask], str] = never) -> UpgradeHarness:
    """Two hypervisors on two switches that are peers."""
    links = [(n, s) for n in (1, 2) for s in (1, 2)]
    return UpgradeHarness(
        a_campaign(
            a_request(*sets),
            hosts=[a_host(n, 0) for n in (1, 2)],
            resources=[*hypervisors(2), *switches(2)],
            dependencies=[
                binds("s1", "s2", DependencyKind.PEER_STATELESS),
                *(binds(f"k{n}", f"s{s}", DependencyKind.COMMUNICATION) for n, s in links),
            ],
            catalog=ONE_WAY,
        ),
        fails=fails,
    )


def broken(*names: str) -> Callable[[UpgradeTask], str]:
    def fails(task: UpgradeTask) -> str:
        return "broken" if task.resource in names and task.kind is TaskKind.APPLY else ""

    return fails


HOSTS = a_set("hosts", upgrade_of(["k1", "k2"]))
NET = a_set("net", upgrade_of(["s1", "s2"]))


def versions(harness: UpgradeHarness) -> list[str | None]:
    return [harness.version(name) for name in ("k1", "k2", "s1", "s2")]


def test_two_sets_of_one_unit_complete_together() -> None:
    harness = two_by_two(NET, HOSTS)
    harness.run()
    assert harness.outcomes() == {"net": "applied", "hosts": "applied"}
    assert {
        len(unit.partitions) for unit in harness.coordinator.state.resources.units.values()
    } == {3}
    ended = [event.at_ms for event in harness.events(SetEnded)]
    assert ended[0] == ended[1]


def test_a_set_continues_without_another_set_of_its_unit_if_compatible() -> None:
    harness = two_by_two(NET, HOSTS, fails=broken("k2"))
    harness.run()
    assert harness.outcomes() == {"net": "applied", "hosts": "undone"}
    assert versions(harness) == ["v1", "v1", "v2", "v2"]
    assert all(resource.active for resource in harness.coordinator.state.resources.states.values())


def test_work_of_two_sets_survives_the_undo_of_one() -> None:
    """The set of the hosts adds the switches as a complement; the other set requests them too."""
    harness = two_by_two(HOSTS, NET, fails=broken("k2"))
    harness.run()
    assert harness.outcomes() == {"hosts": "undone", "net": "applied"}
    assert versions(harness) == ["v1", "v1", "v2", "v2"]


def test_work_of_two_sets_survives_the_command_on_one() -> None:
    for order in (CommandKind.CANCEL, CommandKind.UNDO):
        harness = two_by_two(HOSTS, NET)
        harness.step()
        harness.command(order, "hosts")
        harness.run()
        assert harness.outcomes()["net"] == "applied"
        assert versions(harness)[2:] == ["v2", "v2"]


def test_a_set_is_undone_with_the_set_that_it_needs() -> None:
    harness = UpgradeHarness(
        a_campaign(
            a_request(
                a_set("one", upgrade_of(["s1"])),
                a_set("two", upgrade_of(["s2"])),
                a_set("three", upgrade_of(["s3"])),
            ),
            hosts=[a_host(1, 0)],
            resources=switches(3),
            dependencies=[binds("s1", "s2", DependencyKind.PEER_STATELESS, incompatible=True)],
        ),
        fails=broken("s2"),
    )
    harness.run()
    assert harness.outcomes() == {"one": "undone", "two": "undone", "three": "applied"}
    assert [harness.version(f"s{n}") for n in (1, 2, 3)] == ["v1", "v1", "v2"]
    codes = {str(event.set): event.code for event in harness.events(SetUndoStarted)}
    assert codes["one"] == "version-conflict"


@pytest.mark.parametrize("order", [("old", "new"), ("new", "old")])
def test_two_sets_that_build_on_each_other_are_undone_completely(order: tuple[str, str]) -> None:
    """The order of the two undos does not matter, also while the first one runs."""
    older, newer = upgrade_of(["k1", "k2"]), upgrade_of(["k1", "k2"], "v3")
    harness = UpgradeHarness(
        a_campaign(
            a_request(a_set("old", older), a_set("new", newer)),
            hosts=[a_host(n, 0) for n in (1, 2)],
            resources=hypervisors(2),
            dependencies=[binds("k1", "k2", DependencyKind.PEER_STATELESS)],
        )
    )
    while harness.version("k1") != "v3":
        assert harness.step()
    for name in order:
        harness.command(CommandKind.UNDO, name)
        while name not in [event.set for event in harness.events(SetUndoStarted)]:
            assert harness.step()
    harness.run()
    assert harness.outcomes() == {"old": "undone", "new": "undone"}
    assert [harness.version(name) for name in ("k1", "k2")] == ["v1", "v1"]


NEW_KERNEL = ComponentRequirement(
    component=ComponentId("hypervisor"), versions=("v2",), along=DependencyKind.COMMUNICATION
)
CATALOG_OF_NEW = Catalog(
    descriptions=tuple(
        described.but(needs=(NEW_KERNEL,))
        if (described.component, described.version) == ("switch", "v2")
        else described
        for described in CATALOG.descriptions
    )
)
"""A new switch needs new hypervisors; a new hypervisor is compatible with all switches."""


LATER = MaintenanceWindow(opens_s=1000, closes_s=5000)
WAITING = a_set("kernel", upgrade_of(["k1"]), windows=(LATER,))


def watch_versions(harness: UpgradeHarness) -> None:
    """Check before every event that no incompatible versions are in service together."""

    def check_compatible(_event: object) -> None:
        state = harness.coordinator.state
        for tracked in state.resources.dependencies:
            ends = [
                state.resources.states[tracked.dependency.dependent],
                state.resources.states[tracked.dependency.sponsor],
            ]
            if all(resource_state.active and resource_state.operational for resource_state in ends):
                mixed = [dict(resource_state.components) for resource_state in ends]
                assert are_compatible(state, tracked.dependency, *mixed), mixed

    harness.watch.append(check_compatible)


def built_on(
    older: ChangeSet = WAITING, fails: Callable[[UpgradeTask], str] = never
) -> UpgradeHarness:
    """The hypervisor is scheduled when a request for the switch that needs it arrives."""
    harness = UpgradeHarness(
        a_campaign(
            a_request(older),
            hosts=[a_host(1, 0)],
            resources=[*hypervisors(1), *switches(2)],
            dependencies=[binds("k1", "s1", DependencyKind.COMMUNICATION)],
            catalog=CATALOG_OF_NEW,
        ),
        fails=fails,
    )

    watch_versions(harness)
    harness.step()
    harness.ask(a_request(a_set("switch", upgrade_of(["s1"])), name="r2"))
    return harness


def test_a_newer_request_waits_for_the_older_request_that_it_needs() -> None:
    harness = built_on()
    harness.run()
    reasons = {
        (vertex, elimination.rule, elimination.code)
        for decided in harness.events(BatchDecided)
        for elimination in decided.eliminated
        for vertex in elimination.vertices
    }
    assert ("s1", 5, "version-conflict") in reasons
    assert harness.outcomes() == {"kernel": "applied", "switch": "applied"}
    assert (harness.version("k1"), harness.version("s1")) == ("v2", "v2")


def test_a_newer_request_is_undone_with_the_older_request_that_it_needs() -> None:
    harness = built_on()
    while SetId("switch") not in harness.coordinator.state.requests.set_status:
        assert harness.step()
    harness.command(CommandKind.UNDO, "kernel")
    harness.run()
    assert harness.outcomes() == {"kernel": "undone", "switch": "undone"}
    assert (harness.version("k1"), harness.version("s1")) == ("v1", "v1")
    code = harness.coordinator.state.requests.set_status[SetId("switch")].reason.code
    assert code == "version-conflict"


def test_a_newer_request_completes_after_the_older_one_and_is_undone_first() -> None:
    """The switch has changed when the set of the hypervisor fails: both sets are undone."""

    def fails(task: UpgradeTask) -> str:
        late = task.resource == "s2" and task.kind is TaskKind.APPLY
        return "broken" if late and not task.works[0].undoing else ""

    harness = built_on(a_set("kernel", upgrade_of(["k1", "s2"]), attempts_max=3), fails)
    harness.run()
    assert harness.outcomes() == {"kernel": "undone", "switch": "undone"}
    assert [harness.version(name) for name in ("k1", "s1", "s2")] == ["v1", "v1", "v1"]
    finished = harness.events(TaskFinished)
    done = [event.resource for event in finished if event.kind is TaskKind.APPLY]
    assert done == ["k1", "s1", "s1", "k1"], "the last change is undone first"


BUILT = Catalog(
    descriptions=tuple(
        described.but(needs=(NEW_KERNEL.but(versions=("v2", "v3")),))
        if described.component == "switch" and described.version != "v1"
        else described
        for described in CATALOG.descriptions
    )
)
"""New switches need hypervisors of version v2 or v3."""
KERNELS = ["k1", "k2", "k3", "k4"]


def built_cluster() -> UpgradeHarness:
    """Four hosts for VMs on two peer switches; the first request changes the hosts."""
    harness = UpgradeHarness(
        a_campaign(
            a_request(a_set("hosts", upgrade_of(KERNELS, undo_threshold=2))),
            hosts=[a_host(n, 1) for n in range(1, 5)],
            vms=[a_vm("t-0", 4, "t")],
            tenants=[a_tenant("t", ["t-0"], most=2)],
            resources=[*hypervisors(4), *switches(2)],
            dependencies=[
                binds("s1", "s2", DependencyKind.PEER_STATELESS),
                *(binds(k, s, DependencyKind.COMMUNICATION) for k in KERNELS for s in ("s1", "s2")),
            ],
            catalog=BUILT,
        )
    )
    watch_versions(harness)
    return harness


def test_a_request_is_undone_if_a_later_request_repairs_the_versions_too_late() -> None:
    """The switches need v2 of the hosts; after its undo only a later request leads to v3."""
    harness = built_cluster()
    harness.ask(a_request(a_set("net", upgrade_of(["s1", "s2"])), name="r2"))
    harness.ask(a_request(a_set("later", upgrade_of(KERNELS, "v3")), name="r3"))
    harness.step()
    harness.command(CommandKind.UNDO, "hosts")
    harness.run()
    assert harness.outcomes() == {"hosts": "undone", "net": "undone", "later": "applied"}
    codes = {str(event.set): event.code for event in harness.events(SetUndoStarted)}
    assert codes == {"hosts": "undo-commanded", "net": "version-conflict"}
    assert {harness.version(name) for name in KERNELS} == {"v3"}


def test_two_changes_of_one_request_are_ordered_if_an_older_request_is_undone() -> None:
    """Without the undo the switches could change at any time: the hosts would have v2 at least."""
    harness = built_cluster()
    both = a_set("both", upgrade_of(KERNELS, "v3"), upgrade_of(["s1", "s2"]))
    harness.ask(a_request(both, name="r2"))
    harness.step()
    harness.command(CommandKind.UNDO, "hosts")
    harness.run()
    assert harness.outcomes() == {"hosts": "undone", "both": "applied"}
    assert {harness.version(name) for name in KERNELS} == {"v3"}


def test_a_request_after_the_undo_of_the_request_that_it_needs_is_refused() -> None:
    """It would deactivate all four hosts at a time, but a tenant may request VMs."""
    harness = built_cluster()
    harness.step()
    harness.ask(a_request(a_set("net", upgrade_of(["s1", "s2"])), name="r2"))
    harness.command(CommandKind.UNDO, "hosts")
    harness.run()
    assert harness.outcomes() == {"hosts": "undone", "net": "refused"}
    assert (
        harness.coordinator.state.requests.set_status[SetId("net")].reason.code
        == "capacity-too-small"
    )
