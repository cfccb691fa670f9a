"""Three real hosts: one upgrade succeeds, one fails and is undone, one host cannot be reached."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from equipoise.hosts.ansible.engine import AnsibleEngine, Equipment
from equipoise.hosts.ansible.scripts import Scripts
from equipoise.hosts.ansible.words import Manners, Way
from equipoise.model.event import Event
from equipoise.model.quantity import HostId, ResourceId
from equipoise.model.upgrade.catalog import ComponentId, Doing, Recipe
from equipoise.model.upgrade.event import BatchEnded, TaskFailed, TaskFinished
from equipoise.model.upgrade.request import SetId
from equipoise.model.upgrade.work import Batch, BatchId, Errand, Task, VertexId, Work
from greeters import PLAYBOOKS, greeted, home_of, install, releases
from sshd import Rack, rack, user

pytest.importorskip("ansible_runner", reason="the extra ansible is not installed")

WORK = Work(
    set=SetId("s1"),
    component=ComponentId("greeter"),
    does=Doing.UPGRADE,
    before="1.0",
    after="2.0",
    recipe=Recipe(script="upgrade.yaml", undo_script="undo.yaml", check_script="check.yaml"),
)


@pytest.fixture(scope="module", name="hosts")
def fixture_hosts() -> Iterator[Rack]:
    with rack(3, first=31) as made:
        well, old, _gone = made.hosts
        install(well, greeting="hi")
        install(old, greeting="hi", colour="!")  # a setting that 2.0 does not know
        yield made


def engine_for(hosts: Rack) -> AnsibleEngine:
    ways = {
        host.name: Way(
            host=host.name,
            address=host.address,
            port=host.port,
            user=user(),
            key_file=hosts.keys / "id",
            variables={
                "greeter_home": str(home_of(host)),
                "ansible_remote_tmp": str(host.home / ".ansible"),
            },
        )
        for host in hosts.hosts
    }
    manners = Manners(known_hosts=hosts.keys / "known", connect_timeout_s=5, timeout_s=90)
    equipment = Equipment(scripts=Scripts(folder=PLAYBOOKS), ways=ways, manners=manners)
    return AnsibleEngine(equipment, lambda: time.monotonic_ns() // 1_000_000)


def stage(errand: Errand, *hosts: str) -> tuple[Task, ...]:
    return tuple(
        Task(
            resource=ResourceId(host),
            vertex=VertexId(host),
            errand=errand,
            works=(WORK,),
            host=HostId(host),
        )
        for host in hosts
    )


def carried_out(engine: AnsibleEngine, name: str, *stages: tuple[Task, ...]) -> list[Event]:
    engine.perform(Batch(id=BatchId(name), stages=stages))
    events: list[Event] = []
    while not events or not isinstance(events[-1], BatchEnded):
        event = engine.next_event(None)
        assert event is not None
        events.append(event)
    return events


def test_one_succeeds_one_fails_and_is_undone_one_does_not_answer(hosts: Rack) -> None:
    well, old, gone = hosts.hosts
    gone.stop()
    engine = engine_for(hosts)
    names = ("h1", "h2", "h3")
    events = carried_out(engine, "b1", stage(Errand.APPLY, *names), stage(Errand.CHECK, *names))
    failed = {event.resource: event for event in events if isinstance(event, TaskFailed)}
    finished = [
        (event.resource, event.errand) for event in events if isinstance(event, TaskFinished)
    ]
    assert finished == [("h1", Errand.APPLY), ("h1", Errand.CHECK)]
    assert set(failed) == {"h2", "h3"}
    assert "greeter 2.0 does not know the setting colour" in failed[ResourceId("h2")].reason
    assert not failed[ResourceId("h2")].unreachable
    assert failed[ResourceId("h3")].unreachable
    assert "greeter 2.0: hi" in greeted(well)
    assert "releases/2.0" in greeted(well)

    undone = carried_out(engine, "b2", stage(Errand.REVERT, "h2"))
    assert isinstance(undone[0], TaskFinished)
    assert "greeter 1.0: hi!" in greeted(old)
    assert "releases/1.0" in greeted(old)
    assert (releases(well), releases(old)) == (["1.0", "2.0"], ["1.0"])
