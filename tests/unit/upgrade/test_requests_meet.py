"""Two requests about resources that depend on each other: the newer builds on the older."""

from __future__ import annotations

from collections.abc import Callable

from equipoise.model.resource import DependencyKind
from equipoise.model.upgrade.catalog import Catalog, ComponentId, Need
from equipoise.model.upgrade.event import BatchDecided, TaskFinished
from equipoise.model.upgrade.request import ChangeSet, Order, SetId, Window
from equipoise.model.upgrade.work import Errand, Task
from equipoise.upgrade.requests.talk import talk
from upgrade_worlds import (
    CATALOG,
    Stage,
    a_campaign,
    a_host,
    a_request,
    a_set,
    binds,
    hypervisors,
    never,
    switches,
    upgrade_of,
)

NEW_KERNEL = Need(
    component=ComponentId("hypervisor"), versions=("v2",), along=DependencyKind.COMMUNICATION
)
CATALOG_OF_NEW = Catalog(
    descriptions=tuple(
        one.but(needs=(NEW_KERNEL,)) if (one.component, one.version) == ("switch", "v2") else one
        for one in CATALOG.descriptions
    )
)
"""A new switch understands new hypervisors only; a new hypervisor gets on with any switch."""


LATER = Window(opens_s=1000, closes_s=5000)
WAITING = a_set("kernel", upgrade_of(["k1"]), windows=(LATER,))


def built_on(older: ChangeSet = WAITING, fails: Callable[[Task], str] = never) -> Stage:
    """The hypervisor is being changed when somebody asks for the switch that needs the new one."""
    stage = Stage(
        a_campaign(
            a_request(older),
            hosts=[a_host(1, 0)],
            resources=[*hypervisors(1), *switches(2)],
            dependencies=[binds("k1", "s1", DependencyKind.COMMUNICATION)],
            catalog=CATALOG_OF_NEW,
        ),
        fails=fails,
    )

    def judge(_event: object) -> None:
        state = stage.coordinator.state
        for bond in state.bonds:
            ends = [state.parts[bond.dependency.dependent], state.parts[bond.dependency.sponsor]]
            if all(part.active and part.operational for part in ends):
                mixed = [dict(part.components) for part in ends]
                assert talk(state, bond.dependency, *mixed), mixed

    stage.watch.append(judge)
    stage.step()
    stage.ask(a_request(a_set("switch", upgrade_of(["s1"])), name="r2"))
    return stage


def test_a_newer_request_waits_for_the_older_one_that_it_builds_on() -> None:
    stage = built_on()
    stage.run()
    reasons = {
        (vertex, one.rule, one.reason)
        for decided in stage.events(BatchDecided)
        for one in decided.eliminated
        for vertex in one.vertices
    }
    why = "it would not understand k1, which is changed first"
    assert ("s1", 5, why) in reasons
    assert stage.outcomes() == {"kernel": "applied", "switch": "applied"}
    assert (stage.version("k1"), stage.version("s1")) == ("v2", "v2")


def test_a_newer_request_is_taken_back_with_the_older_one_that_it_builds_on() -> None:
    stage = built_on()
    while SetId("switch") not in stage.coordinator.state.standings:
        assert stage.step()
    stage.command(Order.UNDO, "kernel")
    stage.run()
    assert stage.outcomes() == {"kernel": "undone", "switch": "undone"}
    assert (stage.version("k1"), stage.version("s1")) == ("v1", "v1")
    reason = stage.coordinator.state.standings[SetId("switch")].reason
    assert reason == "s1 would not understand k1, which stays as it is"


def test_it_is_not_complete_before_the_older_one_is_and_goes_back_first() -> None:
    """The switch is done when the hypervisor's set fails elsewhere, and all of it goes back."""

    def fails(task: Task) -> str:
        late = task.resource == "s2" and task.errand is Errand.APPLY
        return "broken" if late and not task.works[0].undoing else ""

    stage = built_on(a_set("kernel", upgrade_of(["k1", "s2"]), attempts_max=3), fails)
    stage.run()
    assert stage.outcomes() == {"kernel": "undone", "switch": "undone"}
    assert [stage.version(one) for one in ("k1", "s1", "s2")] == ["v1", "v1", "v1"]
    done = [one.resource for one in stage.events(TaskFinished) if one.errand is Errand.APPLY]
    assert done == ["k1", "s1", "s1", "k1"], "what was built last goes back first"
