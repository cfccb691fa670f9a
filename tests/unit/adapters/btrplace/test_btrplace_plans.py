"""Plans of BtrPlace: each action and each event, both ways, and what is refused."""

from __future__ import annotations

import json
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import a_host, a_plan, a_step, a_vm, an_inventory, coded
from equipoise.adapters.btrplace.format import read_instance, read_plan, write_plan
from equipoise.errors import InvalidInput
from equipoise.model.action import (
    Action,
    Allocate,
    Boot,
    EnterMaintenance,
    Forge,
    Kill,
    Migrate,
    PowerOff,
    PowerOn,
    Reinstantiate,
    Resume,
    Shutdown,
    Suspend,
)
from equipoise.model.host import HostState
from equipoise.model.plan import Plan
from equipoise.model.problem import ActionDuration, PlanningProblem
from equipoise.model.problem.problem import ActionKind, Network, NetworkLink, NetworkSwitch
from equipoise.model.quantity import HostId, ResourceName, VmId
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.vm import VmState
from equipoise.plan import VerifiedPlan, verify
from unit.adapters.btrplace.sample_instances import NETWORK, Record, instance, read, resource
from unit.files.sample_files import brief

VM0, VM1, VM2, VM3 = (VmId(f"vm{number}") for number in range(4))
NODE0, NODE1, NODE2 = (HostId(f"node{number}") for number in range(3))
CPU = ResourceName("cpu_units")
PROBLEM = read(instance({"id": "killed", "vm": 8}))
HOOKS: Record = {"pre": [], "post": []}

ACTIONS: list[tuple[Record, Action]] = [
    ({"id": "bootNode", "node": 2}, PowerOn(host=NODE2)),
    ({"id": "shutdownNode", "node": 1}, PowerOff(host=NODE1)),
    ({"id": "forgeVM", "vm": 8}, Forge(vm=VmId("vm8"))),
    ({"id": "bootVM", "vm": 3, "on": 1}, Boot(vm=VM3, target=NODE1)),
    ({"id": "shutdownVM", "vm": 0, "on": 0}, Shutdown(vm=VM0, source=NODE0)),
    ({"id": "migrateVM", "vm": 0, "from": 0, "to": 1}, Migrate(vm=VM0, source=NODE0, target=NODE1)),
    ({"id": "suspendVM", "vm": 0, "from": 0, "to": 0}, Suspend(vm=VM0, source=NODE0)),
    ({"id": "resumeVM", "vm": 2, "from": 1, "to": 0}, Resume(vm=VM2, source=NODE1, target=NODE0)),
    (
        {"id": "allocate", "vm": 1, "rc": "cpu", "amount": 4, "on": 0},
        Allocate(vm=VM1, resource=CPU, amount=4),
    ),
    ({"id": "killVM", "vm": 2, "on": 1}, Kill(vm=VM2)),
    ({"id": "killVM", "vm": 8}, Kill(vm=VmId("vm8"))),
]


def plan_of(*actions: Record, **given: Any) -> bytes:
    return json.dumps({"origin": {}, "actions": list(actions)} | given, indent=1).encode()


def problems(content: bytes) -> list[str]:
    """All problems of a plan, in brief and without their lines."""
    with pytest.raises(InvalidInput) as caught:
        read_plan(content, "p.json", PROBLEM)
    assert caught.value.source == "p.json"
    return [brief(problem).partition(": ")[2] for problem in caught.value.problems]


EVENT: Record = {"id": "allocate", "rc": "cpu", "amount": 2}


def actions_of(plan: Plan) -> list[tuple[Action, int, int]]:
    """The actions of a plan with their times."""
    return [(step.action, step.start_ms, step.end_ms) for step in plan.steps]


@pytest.mark.parametrize(("written", "action"), ACTIONS)
def test_an_action_both_ways(written: Record, action: Action) -> None:
    given = written | {"start": 2, "end": 5, "hooks": HOOKS}
    (step,) = read_plan(plan_of(given), "p.json", PROBLEM).steps
    assert step.action == action
    assert (step.start_ms, step.end_ms) == (2000, 5000)
    again = json.loads(write_plan(a_plan(a_step("s", action, 2000, 5000)), PROBLEM))
    assert again["actions"] == [given]


def test_the_steps_are_in_the_order_of_their_starts_and_named_by_their_places() -> None:
    content = plan_of(
        {"id": "bootVM", "vm": 3, "on": 1, "start": 4, "end": 6},
        {"id": "migrateVM", "vm": 0, "from": 0, "to": 1, "bw": 7, "start": 0, "end": 4},
    )
    plan = read_plan(content, "p.json", PROBLEM)
    assert (plan.id, plan.base_version) == ("btrplace", 0)
    assert [(step.id, step.start_ms) for step in plan.steps] == [("migrate-1", 0), ("boot-0", 4000)]


@pytest.mark.parametrize("hook", ["pre", "post", "PRE", "Post"])
def test_what_is_allocated_along_with_an_action_follows_it(hook: str) -> None:
    event = {"id": "allocate", "vm": 0, "rc": "cpu", "amount": 6}
    content = plan_of(
        {"id": "migrateVM", "vm": 0, "from": 0, "to": 1, "start": 1, "end": 4}
        | {"hooks": {hook: [event]}}
    )
    move, allocation = read_plan(content, "p.json", PROBLEM).steps
    assert allocation.action == Allocate(vm=VM0, resource=CPU, amount=6)
    assert (
        (allocation.start_ms, allocation.end_ms) == (move.end_ms, move.end_ms + 1) == (4000, 4001)
    )
    assert allocation.after == (move.id,)
    assert allocation.id == f"allocate-0-{hook}-0"


def allocation(amount: int, at: int = 2, **given: Any) -> Record:
    """What gives the VM 1 so much at once."""
    record = {"id": "allocate", "vm": 1, "rc": "cpu", "amount": amount, "on": 0}
    return record | {"start": at, "end": at, "hooks": HOOKS} | given


def test_what_takes_no_time_there_takes_a_millisecond_here() -> None:
    (step,) = read_plan(plan_of(allocation(4)), "p.json", PROBLEM).steps
    assert (step.start_ms, step.end_ms) == (2000, 2001)


def test_what_is_allocated_along_with_what_takes_no_time_follows_it() -> None:
    first = allocation(5, hooks={"post": [EVENT | {"vm": 1}]})
    steps = read_plan(plan_of(first, allocation(6)), "p.json", PROBLEM).steps
    assert [(step.id, step.start_ms, step.after) for step in steps] == [
        ("allocate-0", 2000, ()),
        ("allocate-0-post-0", 2001, ("allocate-0",)),
        ("allocate-1", 2002, ("allocate-0-post-0",)),
    ]


def test_what_a_vm_is_given_at_one_moment_it_is_given_one_by_one_in_the_order_of_the_file() -> None:
    event = EVENT | {"vm": 1}
    hooks = {"pre": [event | {"amount": 7}], "post": [event | {"amount": 3}]}
    move = {"id": "migrateVM", "vm": 1, "from": 0, "to": 1, "start": 0, "end": 2, "hooks": hooks}
    other = allocation(9, vm=0)
    content = plan_of(move, allocation(5), other, allocation(6), allocation(4, at=3))
    steps = read_plan(content, "p.json", PROBLEM).steps
    told = [(step.id, step.start_ms, step.end_ms, step.after) for step in steps]
    assert told == [
        ("migrate-0", 0, 2000, ()),
        ("allocate-0-pre-0", 2000, 2001, ("migrate-0",)),
        ("allocate-2", 2000, 2001, ()),
        ("allocate-0-post-0", 2001, 2002, ("migrate-0", "allocate-0-pre-0")),
        ("allocate-1", 2002, 2003, ("allocate-0-post-0",)),
        ("allocate-3", 2003, 2004, ("allocate-1",)),
        ("allocate-4", 3000, 3001, ()),
    ]


@pytest.mark.parametrize("booted", [False, True])
def test_a_vm_may_be_given_two_resources_at_one_moment(booted: bool) -> None:
    problem = read(instance(views=[resource("x"), resource("y")]))
    event = {"id": "allocate", "vm": 3 if booted else 0, "amount": 3}
    events = [event | {"rc": "y"}, event | {"rc": "x"}]
    content = plan_of(*(allocate | {"on": 0, "start": 0, "end": 0} for allocate in events))
    if booted:
        boot = {"id": "bootVM", "vm": 3, "on": 1, "start": 0, "end": 1}
        content = plan_of(boot | {"hooks": {"pre": events, "post": []}})
    plan = read_plan(content, "p.json", problem)
    assert isinstance(verify(Snapshot.of(problem.cluster), plan), VerifiedPlan)


def test_a_plan_that_was_read_can_be_judged() -> None:
    content = plan_of(
        {"id": "bootVM", "vm": 3, "on": 1, "start": 0, "end": 3}
        | {"hooks": {"pre": [{"id": "allocate", "vm": 3, "rc": "cpu", "amount": 9}], "post": []}},
        {"id": "migrateVM", "vm": 0, "from": 0, "to": 1, "start": 0, "end": 2},
    )
    plan = read_plan(content, "p.json", PROBLEM)
    assert isinstance(verify(Snapshot.of(PROBLEM.cluster), plan), VerifiedPlan)


ACTION_CASES: list[tuple[Record, str]] = [
    ({"id": "bootVM", "vm": 77, "on": 1}, "actions[0].vm: unknown-name 77"),
    ({"id": "bootNode", "node": 9}, "actions[0].node: unknown-name 9"),
    (
        {"id": "allocate", "vm": 0, "rc": "ram", "amount": 1, "on": 0},
        'actions[0].rc: unknown-name "ram"',
    ),
    (
        {"id": "suspendVM", "vm": 0, "from": 0, "to": 1},
        "actions[0].to: unsupported-feature 0 0",
    ),
    ({"id": "forgeVM", "vm": 8, "end": 1}, "actions[0].end: out-of-range 1 2 2"),
    ({"id": "bootVM", "vm": 3}, "actions[0].on: missing-key 0 2147483647"),
    ({"id": "flyVM", "vm": 3}, 'actions[0].id: invalid-value "flyVM"'),
    (
        {"id": "killVM", "vm": 0, "hooks": {"during": []}},
        "actions[0].hooks.during: unknown-key",
    ),
]


@pytest.mark.parametrize(("action", "expected"), ACTION_CASES)
def test_an_invalid_action_is_reported(action: Record, expected: str) -> None:
    assert problems(plan_of({"start": 2, "end": 3} | action)) == [expected]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"{}", "actions: missing-key"),
        (b'{"actions": [', "syntax-error"),
        (b'{"actions": 5}', "actions: wrong-type 5"),
    ],
)
def test_a_file_that_is_no_plan_is_rejected(content: bytes, expected: str) -> None:
    assert problems(content) == [expected]


# A reinstantiated VM has a new number in BtrPlace.

FORGE: Record = {"id": "forgeVM", "vm": 99, "start": 1, "end": 3, "hooks": HOOKS}
BOOT: Record = {"id": "bootVM", "vm": 99, "start": 3, "end": 6, "on": 1}
SUBSTITUTED: Record = {"id": "substitutedVM", "vm": 0, "newVm": 99}
INSTEAD: Record = BOOT | {"hooks": {"pre": [SUBSTITUTED], "post": []}}
STOP: Record = {"id": "shutdownVM", "vm": 0, "start": 6, "end": 10, "on": 0, "hooks": HOOKS}
REPLACEMENT = Reinstantiate(vm=VM0, source=NODE0, target=NODE1)


@pytest.mark.parametrize("parts", list(permutations([FORGE, INSTEAD, STOP])))
def test_a_vm_that_replaces_another_is_the_same_vm_reinstantiated(
    parts: tuple[Record, ...],
) -> None:
    (step,) = read_plan(plan_of(*parts), "p.json", PROBLEM).steps
    assert (step.action, step.start_ms, step.end_ms) == (REPLACEMENT, 1000, 10_000)
    assert step.id == f"reinstantiate-{parts.index(INSTEAD)}"


def test_a_later_action_on_the_new_vm_is_one_on_the_same_vm() -> None:
    again: Record = {"id": "migrateVM", "vm": 99, "from": 1, "to": 0, "start": 10, "end": 11}
    _, step = read_plan(plan_of(FORGE, INSTEAD, STOP, again), "p.json", PROBLEM).steps
    assert step.action == Migrate(vm=VM0, source=NODE1, target=NODE0)


@pytest.mark.parametrize(
    "parts",
    [
        (INSTEAD, STOP),
        (FORGE, INSTEAD),
        (FORGE | {"end": 4}, INSTEAD, STOP),
        (FORGE, INSTEAD, STOP | {"start": 5}),
        (FORGE, INSTEAD | {"vm": 1}, STOP),
    ],
)
def test_a_vm_replaces_another_only_if_it_runs_before_the_other_stops(
    parts: tuple[Record, ...],
) -> None:
    found = problems(plan_of(*parts))
    assert any("hooks.pre[0]: contradiction 99 0" in problem for problem in found)


def test_a_reinstantiated_vm_is_written_with_a_new_number() -> None:
    durations = {kind: ActionDuration(ms=1000) for kind in ActionKind}
    durations[ActionKind.FORGE] = ActionDuration(ms=2000)
    plan = a_plan(a_step("s", REPLACEMENT, 1000, 9000), a_step("t", Kill(vm=VM0), 9000, 10_000))
    forge, boot, stop, kill = json.loads(write_plan(plan, PROBLEM.but(durations=durations)))[
        "actions"
    ]
    new = forge["vm"]
    assert new > 8, "the number is free"
    assert [action["id"] for action in (forge, boot, stop)] == ["forgeVM", "bootVM", "shutdownVM"]
    assert [(part["start"], part["end"]) for part in (forge, boot, stop)] == [
        (1, 5),
        (5, 7),
        (7, 9),
    ]
    assert boot["hooks"]["pre"] == [{"id": "substitutedVM", "vm": 0, "newVm": new}]
    assert (boot["vm"], boot["on"], stop["vm"], stop["on"]) == (new, 1, 0, 0)
    assert (kill["vm"], kill["on"]) == (new, 1)


@given(st.integers(0, 5), st.integers(1, 9), st.integers(0, 3), st.integers(1, 9))
def test_a_vm_that_is_made_again_is_so_after_both_ways(
    start: int, lasts: int, gap: int, then: int
) -> None:
    back = Reinstantiate(vm=VM0, source=NODE1, target=NODE0)
    ended, later = start + lasts, start + lasts + gap
    steps = (
        a_step("s", REPLACEMENT, 1000 * start, 1000 * ended),
        a_step("t", back, 1000 * later, 1000 * (later + then)),
    )
    assert actions_of(
        read_plan(write_plan(a_plan(*steps), PROBLEM), "p.json", PROBLEM)
    ) == actions_of(a_plan(*steps))


def test_a_vm_that_is_made_again_at_once_is_so_after_both_ways() -> None:
    at_once = [part | {"start": 4, "end": 4} for part in (FORGE, INSTEAD, STOP)]
    plan = read_plan(plan_of(*at_once), "p.json", PROBLEM)
    assert actions_of(plan) == [(REPLACEMENT, 4000, 4001)]
    assert actions_of(read_plan(write_plan(plan, PROBLEM), "p.json", PROBLEM)) == actions_of(plan)


def test_a_vm_with_a_template_that_may_be_cloned_is_replaceable() -> None:
    written = instance()
    written["model"]["attributes"] = {
        "vms": {"0": {"clone": True, "template": "t"}, "1": {"clone": True}, "2": {"template": "t"}}
    }
    read_so = {vm.id: vm.replaceable for vm in read(written).cluster.vms}
    assert [read_so[vm] for vm in (VM0, VM1, VM2)] == [True, False, False]


def test_maintenance_cannot_be_said() -> None:
    plan = a_plan(a_step("rest", EnterMaintenance(host=NODE1)))
    with pytest.raises(InvalidInput, check=coded("unsupported-feature", "steps.rest")):
        write_plan(plan, PROBLEM)


@pytest.mark.parametrize(
    ("start", "end"), [(0, 1500), (1500, 3000), (1999, 3001), (500, 501), (0, 2), (1001, 1002)]
)
def test_times_between_seconds_are_rejected(start: int, end: int) -> None:
    first = a_step("first", Suspend(vm=VM0, source=NODE0), 0, 1000)
    plan = a_plan(first, a_step("s", Kill(vm=VM2), start, end))
    with pytest.raises(InvalidInput) as caught:
        write_plan(plan, PROBLEM)
    (problem,) = caught.value.problems
    assert brief(problem) == f"steps.s: unsupported-feature {start} {end} 1000"


def test_actions_without_duration_are_written_as_they_were_read() -> None:
    boot = {"id": "bootVM", "vm": 3, "on": 1, "start": 0, "end": 2, "hooks": HOOKS}
    given = [boot, allocation(4, vm=3, on=1), *(allocation(amount) for amount in (5, 6, 7))]
    plan = read_plan(plan_of(*given), "p.json", PROBLEM)
    written = write_plan(plan, PROBLEM)
    assert read_plan(written, "p.json", PROBLEM).steps[-1].end_ms == 2003
    actions = json.loads(written)["actions"]
    assert sorted(map(str, actions)) == sorted(map(str, given))
    assert [action["amount"] for action in actions if action["vm"] == 1] == [5, 6, 7]


def test_an_allocation_has_the_host_of_the_vm_at_its_start() -> None:
    plan = a_plan(
        a_step("after", Allocate(vm=VM0, resource=CPU, amount=2), 3000, 4000),
        a_step("move", Migrate(vm=VM0, source=NODE0, target=NODE1), 1000, 3000),
        a_step("before", Allocate(vm=VM0, resource=CPU, amount=3), 0, 1000),
        a_step("end", Kill(vm=VM0), 4000, 5000),
    )
    actions = json.loads(write_plan(plan, PROBLEM))["actions"]
    assert [(action["id"], action.get("on")) for action in actions] == [
        ("allocate", 0),
        ("migrateVM", None),
        ("allocate", 1),
        ("killVM", 1),
    ]


def test_the_origin_is_the_model_that_the_problem_came_from() -> None:
    attributes = {
        "vms": {str(vm): {"memUsed": 1} for vm in range(4)}
        | {"0": {"boot": 3, "memUsed": 512, "template": "t"}},
        "nodes": {"1": {"shutdown": 4}},
    }
    views = [
        resource("memory", nodes={"0": 1, "1": 2, "2": 3}, vms={"0": 1, "1": 2, "2": 3, "3": 4}),
        {"id": "ns", "type": "vm", "map": {"web": 0}},
        {"id": "ns", "type": "node", "map": {"rack": 1}},
        NETWORK,
    ]
    given = instance(views=views, attributes=attributes)
    problem = read(given)
    origin = json.loads(write_plan(a_plan(), problem))["origin"]
    assert origin["views"][0] == views[0] | {"defCapacity": 0, "defConsumption": 0}
    assert origin["views"][1:3] == views[1:3]
    assert origin["attributes"] == attributes
    assert read(given | {"model": origin}) == problem


def test_a_problem_of_our_own_is_numbered_and_keeps_its_names() -> None:
    hosts = (a_host("h1", capacity={"gpus": 2}), a_host("h2", state=HostState.MAINTENANCE))
    vms = [
        a_vm("web", "h1", consumption={"gpus": 1}),
        a_vm("new", state=VmState.INIT),
        a_vm("old", state=VmState.TERMINATED),
        a_vm("spare"),
    ]
    core = NetworkSwitch(id=ResourceName("core"))
    links = (
        NetworkLink(id=ResourceName(f"to-{host.id}"), switch=core.id, host=host.id, capacity_mbps=9)
        for host in hosts
    )
    network = Network(switches=(core,), links=tuple(links))
    problem = PlanningProblem(cluster=an_inventory(*hosts, vms=vms), network=network)
    plan = a_plan(a_step("s", Boot(vm=VmId("spare"), target=HostId("h1")), 0, 1000))
    written = json.loads(write_plan(plan, problem))
    origin = written["origin"]
    assert origin["mapping"] == {
        "readyVMs": [3],
        "onlineNodes": {"0": {"runningVMs": [0], "sleepingVMs": []}},
        "offlineNodes": [1],
    }
    names = {view["type"]: view["map"] for view in origin["views"] if view["id"] == "ns"}
    assert names == {"vm": {"web": 0, "spare": 3}, "node": {"h1": 0, "h2": 1}}
    net = origin["views"][-1]
    assert net["switches"] == [{"id": 0, "capacity": -1}]
    assert [link["physicalElement"]["id"] for link in net["links"]] == [0, 1]
    assert written["actions"][0]["vm"] == 3
    (step,) = read_plan(json.dumps(written).encode(), "p.json", problem).steps
    assert step.action == plan.steps[0].action
    document = {"model": origin, "constraints": [], "objective": {"id": "minimizeMTTR"}}
    assert len(read_instance(json.dumps(document).encode(), "i").cluster.vms) == 2


def test_a_vm_on_a_host_that_is_not_on_is_rejected() -> None:
    asleep = a_vm("v", "h1", state=VmState.SLEEPING)
    cluster = an_inventory(a_host("h1", state=HostState.STANDBY), vms=[asleep])
    with pytest.raises(InvalidInput) as caught:
        write_plan(a_plan(), PlanningProblem(cluster=cluster))
    (problem,) = caught.value.problems
    assert (problem.key, problem.code) == ("vms.v", "unsupported-feature")


@given(st.lists(st.tuples(st.sampled_from(ACTIONS), st.integers(0, 50), st.integers(1, 9))))
def test_a_plan_of_whole_seconds_is_read_back_unchanged(drawn: list[tuple[Any, int, int]]) -> None:
    steps = [
        a_step(f"s{place}", action, 1000 * start, 1000 * (start + lasting))
        for place, ((_, action), start, lasting) in enumerate(drawn)
    ]
    plan = a_plan(*sorted(steps, key=lambda step: (step.start_ms, step.end_ms)))
    assert actions_of(read_plan(write_plan(plan, PROBLEM), "p.json", PROBLEM)) == actions_of(plan)


@given(
    st.lists(
        st.tuples(st.sampled_from(ACTIONS), st.integers(0, 3), st.integers(0, 2), st.booleans())
    )
)
def test_a_plan_of_btrplace_is_read_back_unchanged(
    drawn: list[tuple[Any, int, int, bool]],
) -> None:
    actions = [
        written
        | {"start": start, "end": start + lasting}
        | {"hooks": {"post": [EVENT | {"vm": written["vm"]}] if along and "vm" in written else []}}
        for (written, _), start, lasting, along in drawn
    ]
    plan = read_plan(plan_of(*actions), "p.json", PROBLEM)
    assert actions_of(read_plan(write_plan(plan, PROBLEM), "p.json", PROBLEM)) == actions_of(plan)
