"""The placement over time in letters, as it is printed on a terminal."""

from __future__ import annotations

from builders import a_cluster, a_host, a_step, a_vm
from equipoise.model.action import Allocate, Boot, Migrate, PowerOff, Shutdown, Suspend
from equipoise.model.host import HostState
from equipoise.model.quantity import HostId, ResourceName, VmId
from equipoise.model.vm import VmState
from equipoise.report.placement import placement_text, placement_timeline

H1, H2 = HostId("h1"), HostId("h2")
V1, V2 = VmId("v1"), VmId("v2")


def test_a_row_is_a_host_and_a_column_a_period() -> None:
    initial = a_cluster(a_host("h1"), a_host("h2"), vms=[a_vm("v1", "h1"), a_vm("v2")])
    steps = [
        a_step("s1", Migrate(vm=V1, source=H1, target=H2), 0, 1000),
        a_step("s2", Boot(vm=V2, target=H2), 1000, 2500),
    ]
    assert placement_text(placement_timeline(initial, steps), wrong=2) == [
        "         before    0-1 s     1-2.5 s !  after",
        "h1       v1        v1>       -          -",
        "h2       -         >v1       v1 >v2     v1 v2",
        "no host  v2:ready  v2:ready  v2:ready>  -",
        ">v arrives, v> leaves or ends, ! violation",
    ]


def test_signs_show_suspended_vms_changes_and_host_states() -> None:
    asleep = a_vm("v1", "h1", state=VmState.SLEEPING)
    initial = a_cluster(
        a_host("h1"), a_host("h2", state=HostState.STANDBY), vms=[asleep, a_vm("v2", "h1")]
    )
    steps = [a_step("s", Suspend(vm=V2, source=H1))]
    assert placement_text(placement_timeline(initial, steps)) == [
        "    before     0-1 s      after",
        "h1  (v1) v2    (v1) v2~   (v1) (v2)",
        "h2  [standby]  [standby]  [standby]",
        "(v) sleeps, v~ changes",
    ]


def test_a_sign_that_is_not_used_is_not_explained() -> None:
    initial = a_cluster(a_host("h1"), vms=[a_vm("v1", "h1")])
    assert placement_text(placement_timeline(initial, [])) == ["    always", "h1  v1"]
    grown = Allocate(vm=V1, resource=ResourceName("pods"), amount=2)
    assert placement_text(placement_timeline(initial, [a_step("s", grown)]))[-1] == "v~ changes"
    ended = Shutdown(vm=V1, source=H1)
    assert (
        placement_text(placement_timeline(initial, [a_step("s", ended)]))[-1] == "v> leaves or ends"
    )


def test_a_host_that_is_switched_off_changes_when_that_ends() -> None:
    drawn = placement_text(
        placement_timeline(a_cluster(a_host("h1")), [a_step("s", PowerOff(host=H1))])
    )
    assert drawn == ["    before  0-1 s  after", "h1  -       -      [standby]"]
